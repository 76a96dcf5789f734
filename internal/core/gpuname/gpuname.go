// Package gpuname knows the vendors of GPUs by the names of their types.
package gpuname

import "strings"

// vendorPrefixes begin the types of GPUs by which their vendor is known, in lower case.
var vendorPrefixes = []struct{ vendor, prefix string }{
	{"nvidia", "nvidia"},
	{"nvidia", "tesla"},
	{"nvidia", "rtx"},
	{"nvidia", "gtx"},
	{"nvidia", "geforce"},
	{"nvidia", "quadro"},
	{"nvidia", "titan"},
	{"nvidia", "gb"},
	{"nvidia", "gh"},
	{"nvidia", "dgx"},
	{"amd", "amd"},
	{"amd", "mi"},
	{"amd", "radeon"},
	{"intel", "intel"},
	{"intel", "gaudi"},
	{"intel", "max1"},
	{"google", "tpu"},
	{"tenstorrent", "tenstorrent"},
}

// Vendor is the vendor of a type of GPU; empty: it is not known by its name.
func Vendor(typ string) string {
	typ = strings.ToLower(typ)
	for _, v := range vendorPrefixes {
		if rest, ok := strings.CutPrefix(typ, v.prefix); ok && (len(v.prefix) > 2 || startsWithDigit(rest)) {
			return v.vendor
		}
	}
	// A100, H200, L40S, V100, T4, P100, K80, B200: one letter and a number
	if len(typ) > 1 && strings.ContainsRune("abhlvtpkm", rune(typ[0])) && startsWithDigit(typ[1:]) {
		return "nvidia"
	}
	return ""
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }
