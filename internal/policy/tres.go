package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// The words of core that this package speaks all the time.
type (
	Amount = core.Amount
	TRES   = core.TRES
	Limits = core.Limits
)

// Of makes a TRES of amounts in any order; those of one name are added up.
func Of(list ...Amount) TRES { return core.TRESOf(list...) }

// kind is the class of a resource that reason words go by.
type kind uint8

const (
	kindUnknown kind = iota
	kindCPU
	kindMem
	kindNode
	kindGRES
	kindLicense
	kindEnergy
	kindBB
	kindBilling
)

func kindOf(name string) kind {
	class, _, _ := strings.Cut(name, "/")
	switch class {
	case "cpu":
		return kindCPU
	case "mem":
		return kindMem
	case "node":
		return kindNode
	case "gres":
		return kindGRES
	case "license":
		return kindLicense
	case "energy":
		return kindEnergy
	case "bb":
		return kindBB
	case "billing":
		return kindBilling
	}
	return kindUnknown
}

// onNode reports whether a resource is part of some node, as against one the whole cluster has.
func (k kind) onNode() bool { return k == kindCPU || k == kindMem || k == kindNode || k == kindGRES }

// Weight is what a unit of a resource counts.
type Weight struct {
	Name string
	Per  float64 // unit; for mem and bb, MiB
}

// ParseWeights reads CPU=1.0,Mem=0.25G,GRES/gpu=2: names in any case, and for mem and bb the unit the weight is for
// (K, M, G, T, P; MiB if none). The result is sorted by name.
func ParseWeights(text string) ([]Weight, error) {
	var out []Weight
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not RESOURCE=WEIGHT", part)
		}
		class, rest, _ := strings.Cut(name, "/")
		w := Weight{Name: strings.ToLower(class)}
		if rest != "" {
			w.Name += "/" + rest
		}
		k := kindOf(w.Name)
		if k == kindUnknown || k == kindBilling || (rest == "") == (k == kindGRES || k == kindLicense || k == kindBB) {
			return nil, fmt.Errorf("%q: %q is not a resource with a weight; there are cpu, mem, node, energy, "+
				"gres/NAME, license/NAME and bb/NAME", part, name)
		}
		scale := 1.0
		if k == kindMem || k == kindBB {
			value, scale = unitOf(value)
		}
		per, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsInf(per, 0) || math.IsNaN(per) {
			return nil, fmt.Errorf("%q: %q is not a weight", part, value)
		}
		w.Per = per / scale
		at, twice := slices.BinarySearchFunc(out, w.Name, func(a Weight, n string) int { return cmp.Compare(a.Name, n) })
		if twice {
			return nil, fmt.Errorf("%q: %s has a weight already", part, w.Name)
		}
		out = slices.Insert(out, at, w)
	}
	return out, nil
}

// unitOf takes the unit off a weight and gives its size in MiB.
func unitOf(text string) (string, float64) {
	if text == "" {
		return text, 1
	}
	scale := 1.0
	switch text[len(text)-1] {
	case 'K', 'k':
		scale = 1.0 / 1024
	case 'M', 'm':
	case 'G', 'g':
		scale = 1024
	case 'T', 't':
		scale = 1024 * 1024
	case 'P', 'p':
		scale = 1024 * 1024 * 1024
	default:
		return text, 1
	}
	return text[:len(text)-1], scale
}

// Bill is a job's billing: its resources by their weights, in whole units. Without weights it is the number of CPUs.
// MaxTRES takes the dearest of what is on nodes instead of their sum; MaxTRESGres does so too, but adds all gres.
func Bill(t TRES, weights []Weight, flags Flag) int64 {
	if len(weights) == 0 {
		return t.Count("cpu")
	}
	var global, gres, node, dearest float64
	for _, w := range weights {
		n, ok := t.Get(w.Name)
		if !ok {
			continue
		}
		cost := float64(n) * w.Per
		k := kindOf(w.Name)
		switch {
		case !k.onNode():
			global += cost
		case k == kindGRES && flags&MaxTRESGres != 0:
			gres += cost
		default:
			node += cost
			dearest = max(dearest, cost)
		}
	}
	if flags&(MaxTRES|MaxTRESGres) != 0 {
		node = dearest
	}
	return int64(max(0, node+gres+global)) // weights may be negative
}
