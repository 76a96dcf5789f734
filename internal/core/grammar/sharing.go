package grammar

import (
	"strconv"
	"strings"
)

// ParseSharing reads a partition's OverSubscribe: whether its jobs get whole nodes, whether all of them share their
// CPUs or only those that ask to, and with how many others. As Slurm: YES and FORCE alone mean four jobs a CPU.
func ParseSharing(text string) (whole, force bool, jobs int32, ok bool) {
	word, count, counted := strings.Cut(strings.ToUpper(text), ":")
	jobs = 4
	if counted {
		n, err := strconv.ParseUint(count, 10, 8)
		if err != nil || n == 0 || n > 64 {
			return false, false, 0, false
		}
		jobs = int32(n)
	}
	switch word {
	case "", "NO":
		return false, false, 1, !counted
	case "EXCLUSIVE":
		return true, false, 1, !counted
	case "YES":
		return false, false, jobs, true
	case "FORCE":
		return false, true, jobs, true
	}
	return false, false, 0, false
}
