// Package procstat reads /proc/PID/stat.
package procstat

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Stat is what the kernel says of a process.
type Stat struct{ fields [][]byte }

// Fields of a process, as proc(5) counts them.
const (
	Parent   = 4
	Session  = 6
	Began    = 22 // ticks since boot
	EnvStart = 50
	EnvEnd   = 51
)

// first is the field that follows the name. The name may hold any character, so fields are counted from its end.
const first = 3

// Read reads a process below a folder such as /proc; false: it has gone.
func Read(proc string, pid int) (Stat, bool) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return Stat{}, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return Stat{f}, len(f) > 0
}

// State is the letter of the process's state.
func (s Stat) State() byte { return s.fields[0][0] }

// Ended reports whether the process has ended; a zombie has.
func (s Stat) Ended() bool { return s.State() == 'Z' || s.State() == 'X' }

// Has reports whether there is a field.
func (s Stat) Has(field int) bool { return field-first < len(s.fields) }

// Number is the number in a field; 0: there is none.
func (s Stat) Number(field int) int64 {
	if !s.Has(field) {
		return 0
	}
	n, _ := strconv.ParseInt(string(s.fields[field-first]), 10, 64)
	return n
}
