package dstack

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// The short forms of dstack's scalars, as dstack 0.22.5 reads them.

// lazy compiles a pattern at its first use: every command of the program would pay for it at start otherwise.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// span is a range of dstack: min..max, either end open.
type span[T any] struct {
	min, max       T
	hasMin, hasMax bool
}

// parseSpan reads n, a..b, a.. and ..b with one reader for both ends.
func parseSpan[T any](s string, one func(string) (T, error), less func(a, b T) bool) (span[T], error) {
	var sp span[T]
	lo, hi, isRange := strings.Cut(s, "..")
	if !isRange {
		v, err := one(strings.TrimSpace(s))
		return span[T]{v, v, true, true}, err
	}
	lo, hi = strings.TrimSpace(lo), strings.TrimSpace(hi)
	if lo == "" && hi == "" {
		return sp, fmt.Errorf("the range %q is empty; write 2.., ..8 or 2..8", s)
	}
	var err error
	if lo != "" {
		if sp.min, err = one(lo); err != nil {
			return sp, err
		}
		sp.hasMin = true
	}
	if hi != "" {
		if sp.max, err = one(hi); err != nil {
			return sp, err
		}
		sp.hasMax = true
	}
	if sp.hasMin && sp.hasMax && less(sp.max, sp.min) {
		return sp, fmt.Errorf("the range %q has its minimum above its maximum", s)
	}
	return sp, nil
}

func parseCount(s string) (int64, error) {
	v, ok := wholeNumber(s)
	if !ok {
		return 0, fmt.Errorf("%q is not a whole number", clip(s))
	}
	if v < 0 || v > math.MaxInt32 {
		return 0, fmt.Errorf("%s is out of range", s)
	}
	return v, nil
}

func lessInt(a, b int64) bool { return a < b }

var sizeForm = lazy(`^([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+) *([A-Za-z]*)$`)

// parseSize reads a size: a number of GB, or a number with MB, GB or TB in any case (powers of 1024).
func parseSize(s string) (core.Bytes, error) {
	m := sizeForm().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size; write 512MB, 8GB or 1TB", clip(s))
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size; write 512MB, 8GB or 1TB", clip(s))
	}
	unit := float64(core.GiB)
	switch strings.ToUpper(m[2]) {
	case "", "GB":
	case "MB":
		unit = float64(core.MiB)
	case "TB":
		unit = 1024 * float64(core.GiB)
	default:
		return 0, fmt.Errorf("%q is not a unit; sizes are in MB, GB or TB", m[2])
	}
	if v *= unit; v > 1<<60 {
		return 0, fmt.Errorf("%s is out of range", clip(s))
	}
	return core.Bytes(v), nil
}

func parseSizes(s string) (span[core.Bytes], error) {
	return parseSpan(s, parseSize, func(a, b core.Bytes) bool { return a < b })
}

var durationForm = lazy(`^([0-9]+) ?([smhdw]?)$`)

// parseDuration reads 3600, 1h, 90m, 2d, 1w. No fractions, no compounds, units in lower case.
func parseDuration(s string) (core.Seconds, error) {
	m := durationForm().FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a duration; write a number and one of s, m, h, d, w, such as 90m", clip(s))
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || v > 1<<40 {
		return 0, fmt.Errorf("%s is out of range", clip(s))
	}
	unit := map[string]int64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}[m[2]]
	return core.Seconds(v * unit), nil
}

// cpuSpec is a `cpu` value.
type cpuSpec struct {
	arch  string // "x86", "arm", or ""
	count span[int64]
	given bool // a count was written
}

// parseCPU reads 4, 2..8, arm:8 and x86:2.. .
func parseCPU(s string) (cpuSpec, error) {
	var c cpuSpec
	for _, tok := range strings.Split(s, ":") {
		tok = strings.TrimSpace(tok)
		switch lower := strings.ToLower(tok); {
		case tok == "":
			return c, fmt.Errorf("%q has an empty part", clip(s))
		case lower == "x86" || lower == "arm":
			if c.arch != "" {
				return c, fmt.Errorf("%q names two architectures", clip(s))
			}
			c.arch = lower
		default:
			if c.given {
				return c, fmt.Errorf("%q gives two counts", clip(s))
			}
			n, err := parseSpan(tok, parseCount, lessInt)
			if err != nil {
				return c, err
			}
			c.count, c.given = n, true
		}
	}
	return c, nil
}

// gpuSpec is a `gpu` value.
type gpuSpec struct {
	vendor string
	names  []string
	count  span[int64]
	given  bool // a count was written; otherwise it is 1..
	memory string
	total  span[core.Bytes] // of all of them
	able   int32            // compute capability, ten times
}

var gpuVendors = map[string]string{
	"nvidia": "nvidia", "amd": "amd", "google": "google", "tpu": "google", "intel": "intel",
	"tenstorrent": "tenstorrent", "tt": "tenstorrent",
}

// parseGPU reads tokens separated by ':' in any order; each is, tried in this order, a vendor, a list of names, a
// memory range or a count. So A100:80 means eighty GPUs, as in dstack.
func parseGPU(s string) (gpuSpec, error) {
	var g gpuSpec
	for _, tok := range strings.Split(s, ":") {
		tok = strings.TrimSpace(tok)
		vendor := gpuVendors[strings.ToLower(tok)]
		switch {
		case tok == "":
			return g, fmt.Errorf("%q has an empty part", clip(s))
		case vendor != "":
			if g.vendor != "" {
				return g, fmt.Errorf("%q names two vendors", clip(s))
			}
			g.vendor = vendor
		case isLetter(tok[0]):
			if g.names != nil {
				return g, fmt.Errorf("%q gives two lists of names; separate alternatives by commas", clip(s))
			}
			for _, name := range strings.Split(tok, ",") {
				if name = strings.TrimSpace(name); name == "" {
					return g, fmt.Errorf("%q has an empty name", clip(s))
				}
				g.names = append(g.names, name)
			}
		case strings.IndexFunc(tok, func(r rune) bool { return r < 128 && isLetter(byte(r)) }) >= 0:
			if g.memory != "" {
				return g, fmt.Errorf("%q gives two memory sizes", clip(s))
			}
			if _, err := parseSizes(tok); err != nil {
				return g, err
			}
			g.memory = tok
		default:
			if g.given {
				return g, fmt.Errorf("%q gives two counts", clip(s))
			}
			n, err := parseSpan(tok, parseCount, lessInt)
			if err != nil {
				return g, err
			}
			g.count, g.given = n, true
		}
	}
	return g, nil
}

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }

var (
	nameForm = lazy(`^[a-z][a-z0-9-]{1,40}$`)
	envForm  = lazy(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// CheckName tells what is wrong with a run's name, or nil.
func CheckName(name string) error { return checkName("run", name) }

// CheckFleetName tells what is wrong with a fleet's name, or nil.
func CheckFleetName(name string) error { return checkName("fleet", name) }

func checkName(of, name string) error {
	if !nameForm().MatchString(name) {
		return core.Errorf(core.Invalid, "%q is not a %s name: 2 to 41 lower-case letters, digits and dashes, a "+
			"letter first", clip(name), of)
	}
	return nil
}
