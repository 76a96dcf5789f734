package procuse

import (
	"os"
	"testing"
)

// TestProcUse: a process is seen to use what it uses.
func TestProcUse(t *testing.T) {
	t.Parallel()
	ballast := make([]byte, 8<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	p, ok := readProcUse(os.Getpid())
	if !ok || p.parent != os.Getppid() || p.rss < int64(len(ballast)) || p.vm < p.rss || p.maxRSS < p.rss ||
		p.maxVM < p.vm || p.read == 0 {
		t.Errorf("of this process: %+v, %v", p, ok)
	}
	if ballast[5] != 5 {
		t.Error("lost")
	}
	if _, ok := readProcUse(1 << 30); ok {
		t.Error("a process that is not there uses something")
	}
	if n := procField([]byte("VmPeak:\t   1234 kB\nVmHWM: 5 kB\n"), "VmHWM:"); n != 5 {
		t.Errorf("VmHWM is %d", n)
	}
}
