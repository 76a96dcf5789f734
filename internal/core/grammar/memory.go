package grammar

import (
	"math"
	"strconv"
)

const wantMemory = "a whole number with an optional K, M, G or T, such as 4000M or 16G"

// ParseMemory reads a size as --mem does and returns MiB: powers of 1024, M when no unit is given,
// K rounded up. 0 means all of a node's memory to most options; that is the caller's to say.
func ParseMemory(s string) (mib int64, err error) {
	t := &text{what: "memory size", want: wantMemory, in: s}
	v, err := t.number(math.MaxInt64)
	if err != nil {
		return 0, err
	}
	shift := 0
	if !t.end() {
		switch t.peek() | 0x20 {
		case 'k':
			shift = -10
		case 'm':
		case 'g':
			shift = 10
		case 't':
			shift = 20
		case 'p':
			shift = 30
		default:
			return 0, t.unexpected()
		}
		t.pos++
		if !t.end() && t.peek()|0x20 == 'b' {
			t.pos++
		}
	}
	if !t.end() {
		return 0, t.unexpected()
	}
	if shift < 0 {
		return v>>10 + min(v&1023, 1), nil
	}
	if v > math.MaxInt64>>(20+shift) { // the bytes must fit too
		return 0, t.fail(0, "too large")
	}
	return v << shift, nil
}

// FormatMemory writes MiB as squeue and scontrol do: the next unit is taken while what is left is a
// multiple of its half (1536 is 1.50G, 1500 stays 1500M). Quarter units and the like stay exact; a
// half unit inside a greater one is cut to two decimals, as Slurm 22.05 does.
func FormatMemory(mib int64) string {
	if mib == 0 {
		return "0"
	}
	const units = "MGTP"
	v, u := float64(mib), 0
	for v >= 1024 && int64(v)%512 == 0 && u < len(units)-1 {
		v /= 1024
		u++
	}
	if v == math.Trunc(v) {
		return strconv.FormatInt(int64(v), 10) + units[u:u+1]
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + units[u:u+1]
}
