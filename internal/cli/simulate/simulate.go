package simulate

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

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sim"
)

// simulation is the options of `bireme simulate`.
type simulation struct {
	app                                *app.App
	trace, nodes, rule, csv, recording string
	procs                              int64
	json                               bool
}

// Command is `bireme simulate`.
func Command(a *app.App) *cobra.Command {
	o := &simulation{app: a}
	c := &cobra.Command{
		Use:   "simulate --trace FILE | --replay FILE",
		Short: "run a recorded workload through the scheduler on a virtual clock", Args: cobra.NoArgs,
		Long: `Run a recorded workload through the scheduler on a virtual clock and report the quality of the schedule.

FILE is a trace in the Standard Workload Format, plain or compressed by gzip; - is standard input. A job asks for
its requested processors (field 8, else 5) for its requested time (field 9, or its run time if that is longer) and runs
for its run time (field 4). Jobs without run time or processors, or larger than the machine, are dropped and counted.
Lines that cannot be read are named and counted, the others are run, and the exit status is 2.

The machine is one node with the processors that the trace's header tells, unless --procs or --nodes say otherwise.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.recording == "" {
				return o.simulate(cmd.Context())
			}
			for _, other := range []string{"trace", "procs", "nodes", "rule", "csv"} {
				if err := app.OneFlag(cmd, "replay", other); err != nil {
					return err
				}
			}
			return o.replay(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&o.recording, "replay", "",
		"repeat the decisions of the server that wrote `FILE` with --record, and compare")
	f.StringVar(&o.trace, "trace", "", "the `FILE` to read the workload from")
	f.Int64Var(&o.procs, "procs", 0, "processors of the machine (default: what the trace tells)")
	f.StringVar(&o.nodes, "nodes", "", "`N` nodes that share the processors, or NxC nodes of C processors each")
	f.StringVar(&o.rule, "rule", sim.Rules()[0], "how to schedule: "+strings.Join(sim.Rules(), ", "))
	f.StringVar(&o.csv, "csv", "", "write one row a job to `FILE`: job,submit,start,end,procs")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// replay decides again what a recorded server decided.
func (o *simulation) replay(ctx context.Context) error {
	f, err := os.Open(o.recording)
	if err != nil {
		return core.Errorf(core.NotFound, "%s: %s", o.recording, errors.Unwrap(err))
	}
	defer f.Close()
	out, err := sim.Replay(filepath.Base(o.recording), &interruptible{ctx, f})
	if err != nil {
		return err
	}
	if o.json {
		err = o.app.PrintJSON(out)
	} else {
		t := app.Table{{"recording", o.recording}}
		for _, r := range []struct {
			name string
			n    int64
		}{
			{"inputs", out.Inputs},
			{"batches", out.Batches},
			{"passes", out.Passes},
			{"starts", out.Starts},
			{"passes that differ", out.Different},
		} {
			t.Row(r.name, strconv.FormatInt(r.n, 10))
		}
		err = t.Write(o.app.Out)
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

func (o *simulation) simulate(ctx context.Context) error {
	if o.trace == "" {
		return app.Usagef("simulate: needs --trace FILE or --replay FILE")
	}
	rule, err := sim.ParseRule(o.rule)
	if err != nil {
		return app.Usagef("simulate: %s", err)
	}
	if o.procs < 0 {
		return app.Usagef("simulate: --procs %d: must be 1 or more", o.procs)
	}
	// What lives is a few megabytes, however long the trace, and what dies is much: let some of it gather.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var out *simulated
	err = o.withCSV(o.csv, func(emit func(*sim.Row) error, reset func() error) error {
		out, err = o.simulateOnce(ctx, rule, false, emit)
		if errors.Is(err, sim.ErrOrder) && o.trace != "-" { // it takes the whole of it in memory to put it in order
			o.app.Note("%s; sorting the trace first", err)
			if err = reset(); err == nil {
				out, err = o.simulateOnce(ctx, rule, true, emit)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if o.json {
		err = o.app.PrintJSON(out)
	} else {
		err = out.table().Write(o.app.Out)
	}
	if err == nil && out.Malformed > 0 {
		err = core.Errorf(core.Invalid, "%s: skipped %s that cannot be read", o.trace,
			app.Plural(out.Malformed, "line"))
	}
	return err
}

// shownFaults is how many lines that cannot be read are named.
const shownFaults = 5

// simulateOnce reads the trace and runs it; sorted: after putting it in order.
func (o *simulation) simulateOnce(ctx context.Context, rule sim.Rule, sorted bool, emit func(*sim.Row) error) (
	*simulated, error,
) {
	began := o.app.Now()
	in := io.NopCloser(o.app.In)
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
		return nil, core.Errorf(core.Invalid, "%s is not a trace in the Standard Workload Format: none of its %s can "+
			"be read; the first: %v", o.trace, app.Plural(t.Malformed, "line"), faults[0])
	}
	for _, f := range faults {
		o.app.Note("%s", f)
	}
	out := &simulated{
		Trace: o.trace, Rule: o.rule, Procs: cfg.Procs(), Nodes: len(cfg.Nodes), Summary: sum,
		Dropped: t.Dropped, Malformed: t.Malformed, Seconds: o.app.Now().Sub(began).Seconds(),
	}
	if out.Seconds > 0 {
		out.Speed = float64(sum.Jobs) / out.Seconds
	}
	return out, nil
}

// maxProcs bounds a machine; the largest there is has some ten millions.
const maxProcs = 1 << 24

// machine returns the CPUs of each node.
func (o *simulation) machine(header int64) ([]int32, error) {
	procs := o.procs
	count, each, shaped := strings.Cut(o.nodes, "x")
	if procs == 0 && !shaped {
		if procs = header; procs == 0 {
			return nil, app.Usagef("simulate: %s does not give the size of its machine (MaxProcs); use --procs N", o.trace)
		}
	}
	n := int64(1)
	if o.nodes != "" {
		var err error
		if n, err = strconv.ParseInt(count, 10, 32); err != nil || n < 1 {
			return nil, app.Usagef("simulate: --nodes %q: expected N or NxC", o.nodes)
		}
	}
	if shaped {
		c, err := strconv.ParseInt(each, 10, 32)
		if err != nil || c < 1 {
			return nil, app.Usagef("simulate: --nodes %q: expected N or NxC", o.nodes)
		}
		if procs != 0 && procs != n*c {
			return nil, app.Usagef("simulate: --nodes %s makes %d processors, but --procs is %d", o.nodes, n*c, procs)
		}
		procs = n * c
	}
	if procs > maxProcs || n > procs {
		return nil, app.Usagef("simulate: %d processors on %s: expected at least one per node, and at most %d",
			procs, app.Plural(n, "node"), maxProcs)
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

// withCSV calls do with a writer of rows. The file appears under its name when all is well, and not before.
func (o *simulation) withCSV(path string, do func(emit func(*sim.Row) error, reset func() error) error) error {
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

func (s *simulated) table() app.Table {
	seconds := func(v float64) string { return fmt.Sprintf("%.0f s (%s)", v, app.Span(time.Duration(v)*time.Second)) }
	t := app.Table{{"trace", s.Trace}}
	t.Row("rule", s.Rule)
	t.Row("machine", fmt.Sprintf("%s on %s", app.Plural(s.Procs, "processor"), app.Plural(s.Nodes, "node")))
	t.Row("jobs", strconv.FormatInt(s.Jobs, 10))
	t.Row("dropped", fmt.Sprintf("%d (no run time %d, no processors %d, too large %d)", s.Dropped.Total(),
		s.Dropped.NoRunTime, s.Dropped.NoProcessors, s.Dropped.TooLarge))
	t.Row("malformed lines", strconv.FormatInt(s.Malformed, 10))
	t.Row("bounded slowdown", fmt.Sprintf("mean %.2f, median %.2f, p95 %.2f", s.Slowdown.Mean, s.Slowdown.Median,
		s.Slowdown.P95))
	t.Row("mean wait", seconds(s.MeanWait))
	t.Row("max wait", seconds(float64(s.MaxWait)))
	t.Row("makespan", seconds(float64(s.Makespan)))
	t.Row("utilisation", fmt.Sprintf("%.4f", s.Utilisation))
	t.Row("simulated", fmt.Sprintf("in %.2f s, %.0f jobs a second", s.Seconds, s.Speed))
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
