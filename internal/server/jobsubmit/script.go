package jobsubmit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/errno"
)

// Bounds of one call.
const (
	maxInstructions = 2_000_000
	maxText         = 32 << 20 // bytes of all texts that it makes
	maxTime         = 2 * time.Second
	maxTold         = 64 << 10 // bytes for the submitter
	maxFile         = 4 << 20  // of the script itself
)

// script is a job_submit.lua that was compiled, and the state it runs in.
type script struct {
	file    string
	cluster string
	log     *slog.Logger
	code    *lua.FunctionProto
	stamp   time.Time // of the file, when it was read
	size    int64

	turn  chan struct{} // holds one token: who has it may use what follows
	state *lua.LState   // nil: to be made
	call  *call         // the one under way
}

// loadScript reads and compiles a script, and runs its body once.
func loadScript(set Settings, log *slog.Logger) (*script, error) {
	s := &script{file: set.Script, cluster: set.Cluster, log: log, turn: make(chan struct{}, 1)}
	f, err := os.Open(set.Script)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "%v", err).Because(slurm.ReasonSubmitPlugin)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s.stamp, s.size = info.ModTime(), info.Size()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(text) > maxFile {
		return nil, core.Errorf(core.Invalid, "%s: it is longer than %d bytes, or cannot be read", set.Script, maxFile).
			Because(slurm.ReasonSubmitPlugin)
	}
	if s.code, err = compile(string(text), set.Script); err != nil {
		return nil, core.Errorf(core.Invalid, "%s", err).Because(slurm.ReasonSubmitPlugin)
	}
	s.turn <- struct{}{}
	if _, err := s.run(context.Background(), &call{}, func(*lua.LState) error { return nil }); err != nil {
		return nil, err
	}
	return s, nil
}

// changed reports whether the file is another than the one that was read.
func (s *script) changed() bool {
	info, err := os.Stat(s.file)
	return err == nil && (!info.ModTime().Equal(s.stamp) || info.Size() != s.size)
}

// seen takes the file as it is for the one that was read.
func (s *script) seen() {
	if info, err := os.Stat(s.file); err == nil {
		s.stamp, s.size = info.ModTime(), info.Size()
	}
}

// compile parses a script and rewrites its joins of texts to calls that are counted.
func compile(text, name string) (*lua.FunctionProto, error) {
	if strings.HasPrefix(text, "#") { // as lua: the first line may name an interpreter
		text = "--" + text
	}
	chunk, err := parse.Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, fmt.Errorf("%s", oneLine(err.Error()))
	}
	countJoins(chunk)
	code, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, fmt.Errorf("%s", oneLine(err.Error()))
	}
	return code, nil
}

// call is what one call has used of its bounds. It is the context that the interpreter asks before each instruction.
type call struct {
	context.Context
	instructions int
	text         int
	steps        int // of patterns
	end          time.Time
	told         []string
	toldSize     int
	over         string // the bound that was exceeded
	missing      string // a function that is not there was called
	now          *state.Snapshot
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done counts an instruction. Every so often the clock is read.
func (c *call) Done() <-chan struct{} {
	c.instructions++
	switch {
	case c.over != "":
	case c.instructions > maxInstructions:
		c.over = fmt.Sprintf("more than %d instructions", maxInstructions)
	case c.instructions%1024 == 0 && time.Now().After(c.end):
		c.over = fmt.Sprintf("longer than %v", maxTime)
	default:
		return nil
	}
	return closed
}

// Err is why the interpreter must stop.
func (c *call) Err() error {
	if c.over == "" {
		return nil
	}
	return fmt.Errorf("it took %s", c.over)
}

// spend counts bytes of a text that is being made.
func (c *call) spend(l *lua.LState, n int) {
	if c.text += n; n < 0 || c.text > maxText {
		c.over = fmt.Sprintf("more than %d MiB of memory for texts", maxText>>20)
		l.RaiseError("%s", c.over)
	}
}

// tell keeps lines for the submitter.
func (c *call) tell(text string) {
	if c.toldSize += len(text); c.toldSize <= maxTold {
		c.told = append(c.told, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	}
}

// run has do work in the script's state, in its turn and within the bounds.
func (s *script) run(ctx context.Context, c *call, do func(*lua.LState) error) (told []string, err error) {
	wait := time.NewTimer(maxTime)
	defer wait.Stop()
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-wait.C:
		return nil, broken("%s still works on another job; try again later", s.file)
	}
	done := make(chan error, 1)
	go func() { // ends with the call; a call that does not end keeps the turn
		err := s.work(c, do)
		s.turn <- struct{}{}
		done <- err
	}()
	late := time.NewTimer(maxTime + maxTime/2)
	defer late.Stop()
	select {
	case err := <-done:
		return c.told, err
	case <-late.C:
		s.log.Error("job_submit.lua: a call does not end; jobs are refused until it does", "script", s.file)
		return nil, broken("%s took longer than %v for this job", s.file, maxTime)
	}
}

// work runs in the script's turn. What goes wrong in the script is told in the log and, as in Slurm 22.05, lets the job
// pass; a bound that was exceeded, or a function that there is not, refuses it.
func (s *script) work(c *call, do func(*lua.LState) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.drop()
			err = broken("%s failed: %v", s.file, v)
		}
	}()
	c.Context, c.end = context.Background(), time.Now().Add(maxTime)
	s.call = c
	if s.state == nil {
		if err := s.open(); err != nil {
			s.drop()
			return s.judge(c, err, true)
		}
	} else {
		s.state.SetContext(c)
	}
	err = do(s.state)
	if err != nil {
		err = s.judge(c, err, false)
	} else if c.over != "" || c.missing != "" { // the script caught the error
		err = s.judge(c, fmt.Errorf("%s%s", c.over, c.missing), false)
	}
	if c.over != "" {
		s.drop()
	}
	return err
}

// judge words what a call failed with; nil: the job passes.
func (s *script) judge(c *call, err error, loading bool) error {
	var e *core.Error
	if asCore(err, &e) {
		return err
	}
	text := oneLine(err.Error())
	s.log.Error("job_submit.lua", "script", s.file, "err", text)
	switch {
	case c.over != "":
		return broken("%s took %s", s.file, c.over)
	case c.missing != "":
		return broken("%s: %s is not available to scripts here", s.file, c.missing)
	case loading:
		return broken("%s", text)
	}
	return nil
}

func (s *script) drop() {
	if s.state != nil {
		s.state.Close()
	}
	s.state = nil
}

// required are the functions that a script must have, as in Slurm.
var required = []string{"slurm_job_submit", "slurm_job_modify"}

// open makes a state and runs the script's body in it.
func (s *script) open() error {
	s.state = newState(s)
	s.state.SetContext(s.call)
	s.state.Push(s.state.NewFunctionFromProto(s.code))
	if err := s.state.PCall(0, 0, nil); err != nil {
		return err
	}
	for _, name := range required {
		if _, ok := s.state.GetGlobal(name).(*lua.LFunction); !ok {
			return fmt.Errorf("%s: the function %s is not present", s.file, name)
		}
	}
	return nil
}

// function calls one of the required functions and gives its answer as a number; anything else is 0, as in Slurm.
func (s *script) function(l *lua.LState, name string, args ...lua.LValue) (int, error) {
	err := l.CallByParam(lua.P{Fn: l.GetGlobal(name), NRet: 1, Protect: true}, args...)
	if err != nil {
		return 0, err
	}
	defer l.SetTop(0)
	if n, ok := l.Get(-1).(lua.LNumber); ok {
		return int(n), nil
	}
	return 0, nil
}

// answer is the error for what a function returned.
func answer(code int, told []string) error {
	if code == 0 {
		return nil
	}
	return refusal(errno.Reason(code), told)
}

// submit calls slurm_job_submit.
func (s *script) submit(ctx context.Context, in *Submission) ([]string, error) {
	if s == nil {
		return nil, broken("there is no job_submit.lua that can be loaded; the server's log says why")
	}
	c := &call{now: in.Now}
	return s.run(ctx, c, func(l *lua.LState) error {
		d := &desc{Submission: in, call: c}
		code, err := s.function(l, "slurm_job_submit", d.table(l), partTable(l, in.Now), lua.LNumber(in.By))
		if err == nil {
			err = answer(code, c.told)
		}
		d.finish()
		return err
	})
}

func oneLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\nstack traceback")
	return strings.Join(strings.Fields(first), " ")
}
