package jobs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/cli/app"
)

// spawn attaches in a process of its own that outlives this one, and leaves when the run is a host of ssh.
func (o *attachOptions) spawn(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	said, err := os.CreateTemp("", "bireme-attach-")
	if err != nil {
		return err
	}
	defer os.Remove(said.Name())
	defer said.Close()
	args := []string{"attach", "--quiet", "--node", strconv.Itoa(o.node), "--host", o.host}
	if o.project != "" {
		args = append(args, "--project", o.project)
	}
	for _, p := range o.ports {
		args = append(args, "--port", p)
	}
	cmd := exec.Command(self, append(args, o.ref)...) // not of ctx: it outlives us
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if text, err := os.ReadFile(said.Name()); err == nil && isOffered(string(text)) {
			break
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(said.Name())
			return fmt.Errorf("%s", strings.TrimPrefix(strings.TrimSpace(string(text)), "bireme: "))
		default:
		}
		if err := app.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(said.Name())
	if err != nil {
		return err
	}
	fmt.Fprint(o.app.Err, string(text))
	o.app.Note("attached in the background until the run ends; to leave it before: kill %d", cmd.Process.Pid)
	return nil
}

// isOffered reports whether all was said that comes before a run can be used.
func isOffered(said string) bool {
	return strings.Contains(said, connectBy) || strings.Contains(said, connectNot)
}
