package cgroup

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// fd is an open control file. These are read and written thousands of times a second, so they stay open and spare the
// poller; none of them ever blocks for long.
type fd int

const closed fd = -1

func open(dir, name string, flags int) (fd, error) {
	path := filepath.Join(dir, name)
	n, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return closed, fmt.Errorf("open %s: %w", path, err)
	}
	return fd(n), nil
}

func (f *fd) close() {
	if *f != closed {
		_ = unix.Close(int(*f))
		*f = closed
	}
}

// write puts one value; the kernel takes or refuses it whole.
func (f fd) write(b []byte) error {
	for {
		_, err := unix.Write(int(f), b)
		if err != unix.EINTR {
			return err
		}
	}
}

// read returns the whole of a small control file, using buf.
func (f fd) read(buf []byte) ([]byte, error) {
	for {
		n, err := unix.Pread(int(f), buf, 0)
		if err == nil {
			return buf[:n], nil
		}
		if err != unix.EINTR {
			return nil, err
		}
	}
}

// number reads a file that holds one number.
func (f fd) number() (int64, error) {
	var buf [32]byte
	b, err := f.read(buf[:])
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
}

// field reads the number behind a key in a file of "key value" lines; zero when the key is not there.
func field(text []byte, key string) int64 {
	for line := range bytes.Lines(text) {
		k, v, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		if ok && string(k) == key {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// writeFile sets a control file that is not kept open.
func writeFile(dir, name, value string) error {
	f, err := open(dir, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.write([]byte(value)); err != nil {
		return fmt.Errorf("write %q to %s: %w", value, filepath.Join(dir, name), err)
	}
	return nil
}

// procs lists the processes of a cgroup. The file is opened each time: v1 repeats to an open one what it said before.
// The calling process is left out: in v1 one of its threads may be there to fork.
func procs(dir string) ([]int, error) {
	f, err := open(dir, "cgroup.procs", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.close()
	var list []int
	var buf [4096]byte
	var off int64
	n, in := 0, false
	self := unix.Getpid()
	add := func() {
		if n != self {
			list = append(list, n)
		}
		n, in = 0, false
	}
	for {
		m, err := unix.Pread(int(f), buf[:], off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return list, err
		}
		if m == 0 {
			if in {
				add()
			}
			return list, nil
		}
		off += int64(m)
		for _, c := range buf[:m] {
			switch {
			case '0' <= c && c <= '9':
				n, in = n*10+int(c-'0'), true
			case in:
				add()
			}
		}
	}
}
