package initd

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// The limits of a program are set by a process that then becomes the program: nobody else in a container has the right
// to.

// limitNames are those that a job can have set.
var limitNames = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC,
	"rss": unix.RLIMIT_RSS, "stack": unix.RLIMIT_STACK,
}

// limitArgs writes limits as Limit reads them: NAME=SOFT,…, with -1 for none.
func limitArgs(limits map[string]wire.RLimit) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if _, known := limitNames[name]; known {
			list = append(list, fmt.Sprintf("%s=%d", name, limits[name].Soft))
		}
	}
	return strings.Join(list, ",")
}

// Limit sets limits and becomes a program: LIMITS PATH ARGV…. It returns only if that fails. Nobody gets above what the
// container has.
func Limit(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("limit: %d arguments are too few", len(args))
	}
	for one := range strings.SplitSeq(args[0], ",") {
		name, value, _ := strings.Cut(one, "=")
		res, known := limitNames[name]
		soft, err := strconv.ParseInt(value, 10, 64)
		if !known || err != nil {
			return fmt.Errorf("limit: %q is none", one)
		}
		var have syscall.Rlimit
		if err := syscall.Getrlimit(res, &have); err != nil {
			return fmt.Errorf("limit %s: %w", name, err)
		}
		have.Cur = min(uint64(soft), have.Max) // -1 is infinity
		// By the standard library, which would else give a program the number of files back that it found itself.
		if err := syscall.Setrlimit(res, &have); err != nil {
			return fmt.Errorf("limit %s: %w", name, err)
		}
	}
	return &os.PathError{Op: "run", Path: args[1], Err: syscall.Exec(args[1], args[2:], os.Environ())}
}

// executable reports whether there is such a program, as far as can be seen before it is tried.
func executable(path, dir string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
