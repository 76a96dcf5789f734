package step

import "syscall"

func stackOf(r *syscall.PtraceRegs) uintptr { return uintptr(r.Sp) }
