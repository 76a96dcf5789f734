package core

import (
	"testing"

	"bireme.dev/bireme/internal/core/gpuname"
)

// TestVendorByType: a GPU that only the settings name has the vendor that its type is of.
func TestVendorByType(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"a100": "nvidia", "H200": "nvidia", "l40s": "nvidia", "t4": "nvidia", "rtx4090": "nvidia", "nvidia_a100": "nvidia",
		"gh200": "nvidia", "tesla": "nvidia", "mi300x": "amd", "gaudi2": "intel", "": "", "fast": "", "gbig": "", "mig": "",
		"big": "",
	} {
		if got := gpuname.Vendor(typ); got != want {
			t.Errorf("%s: %q, want %q", typ, got, want)
		}
		nvidia := &GPUAsk{Vendor: "nvidia"}
		if got := nvidia.Fits(typ, "", 0, 0); got != (want == "nvidia") {
			t.Errorf("%s fits: %v", typ, got)
		}
	}
	if (&GPUAsk{Vendor: "amd"}).Fits("a100", "", 0, 0) || (&GPUAsk{Vendor: "amd"}).Fits("mi300x", "nvidia", 0, 0) {
		t.Error("another vendor's")
	}
	if !(&GPUAsk{Vendor: "amd"}).Fits("a100", "amd", 0, 0) {
		t.Error("what was found counts more than a name")
	}
}
