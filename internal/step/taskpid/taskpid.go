package taskpid

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/procstat"
)

// taskPID is the variable that tells a task its own number. Nobody knows it before the task is born, and it is born
// with its environment: so room is left for it, and filled in while the task stands still at its exec.
const (
	taskPID = "SLURM_TASK_PID="
	pidRoom = "00000000" // one word of memory; numbers of processes have seven digits at most
)

// Wanted reports whether an environment is one of Slurm's.
func Wanted(env []string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "SLURM_JOB_ID=") })
}

// Reserve puts the variable last, where its place is known without looking at the others.
func Reserve(env []string) []string {
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, taskPID) {
			out = append(out, e)
		}
	}
	return append(out, taskPID+pidRoom)
}

// Fill fills in the room; vars is how long the environment is. A process that cannot be written to, or has gone
// already, keeps the zeros: no reason to end it.
func Fill(pid, vars int) error {
	value := make([]byte, len(pidRoom))
	copy(value, strconv.Itoa(pid))
	if !tellByStack(pid, vars, value) {
		tellByFile(pid, value)
	}
	return nil
}

// tellByStack finds the variable as the task itself will: above its stack's first word, the number of its arguments,
// lie their addresses, a zero, and the addresses of the variables. It costs a sixth of reading files of /proc.
func tellByStack(pid, vars int, value []byte) bool {
	const word = 8
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return false
	}
	at := stackOf(&regs)
	var b [word]byte
	peek := func(at uintptr) uint64 {
		if n, err := syscall.PtracePeekData(pid, at, b[:]); err != nil || n != word {
			return 0
		}
		return binary.NativeEndian.Uint64(b[:])
	}
	args := peek(at)
	if args == 0 || args > 1<<20 { // a program of another word size
		return false
	}
	room := uintptr(peek(at + word*uintptr(1+args+1+uint64(vars)-1)))
	if room == 0 {
		return false
	}
	room += uintptr(len(taskPID))
	if peek(room); string(b[:]) != pidRoom {
		return false
	}
	n, err := syscall.PtracePokeData(pid, room, value)
	return err == nil && n == len(value)
}

// tellByFile looks the variable up in the task's memory.
func tellByFile(pid int, value []byte) {
	stat, ok := procstat.Read("/proc", pid)
	if !ok {
		return
	}
	start, end := stat.Number(procstat.EnvStart), stat.Number(procstat.EnvEnd)
	if start <= 0 || end <= start || end-start > 8<<20 {
		return
	}
	mem, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer mem.Close()
	env := make([]byte, end-start)
	if _, err := mem.ReadAt(env, start); err != nil {
		return
	}
	// It was laid last, and a value of the user's cannot begin with a zero byte.
	if at := bytes.LastIndex(env, []byte("\x00"+taskPID+pidRoom+"\x00")); at >= 0 {
		_, _ = mem.WriteAt(value, start+int64(at+1+len(taskPID)))
	}
}
