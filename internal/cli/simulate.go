package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sim"
)

// simulation is the options of `bireme simulate`.
type simulation struct {
	trace, nodes, rule, csv, replay string
	procs                           int64
	json                            bool
}

func (a *App) simulateCommand() *cobra.Command {
	var o simulation
	c := &cobra.Command{
		Use: "simulate --trace FILE | --replay FILE", Short: "run a recorded workload through the scheduler on a virtual clock", Args: cobra.NoArgs,
		Long: `Run a recorded workload through the scheduler on a virtual clock and tell how good the schedule is.

FILE is a trace in the Standard Workload Format, plain or compressed by gzip; - is standard input. A job asks for
its requested processors (field 8, else 5) for its requested time (field 9, or its run time if that is longer) and runs
for its run time (field 4). Jobs without run time or processors, or larger than the machine, are dropped and counted.
Lines that cannot be read are named and counted, the others are run, and the exit status is 2.

The machine is one node with the processors that the trace's header tells, unless --procs or --nodes say otherwise.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.replay == "" {
				return a.simulate(cmd.Context(), &o)
			}
			for _, other := range []string{"trace", "procs", "nodes", "rule", "csv"} {
				if err := oneFlag(cmd, "replay", other); err != nil {
					return err
				}
			}
			return a.replay(cmd.Context(), &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.replay, "replay", "", "decide again what a server decided that wrote `FILE` with --record, and compare")
	f.StringVar(&o.trace, "trace", "", "the `FILE` to read the workload from")
	f.Int64Var(&o.procs, "procs", 0, "processors of the machine (default: what the trace tells)")
	f.StringVar(&o.nodes, "nodes", "", "`N` nodes that share the processors, or NxC nodes of C processors each")
	f.StringVar(&o.rule, "rule", sim.Rules()[0], "how to schedule: "+strings.Join(sim.Rules(), ", "))
	f.StringVar(&o.csv, "csv", "", "write one row a job to `FILE`: job,submit,start,end,procs")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// replay decides again what a recorded server decided.
func (a *App) replay(ctx context.Context, o *simulation) error {
	f, err := os.Open(o.replay)
	if err != nil {
		return core.Errorf(core.NotFound, "%s: %s", o.replay, errors.Unwrap(err))
	}
	defer f.Close()
	out, err := sim.Replay(filepath.Base(o.replay), &interruptible{ctx, f})
	if err != nil {
		return err
	}
	if o.json {
		err = a.printJSON(out)
	} else {
		t := table{{"recording", o.replay}}
		for _, r := range []struct {
			name string
			n    int64
		}{{"inputs", out.Inputs}, {"batches", out.Batches}, {"passes", out.Passes}, {"starts", out.Starts}, {"passes that differ", out.Different}} {
			t.row(r.name, strconv.FormatInt(r.n, 10))
		}
		err = t.write(a.Out)
	}
	if err == nil && out.Different > 0 {
		err = core.Errorf(core.Internal, "%s", out.First)
	}
	return err
}

// simulated is what the command prints.
type simulated struct {
	Trace string `json:"trace"`
	Rule  string `json:"rule"`
	Procs int64  `json:"procs"`
	Nodes int    `json:"nodes"`
	*sim.Summary
	Dropped   sim.Dropped `json:"dropped"`
	Malformed int64       `json:"malformed"`
	Seconds   float64     `json:"seconds"`
	Speed     float64     `json:"jobs_per_second"`
}

func (a *App) simulate(ctx context.Context, o *simulation) error {
	if o.trace == "" {
		return usagef("simulate: --trace FILE or --replay FILE is missing")
	}
	rule, err := sim.ParseRule(o.rule)
	if err != nil {
		return usagef("simulate: %s", err)
	}
	if o.procs < 0 {
		return usagef("simulate: --procs is %d; a machine has at least one", o.procs)
	}
	// What lives is a few megabytes, however long the trace, and what dies is much: let some of it gather.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var out *simulated
	err = a.withCSV(o.csv, func(emit func(*sim.Row) error, reset func() error) error {
		var err error
		out, err = a.simulateOnce(ctx, o, rule, false, emit)
		if errors.Is(err, sim.ErrOrder) && o.trace != "-" { // it takes the whole of it in memory to put it in order
			a.note("%s; the trace is put in order first", err)
			if err = reset(); err == nil {
				out, err = a.simulateOnce(ctx, o, rule, true, emit)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if o.json {
		err = a.printJSON(out)
	} else {
		err = out.table().write(a.Out)
	}
	if err == nil && out.Malformed > 0 {
		err = core.Errorf(core.Invalid, "%s: %s could not be read and took no part", o.trace, plural(out.Malformed, "line"))
	}
	return err
}

// shownFaults is how many lines that cannot be read are named.
const shownFaults = 5

// simulateOnce reads the trace and runs it; sorted: after putting it in order.
func (a *App) simulateOnce(ctx context.Context, o *simulation, rule sim.Rule, sorted bool, emit func(*sim.Row) error) (*simulated, error) {
	began := a.Now()
	in := io.NopCloser(a.In)
	if o.trace != "-" {
		f, err := os.Open(o.trace)
		if err != nil {
			return nil, core.Errorf(core.NotFound, "%s: %s", o.trace, errors.Unwrap(err))
		}
		in = f
	}
	defer in.Close()
	t, err := sim.NewReader(filepath.Base(o.trace), &interruptible{ctx, in})
	if err != nil {
		return nil, err
	}
	cfg := sim.Config{Rule: rule}
	if cfg.Nodes, err = o.machine(t.Procs()); err != nil {
		return nil, err
	}
	t.Limit(cfg.Procs())
	var faults []*sim.Fault
	t.Report = func(f *sim.Fault) {
		if len(faults) < shownFaults {
			faults = append(faults, f)
		}
	}
	var sum *sim.Summary
	if sorted {
		var src sim.Source
		if src, err = sim.Sorted(t); err == nil {
			sum, err = sim.Run(cfg, src, emit)
		}
	} else {
		src := readAhead(t)
		sum, err = sim.Run(cfg, src, emit)
		src.close()
	}
	if err != nil {
		return nil, err
	}
	if sum.Jobs == 0 && t.Dropped.Total() == 0 && t.Malformed > 0 {
		return nil, core.Errorf(core.Invalid, "%s is no trace in the Standard Workload Format: none of its %s can be read; the first: %v", o.trace, plural(t.Malformed, "line"), faults[0])
	}
	for _, f := range faults {
		a.note("%s", f)
	}
	out := &simulated{
		Trace: o.trace, Rule: o.rule, Procs: cfg.Procs(), Nodes: len(cfg.Nodes), Summary: sum,
		Dropped: t.Dropped, Malformed: t.Malformed, Seconds: a.Now().Sub(began).Seconds(),
	}
	if out.Seconds > 0 {
		out.Speed = float64(sum.Jobs) / out.Seconds
	}
	return out, nil
}

// maxProcs bounds a machine; the largest there is has some ten millions.
const maxProcs = 1 << 24

// machine gives the CPUs of each node.
func (o *simulation) machine(header int64) ([]int32, error) {
	procs := o.procs
	count, each, shaped := strings.Cut(o.nodes, "x")
	if procs == 0 && !shaped {
		if procs = header; procs == 0 {
			return nil, usagef("simulate: %s does not tell the size of its machine (MaxProcs); --procs N does", o.trace)
		}
	}
	n := int64(1)
	if o.nodes != "" {
		var err error
		if n, err = strconv.ParseInt(count, 10, 32); err != nil || n < 1 {
			return nil, usagef("simulate: --nodes %q is not N or NxC", o.nodes)
		}
	}
	if shaped {
		c, err := strconv.ParseInt(each, 10, 32)
		if err != nil || c < 1 {
			return nil, usagef("simulate: --nodes %q is not N or NxC", o.nodes)
		}
		if procs != 0 && procs != n*c {
			return nil, usagef("simulate: --nodes %s are %d processors, --procs says %d", o.nodes, n*c, procs)
		}
		procs = n * c
	}
	if procs > maxProcs || n > procs {
		return nil, usagef("simulate: %d processors on %s cannot be; there are at most %d, at least one a node", procs, plural(n, "node"), maxProcs)
	}
	nodes := make([]int32, n)
	for i := range nodes { // what does not divide goes to the first ones
		nodes[i] = int32(procs / n)
		if int64(i) < procs%n {
			nodes[i]++
		}
	}
	return nodes, nil
}

// withCSV gives do a place for rows. The file appears under its name when all is well, and not before.
func (a *App) withCSV(path string, do func(emit func(*sim.Row) error, reset func() error) error) error {
	if path == "" {
		return do(func(*sim.Row) error { return nil }, func() error { return nil })
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".simulate-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // gone already if it was renamed
	defer f.Close()
	w := bufio.NewWriterSize(f, 64<<10)
	const heading = "job,submit,start,end,procs\n"
	_, _ = w.WriteString(heading) // kept by w until Flush tells
	var line []byte
	emit := func(r *sim.Row) error {
		line = line[:0]
		for i, v := range [...]int64{r.Number, r.Submit, r.Start, r.End, r.Procs} {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendInt(line, v, 10)
		}
		_, err := w.Write(append(line, '\n'))
		return err
	}
	reset := func() error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		w.Reset(f)
		_, err := w.WriteString(heading)
		return errors.Join(err, f.Truncate(0))
	}
	if err := do(emit, reset); err != nil {
		return err
	}
	if err := errors.Join(w.Flush(), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

func (s *simulated) table() table {
	seconds := func(v float64) string { return fmt.Sprintf("%.0f s (%s)", v, span(time.Duration(v)*time.Second)) }
	t := table{{"trace", s.Trace}}
	t.row("rule", s.Rule)
	t.row("machine", fmt.Sprintf("%s on %s", plural(s.Procs, "processor"), plural(s.Nodes, "node")))
	t.row("jobs", strconv.FormatInt(s.Jobs, 10))
	t.row("dropped", fmt.Sprintf("%d (no run time %d, no processors %d, too large %d)", s.Dropped.Total(), s.Dropped.NoRunTime, s.Dropped.NoProcessors, s.Dropped.TooLarge))
	t.row("malformed lines", strconv.FormatInt(s.Malformed, 10))
	t.row("bounded slowdown", fmt.Sprintf("mean %.2f, median %.2f, p95 %.2f", s.Slowdown.Mean, s.Slowdown.Median, s.Slowdown.P95))
	t.row("mean wait", seconds(s.MeanWait))
	t.row("max wait", seconds(float64(s.MaxWait)))
	t.row("makespan", seconds(float64(s.Makespan)))
	t.row("utilisation", fmt.Sprintf("%.4f", s.Utilisation))
	t.row("simulated", fmt.Sprintf("in %.2f s, %.0f jobs a second", s.Seconds, s.Speed))
	return t
}

// interruptible ends reading when the user has had enough.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(b)
}
