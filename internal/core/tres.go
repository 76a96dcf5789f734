package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Amount is so much of one trackable resource.
type Amount struct {
	Name  string // lower case: cpu, mem, node, energy, billing, gres/gpu, gres/gpu:a100, license/x, bb/x
	Count int64  // mem and bb in MiB
}

// TRES is amounts of resources, sorted by name, each name once. In a limit, what is not named is not limited.
type TRES []Amount

// TRESOf makes a TRES of amounts in any order; those of one name are added up.
func TRESOf(list ...Amount) TRES {
	var t TRES
	for _, a := range list {
		t = t.plus(a.Name, a.Count)
	}
	return t
}

// Get tells how much there is of a resource, and whether it is named at all.
func (t TRES) Get(name string) (int64, bool) {
	if i, ok := slices.BinarySearchFunc(t, name, byAmountName); ok {
		return t[i].Count, true
	}
	return 0, false
}

// Count is Get for those who take what is not named as none.
func (t TRES) Count(name string) int64 {
	n, _ := t.Get(name)
	return n
}

// Plus adds k times u; the result shares nothing with t.
func (t TRES) Plus(u TRES, k int64) TRES {
	out := slices.Clone(t)
	for _, a := range u {
		out = out.plus(a.Name, a.Count*k)
	}
	return out
}

func (t TRES) plus(name string, n int64) TRES {
	i, ok := slices.BinarySearchFunc(t, name, byAmountName)
	if ok {
		t[i].Count += n
		return t
	}
	return slices.Insert(t, i, Amount{name, n})
}

func byAmountName(a Amount, name string) int { return cmp.Compare(a.Name, name) }

// String lists the amounts as Slurm does: cpu=4,mem=2048,node=1.
func (t TRES) String() string {
	parts := make([]string, len(t))
	for i, a := range t {
		parts[i] = a.Name + "=" + strconv.FormatInt(a.Count, 10)
	}
	return strings.Join(parts, ",")
}

// MarshalText writes what String gives.
func (t TRES) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTRES reads.
func (t *TRES) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTRES(string(b))
	return err
}

// tresClasses are the resources there are; those with true have a name behind a slash.
var tresClasses = map[string]bool{
	"cpu": false, "mem": false, "node": false, "energy": false, "billing": false, "gres": true, "license": true,
	"bb": true,
}

// ParseTRES reads cpu=4,mem=2G,gres/gpu:a100=2: classes in any case, and units (K, M, G, T, P) for mem and bb, which
// are in MiB without one.
func ParseTRES(text string) (TRES, error) {
	var out TRES
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not RESOURCE=COUNT", part)
		}
		class, rest, _ := strings.Cut(name, "/")
		class = strings.ToLower(class)
		named, known := tresClasses[class]
		if !known || named != (rest != "") {
			return nil, fmt.Errorf("%q is not a resource; expected cpu, mem, node, energy, billing, gres/NAME, "+
				"license/NAME or bb/NAME", name)
		}
		n, err := tresCount(value, class == "mem" || class == "bb")
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		if name = class; rest != "" {
			name += "/" + rest
		}
		if _, twice := out.Get(name); twice {
			return nil, fmt.Errorf("%q: %s is listed twice", part, name)
		}
		out = out.plus(name, n)
	}
	return out, nil
}

func tresCount(text string, sized bool) (int64, error) {
	num, scale := text, 1.0
	if sized && text != "" {
		switch text[len(text)-1] {
		case 'K', 'k':
			scale = 1.0 / 1024
		case 'M', 'm':
		case 'G', 'g':
			scale = 1 << 10
		case 'T', 't':
			scale = 1 << 20
		case 'P', 'p':
			scale = 1 << 30
		default:
			scale = 0
		}
		if scale != 0 {
			num = text[:len(text)-1]
		} else {
			scale = 1
		}
	}
	if n, err := strconv.ParseInt(num, 10, 64); err == nil && n >= 0 && scale >= 1 && n < math.MaxInt64/int64(scale) {
		return n * int64(scale), nil
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || f < 0 || f*scale > math.MaxInt64/2 || !sized {
		return 0, fmt.Errorf("%q is not an amount", text)
	}
	return int64(math.Ceil(f * scale)), nil
}
