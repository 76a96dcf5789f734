// Package environ changes the environments of jobs, NUL-separated KEY=VALUE.
package environ

import (
	"bytes"
	"slices"
)

// Drop removes variables from NUL-separated KEY=VALUE: what the submitter's shell said about how to reach the
// cluster does not hold on another machine. It reads the environment once and copies it at most once: an environment is
// as large as a user makes it, and the node waits meanwhile.
func Drop(env []byte, keys ...string) []byte {
	var out []byte // nil: nothing is dropped so far
	for from := 0; from < len(env); {
		end := len(env)
		if n := bytes.IndexByte(env[from:], 0); n >= 0 {
			end = from + n + 1
		}
		one := env[from:end]
		drop := slices.ContainsFunc(keys, func(k string) bool {
			return len(one) > len(k) && one[len(k)] == '=' && string(one[:len(k)]) == k
		})
		switch {
		case drop && out == nil:
			out = append(make([]byte, 0, len(env)), env[:from]...)
		case !drop && out != nil:
			out = append(out, one...)
		}
		from = end
	}
	if out == nil {
		out = env
	}
	if len(out) > 0 && out[len(out)-1] != 0 {
		out = append(out[:len(out):len(out)], 0)
	}
	return out
}
