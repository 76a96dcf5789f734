package step

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// taskPID is the variable that tells a task its own number. Nobody knows it before the task is born, and it is born with
// its environment: so room is left for it, and filled in while the task stands still at its exec.
const (
	taskPID = "SLURM_TASK_PID="
	pidRoom = "0000000000"
)

// wantsPID tells whether an environment is one of Slurm's.
func wantsPID(env []string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "SLURM_JOB_ID=") })
}

// tellPID fills in the room. A process that cannot be written to, or has gone already, keeps the zeros: no reason to end it.
func tellPID(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil
	}
	// The name may hold anything; what follows it is numbers. The environment's place is the 50th and 51st field of all.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const from, to = 50 - 3, 51 - 3
	if len(f) <= to {
		return nil
	}
	start, err1 := strconv.ParseInt(f[from], 10, 64)
	end, err2 := strconv.ParseInt(f[to], 10, 64)
	if err1 != nil || err2 != nil || end <= start || end-start > 8<<20 {
		return nil
	}
	mem, err := os.OpenFile(dir+"/mem", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer mem.Close()
	env := make([]byte, end-start)
	if _, err := mem.ReadAt(env, start); err != nil {
		return nil
	}
	// It was laid last, and a value of the user's cannot begin with a zero byte.
	at := bytes.LastIndex(env, []byte("\x00"+taskPID+pidRoom+"\x00"))
	if at < 0 {
		return nil
	}
	value := make([]byte, len(pidRoom))
	copy(value, strconv.Itoa(pid))
	_, _ = mem.WriteAt(value, start+int64(at+1+len(taskPID)))
	return nil
}
