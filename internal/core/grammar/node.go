package grammar

import (
	"fmt"
	"strings"
)

// NodeCount is how many nodes a job takes, from Min to Max.
type NodeCount struct{ Min, Max int }

// ParseNodeCount reads N, MIN-MAX and -MAX; each number may end in k or m for 1024 and 1024². The Msg
// of its *Error is the sentence Slurm prints.
func ParseNodeCount(s string) (NodeCount, error) {
	t := &text{what: "node count", want: "a number or a range such as 4 or 2-8", in: s}
	lo, hi, ranged := strings.Cut(s, "-")
	if !ranged {
		n, err := t.count(s, 0)
		return NodeCount{n, n}, err
	}
	c := NodeCount{Min: 1}
	var err error
	if lo != "" {
		if c.Min, err = t.count(lo, 0); err != nil {
			return NodeCount{}, err
		}
	}
	if c.Max, err = t.count(hi, len(lo)+1); err != nil {
		return NodeCount{}, err
	}
	if c.Max < c.Min {
		return NodeCount{}, t.fail(len(lo)+1, "Maximum node count %d is less than minimum node count %d", c.Max, c.Min)
	}
	return c, nil
}

// count reads one side of the range, which starts at pos of the input.
func (t *text) count(side string, pos int) (int, error) {
	const limit = 1 << 30
	digits := strings.TrimRight(side, "kKmM")
	factor := int64(1)
	switch strings.ToLower(side[len(digits):]) {
	case "":
	case "k":
		factor = 1 << 10
	case "m":
		factor = 1 << 20
	default:
		factor = 0
	}
	n := text{in: digits}
	v, err := n.number(limit)
	if err != nil || !n.end() || factor == 0 || v*factor > limit {
		return 0, t.fail(pos, "%q is not a valid node count", side)
	}
	return int(v * factor), nil
}

func (c NodeCount) String() string {
	if c.Min == c.Max {
		return fmt.Sprint(c.Min)
	}
	return fmt.Sprintf("%d-%d", c.Min, c.Max)
}
