package gpu

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Kernel reads the kernel's messages as they come; the zero value begins with all it still has. Where it may not be
// read nothing is known from it.
type Kernel struct {
	KernelLog
	fd     int
	opened bool
}

// Read takes in what is new.
func (k *Kernel) Read() {
	if !k.opened {
		fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		k.fd, k.opened = fd, true
	}
	buf := make([]byte, 8<<10) // a record is never longer
	for {
		n, err := unix.Read(k.fd, buf)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR): // some were overwritten: continue with what there is
		case err != nil || n == 0:
			return
		default:
			k.Take(string(buf[:n]))
		}
	}
}

// Close closes the file.
func (k *Kernel) Close() {
	if k.opened {
		_ = unix.Close(k.fd) // it was only read
		k.opened = false
	}
}
