package srun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/filename"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/cmd/allocation"
	"bireme.dev/bireme/internal/wire"
)

// patience is how long srun waits for a step that was told to end, as Slurm: KillWait and two seconds.
func (s *run) patience() time.Duration {
	if s.killWait > 0 {
		return s.killWait + 2*time.Second
	}
	return 32 * time.Second
}

// runStep makes the step, carries its streams and gives srun's exit code and the step's exit.
func (s *run) runStep(ctx context.Context, sig *signals) (int, core.Exit) {
	failed := core.Exit{Code: 1}
	if mode := s.r.Spec.IO.Stdin; !isMode(mode) && !strings.Contains(mode, "%") { // before anything runs without it
		if err := s.openInput(mode); err != nil {
			return slurm.ExitError, failed
		}
	}
	tty := s.openTTY()
	defer tty.Restore()
	s.r.Step.Pty = tty != nil
	doors := make([]*door, len(s.parts))
	for i := range doors {
		doors[i] = openDoor()
		defer doors[i].close()
	}
	ask := s.newStep()
	ask.Rows, ask.Cols, _ = tty.Size()
	asks := []*client.NewStep{ask}
	for i := range ask.Het {
		asks = append(asks, &ask.Het[i])
	}
	vars, stop, err := s.windows(ctx)
	if err != nil {
		s.w.Errorf("%s", slurm.ErrorText(err))
		return slurm.ExitError, failed
	}
	defer stop()
	for i, a := range asks {
		a.Direct = doors[i].direct()
		a.Env = slurm.MergeEnv(slurm.MergeEnv(a.Env, doors[0].vars()), vars)
	}
	made, err := s.create(ctx, ask, sig)
	if errors.Is(err, errGivenUp) {
		return slurm.ExitError, failed
	}
	if err != nil {
		s.w.Errorf("Unable to create step for job %s: %s", s.job, slurm.ErrorText(err))
		return slurm.ExitError, failed
	}
	p := &pump{
		s: s, sig: sig, tty: tty, started: map[int32]bool{}, spoke: map[core.NodeName]bool{},
		nodesDone: map[place]bool{},
	}
	s.parts[0].made = made
	for i := range made.Het {
		s.parts[i+1].made = &made.Het[i]
	}
	defer p.links.close()
	for i, part := range s.parts {
		hub, first, err := s.openHub(ctx, part.made.Key)
		if err != nil {
			s.w.Errorf("Unable to open the streams of step %s: %s", s.stepName(), slurm.ErrorText(err))
			return slurm.ExitError, failed
		}
		one := newLink(i, hub, part.made.Step.Nodes, doors[i], func() (io.ReadWriteCloser, error) {
			return s.c.Resume(ctx, &part.made.Step, part.made.Key, i == 0 && !s.inside)
		})
		one.first = first
		p.links = append(p.links, one)
		p.nodes += len(part.made.Step.Nodes)
	}
	p.out = s.newOutput()
	p.exits = exits{
		w: s.w, ended: map[int32]bool{}, bad: map[int32]bool{}, byFirst: s.w.Getenv(statusVariable) == "first",
	}
	if s.r.Ask.Verbose > 0 {
		p.exits.step = s.stepName()
		s.tellLaunch()
	}
	return p.run(ctx)
}

func (s *run) stepName() string { return fmt.Sprintf("%s.%d", s.job, s.parts[0].made.Step.ID) }

// pump carries one step's streams until its last node has said its last.
type pump struct {
	s     *run
	links links
	out   *output
	exits exits
	sig   *signals
	tty   *cmd.Terminal

	fences     fences
	gathers    gathers
	gallery    gallery
	nodes      int // of all parts
	nodesDone  map[place]bool
	started    map[int32]bool         // by rank
	fed        bool                   // standard input is on its way
	noInput    bool                   // its file could not be opened
	spoke      map[core.NodeName]bool // nodes that wrote to standard error
	terminated bool
	aborted    bool // srun has said that the step is aborted
	killTimer  <-chan time.Time
	waitTimer  <-chan time.Time
}

func (p *pump) run(ctx context.Context) (int, core.Exit) {
	defer p.out.close()
	defer p.closeGallery()
	frames, broken := p.links.start()
	if p.tty != nil {
		p.sendWindow()
	}
	for len(p.nodesDone) < p.nodes {
		select {
		case f := <-frames:
			if err := p.frame(ctx, f.part, f.Frame); err != nil {
				p.s.w.Errorf("step %s: %v", p.s.stepName(), err)
				return slurm.ExitError, core.Exit{Code: 1}
			}
			if p.out.closed {
				p.kill(ctx, 0)
				return 128 + int(syscall.SIGPIPE), core.Exit{Signal: int32(syscall.SIGPIPE)}
			}
		case err := <-broken:
			p.exits.tell(false)
			if ctx.Err() == nil {
				p.s.w.Errorf("Lost the streams of step %s: %v", p.s.stepName(), lost(err))
			}
			return slurm.ExitError, core.Exit{Code: 1}
		case got := <-p.sig.c:
			p.signal(ctx, got)
		case <-p.waitTimer:
			p.waitTimer = nil
			p.s.w.Infof("First task exited %ds ago", int(p.s.r.Step.Wait/time.Second))
			p.states()
			p.s.w.Infof("launch/slurm: _step_signal: Terminating StepId=%s", p.s.stepName())
			p.abort(ctx)
		case <-p.killTimer:
			p.killTimer = nil
			p.s.w.Errorf("Timed out waiting for job step to complete")
			return slurm.ExitError, core.Exit{Signal: 9}
		}
	}
	p.exits.tell(p.exits.oom)
	if p.terminated || p.exits.signal == 9 && !p.aborted {
		p.s.w.Infof("Force Terminated StepId=%s", p.s.stepName())
	}
	if p.noInput {
		return slurm.ExitError, core.Exit{Code: 1}
	}
	return p.gathers.aborted(p.exits.result())
}

func lost(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server closed them")
	}
	return err
}

func (p *pump) frame(ctx context.Context, part int, f wire.Frame) error {
	p.copy(part, f)
	switch f.Type {
	case wire.TypeWatched:
		var w wire.Watched
		if err := f.Decode(&w); err != nil {
			return err
		}
		p.watched(part, w.Watchers)
	case wire.TypeInput:
		p.typed(part, f)
	case wire.TypeIO:
		var h wire.IOHeader
		if err := f.Decode(&h); err != nil {
			return err
		}
		if h.FD == 2 && len(f.Payload) > 0 {
			p.spoke[p.out.node[h.Rank]] = true
			if isCancelled(f.Payload) && !p.terminated {
				p.sayAborted()
			}
		}
		p.out.write(cmd.Lane{Rank: h.Rank, FD: h.FD}, f.Payload)
		f.Free()
	case wire.TypeTaskExit:
		var t wire.TaskExit
		if err := f.Decode(&t); err != nil {
			return err
		}
		p.taskExit(ctx, t)
	case wire.TypeStepExit:
		var t wire.TaskExit
		if err := f.Decode(&t); err != nil {
			return err
		}
		p.nodeDone(part, t)
	case wire.TypeStepMeet:
		var m wire.StepMeet
		if err := f.Decode(&m); err != nil {
			return err
		}
		if m.Op != "" {
			return p.pass(ctx, part, m, f.Payload)
		}
		return p.meet(part, m, f.Payload)
	case wire.TypeTaskStart:
		var t wire.TaskExit
		if err := f.Decode(&t); err != nil {
			return err
		}
		p.taskStart(ctx, t.Rank)
	}
	return nil
}

// tellLaunch tells which tasks begin where, as -v does.
func (s *run) tellLaunch() {
	s.w.Infof("launch/slurm: launch_p_step_launch: CpuBindType=(null type)")
	for _, part := range s.parts {
		for i, n := range part.made.Step.Nodes {
			if i >= len(part.made.Ranks) {
				break
			}
			list := make([]int, len(part.made.Ranks[i]))
			for k, r := range part.made.Ranks[i] {
				list[k] = int(r)
			}
			text := rankList(list)
			if len(list) > 1 {
				text = "[" + text + "]"
			}
			s.w.Infof("launching StepId=%s on host %s, %d tasks: %s", s.stepName(), n, len(list), text)
		}
	}
}

// tellStarted tells of a node whose tasks have all begun, as -v does.
func (p *pump) tellStarted(rank int32) {
	node, count := p.out.node[rank], 0
	for r, n := range p.out.node {
		if n != node {
			continue
		}
		if !p.started[r] {
			return
		}
		count++
	}
	p.s.verbose("launch/slurm: _task_start: Node %s, %d tasks started", node, count)
}

// isCancelled reports whether output is the keeper's line that the step is being ended.
func isCancelled(line []byte) bool {
	return bytes.HasPrefix(line, []byte(slurm.NoticePrefix+"*** STEP ")) && bytes.Contains(line, []byte(" CANCELLED AT "))
}

// taskStart sends standard input once all tasks are there to take it.
func (p *pump) taskStart(ctx context.Context, rank int32) {
	if p.s.r.Ask.Verbose > 0 && !p.started[rank] {
		p.started[rank] = true
		p.tellStarted(rank)
	}
	p.started[rank] = true
	if !p.fed && len(p.started) >= len(p.out.node) {
		p.fed = true
		p.startInput(ctx)
	}
}

func (p *pump) taskExit(ctx context.Context, t wire.TaskExit) {
	first := len(p.exits.ended) == 0
	p.taskStart(ctx, t.Rank)
	p.exits.add(t)
	bad := t.Exit.Code != 0 || t.Exit.Signal != 0
	if bad && p.s.r.Step.KillOnBadExit && !p.terminated {
		p.exits.tell(false)
		p.terminate(ctx)
	}
	if first && p.s.r.Step.Wait > 0 {
		p.waitTimer = time.After(p.s.r.Step.Wait)
	}
}

// nodeDone takes the last frame of a node: what its tasks did not tell themselves is in it.
func (p *pump) nodeDone(part int, t wire.TaskExit) {
	at, made := place{part, t.Node}, p.s.parts[part].made
	if p.nodesDone[at] { // the server spoke for it, and then it did
		return
	}
	p.nodesDone[at] = true
	p.links[part].done(t.Node)
	p.exits.oom = p.exits.oom || t.Cause == "oom"
	// A keeper that could write to the task's error output has said there what went wrong.
	if t.Message != "" && t.Cause != "" && t.Cause != "oom" && t.Cause != "cancelled" && !p.spoke[t.Node] {
		p.s.w.Errorf("%s: %s", t.Node, t.Message)
	}
	for i, n := range made.Step.Nodes {
		if n != t.Node || i >= len(made.Ranks) {
			continue
		}
		for _, r := range made.Ranks[i] {
			if !p.exits.ended[r] && (t.Exit.Code != 0 || t.Exit.Signal != 0) {
				p.exits.add(wire.TaskExit{Rank: r, Node: t.Node, Exit: t.Exit})
			}
		}
	}
	p.exits.tell(t.Cause == "oom")
}

// terminate ends the step: the server sees to TERM, patience and KILL.
func (p *pump) terminate(ctx context.Context) {
	if p.terminated {
		return
	}
	p.terminated = true
	p.s.w.Infof("launch/slurm: _step_signal: Terminating StepId=%s", p.s.stepName())
	p.kill(ctx, 0)
}

// abort kills what is left of the step, and says so once.
func (p *pump) abort(ctx context.Context) {
	p.sayAborted()
	p.kill(ctx, syscall.SIGKILL)
}

func (p *pump) sayAborted() {
	if !p.aborted {
		p.aborted = true
		p.s.w.Infof("Job step aborted: Waiting up to %d seconds for job step to finish.", int(p.s.patience()/time.Second))
	}
}

// kill has the server end the step: with TERM, patience and KILL, or with a signal at once.
func (p *pump) kill(ctx context.Context, sig syscall.Signal) {
	for i, part := range p.s.parts {
		st := &part.made.Step
		_, err := p.s.c.Cancel(ctx, &client.Cancel{
			IDs: []string{fmt.Sprint(st.Job)}, Step: fmt.Sprint(st.ID), Signal: int32(sig),
		})
		if err != nil { // the step may hear a plain signal all the same
			_ = p.links[i].Send(wire.TypeStepSignal, wire.StepSignal{Signal: int32(cmp.Or(sig, syscall.SIGTERM))})
		}
	}
	p.killTimer = time.After(p.s.patience())
}

// signal does what a signal to srun means for its tasks.
func (p *pump) signal(ctx context.Context, got os.Signal) {
	switch got {
	case syscall.SIGWINCH:
		p.sendWindow()
	case syscall.SIGINT:
		p.interrupt(ctx)
	case syscall.SIGCONT:
		p.s.w.Infof("got SIGCONT")
	default:
		n := allocation.SignalNumber(got)
		_ = p.links.Send(wire.TypeStepSignal, wire.StepSignal{Signal: int32(n)}) // a broken stream shows in read
	}
}

// interrupt: the first tells how things stand, a second within a second is passed on, one more within a second of that
// kills the step. With -X the first is passed on, with --quit-on-interrupt each is a second one.
func (p *pump) interrupt(ctx context.Context) {
	now := time.Now()
	pass := func() {
		p.s.w.Infof("sending Ctrl-C to StepId=%s", p.s.stepName())
		_ = p.links.Send(wire.TypeStepSignal, wire.StepSignal{Signal: int32(syscall.SIGINT)})
	}
	switch {
	case !p.s.r.Step.QuitOnInterrupt && now.Sub(p.sig.lastInt) > time.Second:
		p.sig.lastInt = now
		if p.s.r.Step.NoStatus {
			pass()
			return
		}
		p.s.w.Infof("interrupt (one more within 1 sec to abort)")
		p.states()
	case now.Sub(p.sig.lastSent) <= time.Second:
		p.s.w.Infof("forcing job termination")
		p.abort(ctx)
	default:
		p.sig.lastSent = now
		pass()
	}
}

// states tells how far the tasks are.
func (p *pump) states() {
	words := []string{"running", "exited", "exited abnormally"}
	lists := make([][]int, len(words))
	for _, r := range p.s.ranks() {
		at := 0
		if p.exits.bad[r] {
			at = 2
		} else if p.exits.ended[r] {
			at = 1
		}
		lists[at] = append(lists[at], int(r))
	}
	for i, list := range lists {
		if len(list) > 0 {
			slices.Sort(list)
			p.s.w.Infof("StepId=%s %s: %s", p.s.stepName(), taskNames(list), words[i])
		}
	}
}

// openInput opens the file that is the tasks' standard input, and says why it cannot in Slurm's words.
func (s *run) openInput(name string) error {
	f, err := os.Open(s.r.Path(name))
	if err != nil {
		text := err.Error()
		var errno syscall.Errno
		if errors.As(err, &errno) {
			text = errno.Error()
		}
		s.w.Errorf("Could not open stdin file: %s%s", strings.ToUpper(text[:1]), text[1:])
		return err
	}
	s.input = f
	return nil
}

// startInput sends standard input to the tasks that should have it.
func (p *pump) startInput(ctx context.Context) {
	mode := p.s.r.Spec.IO.Stdin
	rank, ok := inputRank(mode)
	in := p.s.w.In
	if ok && !isMode(mode) {
		if p.s.input == nil && p.s.openInput(filename.Expand(mode, p.out.names, 0)) != nil {
			p.noInput, ok = true, false
			p.terminate(ctx)
		} else {
			in = p.s.input
		}
	}
	if !ok {
		_ = p.links.Send(wire.TypeInput, wire.IOHeader{Rank: -1})
		return
	}
	if rank >= 0 { // nothing will come for the others
		for _, r := range p.s.ranks() {
			if r != rank {
				_ = p.links.Send(wire.TypeInput, wire.IOHeader{Rank: r})
			}
		}
	}
	go p.input(ctx, in, rank) // ends at end of file, or with the process: a read of a terminal cannot be broken off
}

func (p *pump) input(ctx context.Context, in io.Reader, rank int32) {
	buf := make([]byte, 32<<10)
	h := wire.IOHeader{Rank: rank}
	for {
		cmd.AwaitForeground(ctx, in)
		n, err := in.Read(buf)
		if errors.Is(err, syscall.EIO) && cmd.InBackground(in) { // it was sent there meanwhile
			continue
		}
		if n > 0 {
			p.links.room()
			if p.links.Send(wire.TypeInput, h, buf[:n]) != nil {
				return
			}
		}
		if err != nil {
			_ = p.links.Send(wire.TypeInput, h)
			return
		}
	}
}

func (p *pump) sendWindow() {
	if rows, cols, ok := p.tty.Size(); ok {
		_ = p.links.Send(wire.TypeWindow, wire.Window{Rows: rows, Cols: cols})
	}
}
