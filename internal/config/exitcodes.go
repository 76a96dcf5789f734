package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseExitCodes reads exit codes of programs, as in 3,10-12.
func ParseExitCodes(text string) ([]int32, error) {
	var out []int32
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.ParseUint(from, 10, 8)
		b, err2 := strconv.ParseUint(to, 10, 8)
		if err != nil || err2 != nil || a > b {
			return nil, fmt.Errorf("%q: expected exit codes from 0 to 255, as in 3,10-12", word)
		}
		for c := a; c <= b; c++ {
			out = append(out, int32(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
