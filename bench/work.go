package main

import (
	"fmt"
	"strings"
	"sync"
)

// padding is comment and environment text that cannot be shared between jobs: each copy carries the job's number.
func padding(i int64, size int, prefix string) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%sjob %d line %d 0123456789abcdef\n", prefix, i, n)
	}
	return b.String()[:size-1] + "\n"
}

// scriptOf is a script of 2 KiB that runs `true`, unique per run and job.
func scriptOf(run string, i int64) string {
	head := "#!/bin/sh\ntrue\n# " + run + "\n"
	return head + padding(i, 2048-len(head), "# ")
}

var baseEnv = sync.OnceValue(func() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/", "LANG=C"}
})

// envOf is an environment of 6 KiB, unique per job.
func envOf(i int64) []string {
	env := append([]string(nil), baseEnv()...)
	size := 0
	for n := 0; size < 6<<10; n++ {
		v := fmt.Sprintf("BENCH_VARIABLE_%03d=%d-%d-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz", n, i, n)
		env = append(env, v)
		size += len(v) + 1
	}
	return env
}
