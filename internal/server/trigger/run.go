package trigger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/nice"
)

const (
	// maxRunning is how many programs run at once. What fires beyond waits.
	maxRunning = 16
	// programTimeout is how long a program may take, as Slurm's.
	programTimeout = 5 * time.Minute
)

// start begins the program of a trigger if there is room. One that cannot begin is told in the log: there is nobody to
// tell it to.
func (w *Watcher) start(ctx context.Context, e *entry) {
	w.mu.Lock()
	t, arg := e.Trigger, e.Arg
	full := t.UID != 0 && w.running[t.UID] >= maxOwnRunning
	w.mu.Unlock()
	if full {
		return // it is due still
	}
	select {
	case w.slots <- struct{}{}:
	default:
		return // likewise
	}
	c, err := command(ctx, t.UID, append(strings.Fields(t.Program), arg), w.cfg().Env)
	if err == nil {
		w.log.Info("trigger", "id", t.ID, "user", t.User, "program", t.Program, "arg", arg)
	} else {
		w.log.Warn("the program of a trigger was not run", "id", t.ID, "user", t.User, "err", err)
	}
	w.mu.Lock()
	if t.Perm {
		e.Due, e.Arg = 0, ""
	} else {
		e.gone = true
	}
	w.running[t.UID]++
	w.mu.Unlock()
	go func() {
		defer func() {
			w.mu.Lock()
			if w.running[t.UID]--; w.running[t.UID] == 0 {
				delete(w.running, t.UID)
			}
			w.mu.Unlock()
			<-w.slots
		}()
		if err != nil {
			return
		}
		defer c.stop()
		if err := nice.Run(c.Cmd); err != nil && !errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
			w.log.Warn("trigger", "id", t.ID, "user", t.User, "program", t.Program, "err", err)
		}
	}()
}

// stays reports whether a trigger has not come to its end: it is permanent, or there was no room for its program.
func (w *Watcher) stays(e *entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !e.gone && (e.Perm || e.Due != 0)
}

// await waits for the programs that run to end.
func (w *Watcher) await() {
	for range cap(w.slots) {
		w.slots <- struct{}{}
	}
}

type program struct {
	*exec.Cmd
	stop context.CancelFunc
}

// command is a program as a user of this host. It has nothing of the server's: neither its rights, nor its
// environment, files or terminal, and it ends with all it started in its process group when its time is over. A server
// that is not root runs programs of its own user alone.
func command(ctx context.Context, uid uint32, argv, env []string) (*program, error) {
	u, err := account.ByUID(uid)
	if err != nil {
		return nil, fmt.Errorf("uid %d: %w", uid, err)
	}
	inner, stop := context.WithTimeout(ctx, programTimeout)
	argv = bounded(uid, argv)
	c := exec.CommandContext(inner, argv[0], argv[1:]...)
	c.Dir, c.WaitDelay = "/", time.Second
	c.Env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name,
	}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	switch euid := os.Geteuid(); {
	case euid == 0:
		groups, err := account.Groups(u)
		if err != nil {
			stop()
			return nil, fmt.Errorf("groups of %s: %w", u.Name, err)
		}
		c.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: groups}
	case uint32(euid) != uid:
		stop()
		return nil, fmt.Errorf("this server is not root and cannot run programs as %s", u.Name)
	}
	return &program{c, stop}, nil
}
