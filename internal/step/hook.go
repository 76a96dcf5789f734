package step

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// helper is a program run beside a job: a prolog, an epilog, a login shell.
type helper struct {
	argv    []string
	login   bool // run as a login shell: by the name it sees, which every shell understands
	env     []string
	attr    *syscall.SysProcAttr
	in      *step // whose cgroups or namespace it runs in; nil: none
	dir     string
	timeout time.Duration
	max     int // bytes of output kept
}

const maxHookOutput = 4 << 10

// run runs the helper and returns what it wrote, standard output first cut at max.
func (k *Keeper) runHelper(h helper) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil, err
	}
	done := make(chan unix.WaitStatus, 1)
	c := &child{exited: func(status unix.WaitStatus, _ *unix.Rusage) { done <- status }}
	spoilt := k.threads.do(func(th *thread) {
		if h.in != nil && h.in.cg != nil {
			defer func() {
				if err := h.in.cg.Leave(); err != nil {
					th.spoil(err)
				}
			}()
			if err = h.in.cg.Join(); err != nil {
				return
			}
		}
		argv := h.argv
		if h.login {
			argv = append([]string{"-" + filepath.Base(argv[0])}, argv[1:]...)
		}
		err = k.reaper.fork(c, func() (int, error) {
			return h.in.bear(th, func() (int, error) {
				return syscall.ForkExec(h.argv[0], argv, &syscall.ProcAttr{
					Dir: h.dir, Env: h.env, Sys: h.attr, Files: []uintptr{null.Fd(), w.Fd(), w.Fd()},
				})
			})
		})
	})
	w.Close()
	null.Close()
	if spoilt != nil {
		k.log.Error("a launcher thread was given up", "err", spoilt)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.argv[0], err)
	}
	out := make(chan []byte, 1)
	go func() { // ends when the pipe does, or is closed below
		b, _ := io.ReadAll(io.LimitReader(r, int64(h.max)))
		_, _ = io.Copy(io.Discard, r)
		out <- b
	}()
	late := time.NewTimer(h.timeout)
	defer late.Stop()
	var status unix.WaitStatus
	select {
	case status = <-done:
		// A daemon it left behind may hold the pipe: what the program itself wrote is there now.
		_ = r.SetReadDeadline(time.Now().Add(time.Second))
	case <-late.C:
		_ = unix.Kill(-c.pid, unix.SIGKILL) // it leads a session, so its group has its number
		<-done
		_ = r.SetReadDeadline(time.Now())
		return <-out, fmt.Errorf("%s: %w after %s", h.argv[0], errTooLong, h.timeout)
	}
	b := <-out
	switch {
	case status.Signaled():
		return b, fmt.Errorf("%s: killed by signal %d", h.argv[0], status.Signal())
	case status.ExitStatus() != 0:
		return b, fmt.Errorf("%s: %w", h.argv[0], exitCode(status.ExitStatus()))
	}
	return b, nil
}

// hook runs a prolog or epilog.
func (k *Keeper) hook(j *job, what string, argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	timeout := j.hooks.Timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	own := make([]string, len(j.hooks.Env))
	for i, e := range j.hooks.Env {
		own[i] = told(e)
	}
	env = set(env, own)
	env = set(env, []string{"SLURM_SCRIPT_CONTEXT=" + what + "_slurmd"})
	if j.tmp != "" {
		env = set(env, []string{"BIREME_TMPDIR=" + j.tmp})
	}
	if what == "epilog" {
		env = set(env, j.ended())
	}
	out, err := k.runHelper(helper{
		argv: argv, env: env, attr: &syscall.SysProcAttr{Setsid: true}, dir: "/", timeout: timeout, max: maxHookOutput,
	})
	if err != nil {
		if line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte{'\n'}); len(line) > 0 {
			return fmt.Errorf("%s %w: %s", what, err, line)
		}
		return fmt.Errorf("%s %w", what, err)
	}
	return nil
}

// maxHookVar bounds what a prolog is told in one variable: the kernel takes 128 KiB.
const maxHookVar = 64 << 10

// told is a variable as the kernel takes it. What users write must not make a prolog fail that would be well: its node
// would be taken for broken.
func told(variable string) string {
	variable, _, _ = strings.Cut(variable, "\x00")
	return variable[:min(len(variable), maxHookVar)]
}

// note keeps how a step ended, for the epilog. The keeper's lock is held.
func (j *job) note(x *wire.Exited) {
	if x.Key.Step == wire.BatchStep {
		j.result = [2]int{x.ExitCode, x.Signal}
	} else {
		j.worst = max(j.worst, x.ExitCode)
	}
}

// ended is what the epilog is told of the job's end, as far as this node has seen it: the status as wait(2) gives it,
// then in words.
func (j *job) ended() []string {
	j.k.mu.Lock()
	code, signal, worst := j.result[0], j.result[1], j.worst
	j.k.mu.Unlock()
	return []string{
		"SLURM_JOB_EXIT_CODE=" + strconv.Itoa(code<<8|signal), fmt.Sprintf("SLURM_JOB_EXIT_CODE2=%d:%d", code, signal),
		"SLURM_JOB_DERIVED_EC=" + strconv.Itoa(worst),
	}
}

// envMark stands before the environment in what a login shell prints: profiles may print, too.
const envMark = "---bireme-environment---"

// loginEnv is what the user's login shell makes of an empty environment.
func (k *Keeper) loginEnv(s *step, groups []uint32) ([]string, error) {
	id := s.l.Identity
	shell, home := id.Shell, id.Home
	if shell == "" {
		shell = k.shellOf(id.UID)
	}
	if shell == "" || strings.HasSuffix(shell, "/nologin") || strings.HasSuffix(shell, "/false") {
		shell = "/bin/sh"
	}
	if home == "" {
		home = k.homeOf(id.UID)
	}
	timeout := s.l.Program.LoginEnvTimeout
	if timeout == 0 {
		timeout = 2 * time.Minute
	}
	dir := home
	if st, err := os.Stat(home); err != nil || !st.IsDir() {
		dir = "/"
	}
	attr := s.attr(groups)
	out, err := k.runHelper(helper{
		argv: []string{shell, "-c", "echo " + envMark + "; exec env -0"}, login: true,
		env: []string{
			"HOME=" + home, "SHELL=" + shell, "USER=" + id.Name, "LOGNAME=" + id.Name,
			"PATH=/usr/local/bin:/usr/bin:/bin", s.k.mark(s.key),
		},
		attr: attr, in: s, dir: dir, timeout: timeout, max: 1 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("login environment of %s: %w", nameOr(id.Name, id.UID), err)
	}
	_, list, ok := bytes.Cut(out, []byte(envMark+"\n"))
	if !ok {
		return nil, fmt.Errorf("login environment of %s: nothing came from %s", nameOr(id.Name, id.UID), filepath.Base(shell))
	}
	var env []string
	for e := range strings.SplitSeq(string(list), "\x00") {
		if strings.Contains(e, "=") && !strings.HasPrefix(e, "_=") && !strings.HasPrefix(e, "SHLVL=") {
			env = append(env, e)
		}
	}
	return env, nil
}

func nameOr(name string, uid uint32) string {
	if name != "" {
		return name
	}
	return "uid " + strconv.FormatUint(uint64(uid), 10)
}
