package step

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/step/prologenv"
	"bireme.dev/bireme/internal/wire"
)

// prepared is what the task prologs made of a task before it begins.
type prepared struct {
	env    []string // all of its environment
	prints string   // what it finds in its output already
	err    error    // it must not begin
}

// prologs runs the task prologs of all tasks, as the user and among the step's processes; nil if there are none. It is
// done before the launcher thread is taken: they may take long.
func (s *step) prologs(groups []uint32, env []string) []prepared {
	programs := s.l.Program.TaskProlog
	if len(programs) == 0 || s.l.StandsIn() {
		return nil
	}
	tasks := s.l.Program.Tasks
	if len(tasks) == 0 {
		tasks = []wire.Task{{}}
	}
	list := make([]prepared, len(tasks))
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			p := &list[i]
			p.env = overlay(env, tasks[i].Env)
			for _, program := range programs {
				if !filepath.IsAbs(program) {
					p.err = relativeHook(program)
					return
				}
				out, err := s.taskHook(program, "prolog_task", groups, p.env, s.l.Hooks.Timeout)
				prints := ""
				p.env, prints = prologenv.Follow(p.env, out)
				if p.prints += prints; err != nil {
					p.err = err
					return
				}
			}
		})
	}
	all.Wait()
	return list
}

// epilogs runs the task epilogs of a task that has ended. What goes wrong is told and changes nothing.
func (s *step) epilogs(i int) {
	env := s.environ()
	if t := s.l.Program.Tasks; len(t) > 0 {
		env = overlay(env, t[i].Env)
	}
	groups, err := s.k.supplementary(s.l.Identity)
	for _, program := range s.l.Program.TaskEpilog {
		if err == nil && !filepath.IsAbs(program) {
			err = relativeHook(program)
		}
		if err == nil {
			_, err = s.taskHook(program, "epilog_task", groups, env, maxTaskEpilog)
		}
		if err == nil {
			continue
		}
		status := hookStatus(err)
		if status < 0 {
			s.io.notice("Could not run user task_epilog [%s]: access denied", program)
		}
		s.io.notice("TaskEpilog failed status=%d", status)
		return
	}
}

// maxTaskEpilog is how long the epilog of a task may run, as in Slurm.
const maxTaskEpilog = 5 * time.Second

// errTooLong is the end of a program that ran for too long.
var errTooLong = errors.New("killed")

// relativeHook is a program that is not named by its whole path. It is not run.
type relativeHook string

func (p relativeHook) Error() string { return string(p) + " is not fully qualified pathname" }

// hookStatus is how a program ended, as wait gives it; -1: it did not run.
func hookStatus(err error) int {
	var code exitCode
	switch {
	case errors.As(err, &code):
		return int(code) << 8
	case errors.Is(err, errTooLong):
		return int(syscall.SIGKILL)
	}
	return -1
}

// taskHook runs one such program in the directory of the step. What it wrote comes back; of one that failed the first
// line is part of the error, too.
func (s *step) taskHook(program, context string, groups []uint32, env []string, timeout time.Duration) (
	[]byte, error,
) {
	dir := s.l.Program.WorkDir
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		dir = "/tmp"
	}
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	out, err := s.k.runHelper(helper{
		argv: []string{findProgram(program, env)}, env: overlay(env, []string{"SLURM_SCRIPT_CONTEXT=" + context}),
		attr: s.attr(groups), in: s, dir: dir, timeout: timeout, max: 1 << 20,
	})
	if err == nil {
		return out, nil
	}
	if line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte{'\n'}); len(line) > 0 {
		err = fmt.Errorf("%w: %s", err, line)
	}
	return out, err
}

// spoilt is the end of a step one of whose tasks may not begin: with the code its prolog left with.
func (s *step) spoilt(err error) *failure {
	var relative relativeHook
	if errors.As(err, &relative) {
		s.io.notice("run_command: user task_prolog is not fully qualified pathname (%s)", string(relative))
		s.io.notice("user task_prolog did not exit normally. reason: Run command failed - configuration error")
		s.io.notice("--task-prolog failed status=1")
		return &failure{cause: wire.CauseExecFailed, code: 1, message: "task prolog " + err.Error()}
	}
	s.io.notice("TaskProlog failed: %v", err)
	f := &failure{cause: wire.CauseExecFailed, code: 1, message: "task prolog " + err.Error()}
	var code exitCode
	if errors.As(err, &code) {
		f.code = int(code)
	}
	return f
}
