package taskpid

import "syscall"

func stackOf(r *syscall.PtraceRegs) uintptr { return uintptr(r.Sp) }
