// Package sattach is the command that joins the streams of a step that runs: it shows what its tasks write from then
// on, sends them what is typed, and ends as the step does.
package sattach

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
	"bireme.dev/bireme/internal/wire"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "input-filter", Short: 'i', Arg: getopt.RequiredArg},
	{Long: "output-filter", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "error-filter", Short: 'e', Arg: getopt.RequiredArg},
	{Long: "label", Short: 'l'},
	{Long: "layout"},
	{Long: "pty"},
	{Long: "quiet", Short: 'Q'},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "help", Short: 'h'},
	{Long: "usage", Short: 'u'},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// everyTask is a filter that lets all tasks through.
const everyTask int32 = -1

// watcher is the command.
type watcher struct {
	w         *cmd.World
	conn      *wire.Conn
	in        int32 // the task that gets input
	out, err  int32 // the task whose output is shown
	wantLabel bool
	layout    bool

	labels *cmd.Labels
	left   map[core.NodeName]bool // nodes that have not said their last; nil: it is not known yet
	exit   core.Exit              // the worst of all tasks
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, ok := w.Parse(parser, args)
	if !ok {
		return slurm.ExitError
	}
	switch {
	case f.Has("version"):
		return w.PrintVersion()
	case f.Has("help"):
		return w.PrintHelp(parser)
	case f.Has("usage"):
		return w.PrintUsage(parser)
	}
	s := &watcher{w: w, wantLabel: f.Has("label"), layout: f.Has("layout")}
	job, step, err := s.prepare(f)
	if err != nil {
		w.Errorf("%v", err)
		if errors.Is(err, errOperands) || errors.Is(err, errNoStep) {
			fmt.Fprint(w.Err, manual.Of(w.Name, parser).Usage())
		}
		return slurm.ExitError
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	raw, err := c.Attach(ctx, job, step)
	if err != nil {
		if core.CodeOf(err) == core.NotFound || core.CodeOf(err) == core.Gone {
			err = core.Errorf(core.NotFound, "there is no such step that runs under an srun").Because(slurm.ReasonInvalidJobID)
		}
		w.Errorf("Could not get job step info: %s", slurm.ErrorText(err))
		w.HintOf(err)
		return slurm.ExitError
	}
	s.conn = wire.NewConn(raw)
	defer s.conn.Close()
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	if f.Has("pty") {
		t := cmd.RawTerminal(w.In)
		if t == nil {
			w.Errorf("Not using a pseudo-terminal, disregarding --pty option")
		}
		defer t.Restore()
	}
	return s.run(ctx, c, job, step)
}

// What Slurm says of operands that are no step; the usage line follows.
var (
	errOperands = errors.New("too many parameters") // also of none
	errNoStep   = errors.New("Failed to parse stepid from command line options")
)

// prepare reads what is asked for.
func (s *watcher) prepare(f cmd.Flags) (job, step string, err error) {
	for _, x := range []struct {
		option string
		to     *int32
	}{{"input-filter", &s.in}, {"output-filter", &s.out}, {"error-filter", &s.err}} {
		*x.to = everyTask
		if v := f.Get(x.option); v != "" && v != "all" {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 0 {
				return "", "", fmt.Errorf("Invalid --%s: %s is no number of a task", x.option, v)
			}
			*x.to = int32(n)
		}
	}
	if len(f.Operands) != 1 {
		return "", "", errOperands
	}
	if f.Has("pty") && s.wantLabel {
		return "", "", errors.New("--label and --pty exclude each other")
	}
	job, step, ok := strings.Cut(f.Operands[0], ".")
	if _, err := strconv.ParseUint(step, 10, 31); !ok || job == "" || err != nil {
		return "", "", errNoStep
	}
	return job, step, nil
}

// run shows what comes until the step has ended.
func (s *watcher) run(ctx context.Context, c *client.Client, job, step string) int {
	for s.left == nil || len(s.left) > 0 {
		f, err := s.conn.Next()
		if err != nil || f.Type == wire.TypeBye {
			return s.cut(ctx, c, job, step)
		}
		if err := s.frame(f); err != nil {
			s.w.Errorf("step %s.%s: %v", job, step, err)
			return slurm.ExitError
		}
		if s.layout && s.left != nil {
			return 0
		}
	}
	s.lastLines()
	return code(s.exit)
}

// cut ends the watch where the streams ended before the step said its last: its record may tell.
func (s *watcher) cut(ctx context.Context, c *client.Client, job, step string) int {
	s.lastLines()
	if ctx.Err() != nil {
		return slurm.ExitError
	}
	list, err := c.Steps(ctx, job)
	if err == nil {
		for i := range list.Steps {
			if st := &list.Steps[i]; strconv.Itoa(int(st.ID)) == step && st.State.Final() {
				return code(st.Exit)
			}
		}
	}
	s.w.Errorf("Lost the streams of step %s.%s: its srun has left, or this command did not keep up", job, step)
	return slurm.ExitError
}

func (s *watcher) frame(f wire.Frame) error {
	switch f.Type {
	case wire.TypeLayout:
		var l wire.StepLayout
		if err := f.Decode(&l); err != nil {
			return err
		}
		s.laidOut(&l)
	case wire.TypeIO:
		var h wire.IOHeader
		if err := f.Decode(&h); err != nil {
			return err
		}
		return s.write(cmd.Lane{Rank: h.Rank, FD: h.FD}, f.Payload)
	case wire.TypeTaskExit, wire.TypeStepExit:
		var t wire.TaskExit
		if err := f.Decode(&t); err != nil {
			return err
		}
		s.exit.Code, s.exit.Signal = max(s.exit.Code, t.Exit.Code), max(s.exit.Signal, t.Exit.Signal)
		if f.Type == wire.TypeStepExit {
			delete(s.left, t.Node)
		}
	}
	return nil
}

// laidOut takes where the tasks are; it comes again when others join.
func (s *watcher) laidOut(l *wire.StepLayout) {
	if s.left != nil {
		return
	}
	s.left = map[core.NodeName]bool{}
	for _, n := range l.Nodes {
		s.left[n] = true
	}
	if s.layout {
		s.printLayout(l)
		return
	}
	if s.wantLabel {
		highest := int32(0)
		for _, ranks := range l.Ranks {
			for _, r := range ranks {
				highest = max(highest, r)
			}
		}
		s.labels = cmd.NewLabels(highest)
	}
	go s.input() // ends with the input, or with the process: a read of a terminal cannot be broken off
}

// printLayout tells which tasks are where, as Slurm does.
func (s *watcher) printLayout(l *wire.StepLayout) {
	names, tasks := make([]string, len(l.Nodes)), 0
	for i, n := range l.Nodes {
		names[i] = string(n)
		tasks += len(l.Ranks[i])
	}
	fmt.Fprintf(s.w.Out, "Job step layout:\n\t%d tasks, %d nodes (%s)\n\n", tasks, len(names), hostlist.Fold(names))
	for i, n := range names {
		fmt.Fprintf(s.w.Out, "\tNode %d (%s), %d task(s): ", i, n, len(l.Ranks[i]))
		for _, r := range l.Ranks[i] {
			fmt.Fprintf(s.w.Out, "%d ", r)
		}
		fmt.Fprintln(s.w.Out)
	}
}

func (s *watcher) write(l cmd.Lane, data []byte) error {
	to, filter := s.w.Out, s.out
	if l.FD == 2 {
		to, filter = s.w.Err, s.err
	}
	if filter != everyTask && filter != l.Rank {
		return nil
	}
	if s.labels != nil {
		data = s.labels.Add(l, data)
	}
	if len(data) == 0 {
		return nil
	}
	_, err := to.Write(data)
	return err
}

func (s *watcher) lastLines() {
	if s.labels == nil {
		return
	}
	for _, l := range s.labels.Open() {
		_ = s.write(l, nil)
	}
}

// input sends what is typed. Its end is not passed on: it is srun's to close the input of its tasks.
func (s *watcher) input() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.w.In.Read(buf)
		if n > 0 && s.conn.Send(wire.TypeInput, wire.IOHeader{Rank: s.in}, buf[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

// code is the exit code that tells of an exit, as srun's.
func code(e core.Exit) int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return int(e.Code)
}
