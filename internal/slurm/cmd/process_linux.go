package cmd

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/slurm"
)

var rlimits = map[string]int{
	"CPU": unix.RLIMIT_CPU, "FSIZE": unix.RLIMIT_FSIZE, "DATA": unix.RLIMIT_DATA, "STACK": unix.RLIMIT_STACK,
	"CORE": unix.RLIMIT_CORE, "RSS": unix.RLIMIT_RSS, "NPROC": unix.RLIMIT_NPROC, "NOFILE": unix.RLIMIT_NOFILE,
	"MEMLOCK": unix.RLIMIT_MEMLOCK, "AS": unix.RLIMIT_AS,
}

var asking sync.Mutex

// ThisProcess reads what jobs inherit from this process. Go raises its own soft limit of open files at start,
// so that one is the parent's: the shell's, which is what the user means.
func ThisProcess() slurm.Process {
	p := slurm.Process{Limits: map[string]uint64{}}
	asking.Lock() // the kernel tells a mask only by changing it
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	asking.Unlock()
	p.Umask = uint32(mask)
	if prio, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		p.Nice = 20 - prio // the kernel's answer is 20 - nice
	}
	for name, which := range rlimits {
		pid := 0
		if which == unix.RLIMIT_NOFILE {
			pid = syscall.Getppid()
		}
		var l unix.Rlimit
		if unix.Prlimit(pid, which, nil, &l) == nil {
			p.Limits[name] = l.Cur
		}
	}
	return p
}

// Session is the caller's session id, shown as AllocNode:Sid.
func Session() int32 {
	sid, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return int32(sid)
}
