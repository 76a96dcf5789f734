package step

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

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
				out, err := s.taskHook(program, "prolog_task", groups, p.env)
				if p.env = p.follow(out); err != nil {
					p.err = err
					return
				}
			}
		})
	}
	all.Wait()
	return list
}

// follow does what a task prolog wrote: export NAME=value, unset NAME, print text. Other lines mean nothing. The last
// word on a name counts, so the environment is gone through once: a prolog of the user's own writes as many lines as it
// likes.
func (p *prepared) follow(out []byte) []string {
	type change struct {
		value   string // NAME=value
		set     bool
		cleared bool // was unset at some point: what was there before goes
	}
	changes := map[string]*change{}
	var order []*change
	about := func(name string) *change {
		c := changes[name]
		if c == nil {
			c = &change{}
			changes[name] = c
			order = append(order, c)
		}
		return c
	}
	var prints strings.Builder
	for line := range strings.Lines(string(out)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch word {
		case "export":
			if name, _, ok := strings.Cut(rest, "="); ok && name != "" && !strings.ContainsAny(name, " \t") {
				c := about(name)
				c.value, c.set = rest, true
			}
		case "unset":
			c := about(rest)
			c.set, c.cleared = false, true
		case "print":
			prints.WriteString(rest + "\n")
		}
	}
	p.prints += prints.String()
	if len(order) == 0 {
		return p.env
	}
	env := make([]string, 0, len(p.env)+len(order))
	for _, e := range p.env {
		c := changes[nameOf(e)]
		switch {
		case c == nil || !c.set && !c.cleared: // not spoken of, or replaced where it stood first
			env = append(env, e)
		case c.set && !c.cleared:
			env = append(env, c.value)
			c.set = false
		}
	}
	for _, c := range order {
		if c.set {
			env = append(env, c.value)
		}
	}
	return env
}

// epilogs runs the task epilogs of a task that has ended. What goes wrong is told and changes nothing.
func (s *step) epilogs(i int) {
	env := s.environ()
	if t := s.l.Program.Tasks; len(t) > 0 {
		env = overlay(env, t[i].Env)
	}
	groups, err := s.k.supplementary(s.l.Identity)
	for _, program := range s.l.Program.TaskEpilog {
		if err == nil {
			_, err = s.taskHook(program, "epilog_task", groups, env)
		}
		if err != nil {
			s.io.notice("TaskEpilog failed: %v", err)
			return
		}
	}
}

// taskHook runs one such program in the directory of the step. What it wrote comes back; of one that failed the first
// line is part of the error, too.
func (s *step) taskHook(program, context string, groups []uint32, env []string) ([]byte, error) {
	dir := s.l.Program.WorkDir
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		dir = "/tmp"
	}
	timeout := s.l.Hooks.Timeout
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
	s.io.notice("TaskProlog failed: %v", err)
	f := &failure{cause: wire.CauseExecFailed, code: 1, message: "task prolog " + err.Error()}
	var code exitCode
	if errors.As(err, &code) {
		f.code = int(code)
	}
	return f
}
