// Package rest gives back to the machine what a waiting daemon has no use for.
package rest

import (
	"bufio"
	"bytes"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// GiveBack returns memory to the system that a waiting agent has no use for: what its heap has spare, and its
// mapping of the program's file. Two thirds of that are touched by the start, where every package that is linked
// prepares itself, and a tenth by waiting; what is needed again is mapped again from the page cache.
func GiveBack() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		f := bytes.Fields(lines.Bytes()) // START-END PERMS OFFSET DEVICE INODE PATH
		if len(f) < 6 || string(f[5]) != self || bytes.IndexByte(f[1], 'w') >= 0 {
			continue
		}
		from, to, _ := bytes.Cut(f[0], []byte("-"))
		start, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		// Nothing is lost: what cannot be written is as it is in the file.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
	}
}
