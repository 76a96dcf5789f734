package standin

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// A step's own container (srun --container-image) belongs to none of its tasks: whichever ends first, the others
// continue in it. So a process beside the tasks' stand-ins has it made and holds it; the keeper, which knows that
// process as one of the step's, ends it with the step.

// startHost starts that process from the stand-in of the node's first task. launch is read again by it.
func startHost(launch *os.File) error {
	if !slices.Contains(os.Environ(), "SLURM_LOCALID=0") {
		return nil
	}
	if _, err := launch.Seek(0, io.SeekStart); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", "host")
	cmd.ExtraFiles = []*os.File{launch}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start() // nobody waits for it: when we end it is the keeper's, whose mark it has
}
