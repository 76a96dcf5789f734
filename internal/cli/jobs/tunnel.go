package jobs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// tunnel keeps an SSH connection to a job while it runs: its ports are those of this machine, and somebody is
// connected.
type tunnel struct {
	app      *app.App
	client   *client.Client
	job      string
	name     string // of the run, for people
	ssh      *sshOptions
	forwards []forward
}

// Times between two tries to connect.
const (
	tunnelPause    = 200 * time.Millisecond
	maxTunnelPause = 5 * time.Second
)

// run connects when the job runs, and again when the connection is lost, until the job or ctx ends.
func (t *tunnel) run(ctx context.Context) {
	path, err := exec.LookPath("ssh")
	if err != nil {
		t.app.Note("there is no ssh program in PATH: no port of run %s is forwarded", t.name)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.app.Note("ports of run %s are not forwarded: %v", t.name, err)
		return
	}
	pause, told := tunnelPause, ""
	for t.running(ctx) {
		begun := time.Now()
		out := t.connect(ctx, path, self)
		if ctx.Err() != nil || !t.running(ctx) {
			return
		}
		if time.Since(begun) > maxTunnelPause {
			pause, told = tunnelPause, ""
		}
		if why := lastLine(out); why != told || told == "" {
			t.app.Note("connection to run %s lost; connecting again%s", t.name, because(why))
			told = why
		}
		if app.Wait(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, maxTunnelPause)
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// running waits until the job runs. It gives false when the job has ended, or ctx.
func (t *tunnel) running(ctx context.Context) bool {
	for {
		j, err := oneJob(ctx, t.client, t.job)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil && core.CodeOf(err) != core.Unavailable && core.CodeOf(err) != core.Exhausted:
			return false
		case err == nil && j.State == core.Running:
			return true
		case err == nil && j.State.Final() && !j.Flags.Has(core.Requeueing):
			return false
		}
		if app.Wait(ctx, tunnelPause) != nil {
			return false
		}
	}
}

// connect is one connection; it gives what ssh said at its end. ssh is in a process group of its own: Ctrl-C is a
// question to the user, not its end.
func (t *tunnel) connect(ctx context.Context, path, self string) string {
	args := []string{
		"-F", "none", "-N", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3",
	}
	for _, s := range t.ssh.settings(self) {
		args = append(args, "-o", s[0]+"="+s[1])
	}
	for _, f := range t.forwards {
		args = append(args, "-L", f.option())
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append(args, t.ssh.args[0])...)
	cmd.Stderr = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // with its ProxyCommand
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && out.Len() == 0 && ctx.Err() == nil {
		return err.Error()
	}
	return out.String()
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
