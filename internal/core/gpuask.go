package core

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/gpuname"
)

// GPUAsk says which GPUs will do. Empty fields ask for nothing.
type GPUAsk struct {
	Vendor string   `json:"vendor,omitempty"`
	Names  []string `json:"names,omitempty"` // one of these, in any case
	MemMin Bytes    `json:"mem_min,omitempty"`
	MemMax Bytes    `json:"mem_max,omitempty"`
	// Capability is the least compute capability, as Unit has it.
	Capability int32 `json:"capability,omitempty"`
}

// Fits reports whether GPUs of a type, maker, memory and compute capability will do. Sizes are as sold: of an L4 of 24
// GB programs see 22.5, so up to 7 % may be missing. What nothing is known of does not fit who asks for it; of a fake
// one neither maker nor capability is asked.
func (a *GPUAsk) Fits(typ, vendor string, memory Bytes, capability int32) bool {
	if vendor == "" && a.Vendor != "" {
		vendor = gpuname.Vendor(typ) // the settings name it, and nobody looked at the device
	}
	return (capability >= a.Capability || vendor == "fake") &&
		(a.Vendor == "" || a.Vendor == vendor || vendor == "fake") &&
		(len(a.Names) == 0 || slices.ContainsFunc(a.Names, func(n string) bool { return strings.EqualFold(n, typ) })) &&
		(a.MemMin == 0 || memory >= a.MemMin/100*93) && (a.MemMax == 0 || memory > 0 && memory <= a.MemMax)
}

// String tells what is asked for, for people.
func (a *GPUAsk) String() string {
	var out []string
	if a.Vendor != "" {
		out = append(out, a.Vendor)
	}
	if len(a.Names) > 0 {
		out = append(out, strings.Join(a.Names, " or "))
	}
	switch low, high := a.MemMin/GiB, a.MemMax/GiB; {
	case low > 0 && low == high:
		out = append(out, fmt.Sprintf("%d GB", low))
	case low > 0 && high > 0:
		out = append(out, fmt.Sprintf("%d to %d GB", low, high))
	case low > 0:
		out = append(out, fmt.Sprintf("%d GB or more", low))
	case high > 0:
		out = append(out, fmt.Sprintf("at most %d GB", high))
	}
	if c := a.Capability; c > 0 {
		out = append(out, fmt.Sprintf("compute capability %d.%d or more", c/10, c%10))
	}
	return strings.Join(out, ", ")
}
