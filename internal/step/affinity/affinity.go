// Package affinity reads the lists of CPUs that tasks are bound to.
package affinity

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Parse reads a list such as "0-3,8".
func Parse(list string) (unix.CPUSet, error) {
	var set unix.CPUSet
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < 0 || b < a || b > 4096 {
			return set, fmt.Errorf("CPU list %q: %q is no range", list, part)
		}
		for c := a; c <= b; c++ {
			set.Set(c)
		}
	}
	return set, nil
}
