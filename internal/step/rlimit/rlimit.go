// Package rlimit knows the resource limits that processes of jobs may have, and those they have anyway.
package rlimit

import (
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Names are the resource limits by the names of Slurm's configuration and ulimit, in lower case.
var Names = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC,
	"rss": unix.RLIMIT_RSS, "stack": unix.RLIMIT_STACK,
}

// Set holds limits by their number.
type Set [16]unix.Rlimit

// OfChildren are the limits that children of this process inherit.
func OfChildren() (s Set) {
	for _, res := range Names {
		_ = unix.Getrlimit(res, &s[res])
	}
	s[unix.RLIMIT_NOFILE].Cur = childFiles()
	return s
}

// childFiles is the soft limit of open files that children have. Go lifts its own and gives children the old one back,
// which cannot be read here: a child says it. 0: it could not, and the limit is always set.
func childFiles() uint64 {
	out, err := exec.Command("/bin/sh", "-c", "ulimit -Sn").Output()
	text := strings.TrimSpace(string(out))
	if err == nil && text == "unlimited" {
		return unix.RLIM_INFINITY
	}
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}
