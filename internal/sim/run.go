package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// Config is the machine and the rule of a simulation.
type Config struct {
	Nodes []int32 // CPUs of each node
	Rule  Rule
}

// Procs is the size of the machine.
func (c *Config) Procs() (n int64) {
	for _, cpus := range c.Nodes {
		n += int64(cpus)
	}
	return n
}

// Row is what became of a job, in the trace's own numbers and seconds.
type Row struct {
	Number, Submit, Start, End, Procs int64
	index                             int64
}

// epoch is the trace's second 0. A core.Time of zero means "not set", so it lies elsewhere.
const epoch = core.Time(1_000_000_000_000_000)

func at(second int64) core.Time { return epoch + core.Time(second)*1_000_000 }

// user is who submits: a first cut knows one.
const user core.UserName = "trace"

// ask is what tells two requests apart.
type ask struct{ procs, estimate int64 }

// maxSpecs bounds the specs that are kept to be shared.
const maxSpecs = 4096

// sim is a simulation under way.
type sim struct {
	st    *state.State
	plan  *sched.Planner
	ends  ends
	rows  rows
	nodes []*core.Node
	specs map[ask]*core.Spec
	tally tally
	emit  func(*Row) error
	by    core.Identity
	pass  int64

	// Nobody keeps what is applied, so each input is the last one of its kind again.
	submitting state.Submit
	starting   state.Start
	exiting    state.Exited
}

// Run simulates a workload to its end. Every job is given to emit once, in the order of the file.
func Run(cfg Config, src Source, emit func(*Row) error) (*Summary, error) {
	s := newSim(cfg)
	var held []Row
	if _, ok := src.(*sorted); ok { // submitted in another order than the file's
		s.emit = func(r *Row) error { held = append(held, *r); return nil }
	} else {
		s.emit = emit
	}
	if err := s.run(src); err != nil {
		return nil, err
	}
	slices.SortFunc(held, func(a, b Row) int { return cmp.Compare(a.index, b.index) })
	for i := range held {
		if err := emit(&held[i]); err != nil {
			return nil, err
		}
	}
	sum := s.tally.summary(cfg.Procs())
	sum.Passes = s.pass
	return sum, nil
}

func newSim(cfg Config) *sim {
	uid := uint32(1000)
	img := &state.Image{
		Now:      epoch,
		Users:    []*core.User{{Name: user, UnixName: string(user), UID: &uid, Role: core.RoleUser, Default: "default"}},
		Projects: []*core.Project{{Name: "default", Members: []core.Member{{User: user, Role: core.RoleUser}}}},
	}
	for i, cpus := range cfg.Nodes {
		img.Nodes = append(img.Nodes, &core.Node{
			ID: int64(i + 1), Name: core.NodeName(fmt.Sprintf("n%d", i+1)), Roles: core.Compute, Weight: 1, Joined: epoch,
			Hardware: core.Hardware{CPUs: cpus, Memory: core.GiB}, Host: core.Host{Root: true},
		})
	}
	sc := state.Config{MaxJobs: 1 << 40, Unkept: true}
	s := &sim{
		st:    state.New(sc, img),
		plan:  sched.New(sched.Config{Partitions: state.Partitions(sc), Hosts: state.NewNames(), Rule: cfg.Rule}),
		nodes: img.Nodes,
		specs: map[ask]*core.Spec{},
		by:    core.Identity{User: user, UID: uid},
	}
	s.plan.Apply(s.st.All())
	return s
}

// run goes from instant to instant: of each, all ends, then all arrivals, then one pass.
func (s *sim) run(src Source) error {
	next, more, err := pull(src)
	if err != nil {
		return err
	}
	wake := never
	for {
		now := min(wake, s.ends.next())
		if more {
			now = min(now, next.Submit)
		}
		if now == never {
			break
		}
		s.st.Advance(at(now))
		for s.ends.next() == now {
			if err := s.end(s.ends.pop()); err != nil {
				return err
			}
		}
		for more && next.Submit == now {
			if err := s.submit(next); err != nil {
				return err
			}
			if next, more, err = pull(src); err != nil {
				return err
			}
		}
		if wake, err = s.step(now); err != nil {
			return err
		}
	}
	if left := s.rows.waiting(); left != nil {
		return fmt.Errorf("job %d of the trace has not started and nothing is left to happen", left.Number)
	}
	return nil
}

// never is a second that does not come.
const never int64 = math.MaxInt64

func pull(src Source) (j *Job, more bool, err error) {
	j, err = src.Next()
	if errors.Is(err, io.EOF) {
		return nil, false, nil
	}
	return j, err == nil, err
}

// submit is a user's sbatch.
func (s *sim) submit(j *Job) error {
	s.submitting = state.Submit{By: s.by, Spec: s.spec(j), Strict: true}
	reply, err := state.Apply(s.st, &s.submitting)
	if err != nil {
		return fmt.Errorf("job %d of the trace: %w", j.Number, err)
	}
	id := reply.ID
	s.rows.push(id, Row{Number: j.Number, Submit: j.Submit, Start: -1, End: j.Run, Procs: j.Procs, index: j.index})
	return nil
}

// spec is what a job asks for. Traces repeat themselves: jobs that ask for the same share one, as the tasks of an array
// do.
func (s *sim) spec(j *Job) *core.Spec {
	k := ask{j.Procs, j.Estimate}
	if spec := s.specs[k]; spec != nil {
		return spec
	}
	if len(s.specs) >= maxSpecs {
		clear(s.specs)
	}
	spec := &core.Spec{Name: "job", User: user, UID: s.by.UID, TimeLimit: core.Seconds(j.Estimate)}
	if len(s.nodes) == 1 { // its CPUs are in one place: one task has them all
		spec.Shape = core.Shape{NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: int32(j.Procs)}
	} else {
		spec.Shape = core.Shape{Tasks: int32(j.Procs), CPUsPerTask: 1}
	}
	s.specs[k] = spec
	return spec
}

// step lets the planner look at what changed and does as it says. It returns when time alone will change the answer.
func (s *sim) step(now int64) (wake int64, err error) {
	s.plan.Apply(s.st.PlannerChanges())
	plan := s.plan.Pass(at(now))
	s.pass++
	for i := range plan.Starts {
		if err := s.start(now, &plan.Starts[i]); err != nil {
			return 0, err
		}
	}
	if len(plan.Starts) > 0 {
		s.plan.Apply(s.st.PlannerChanges())
		if err := s.rows.drain(s.emit); err != nil {
			return 0, err
		}
	}
	if plan.WakeAt <= at(now) {
		return never, nil
	}
	return int64((plan.WakeAt - epoch + 999_999) / 1_000_000), nil
}

func (s *sim) start(now int64, p *sched.Start) error {
	row := s.rows.at(p.Job)
	s.starting = state.Start{Job: p.Job, Alloc: p.Alloc}
	if _, err := state.Apply(s.st, &s.starting); err != nil {
		return fmt.Errorf("start job %d of the trace: %w", row.Number, err)
	}
	row.Start, row.End = now, now+row.End
	s.tally.add(row)
	s.ends.push(end{at: row.End, job: p.Job, alloc: p.Alloc, run: row.End - now})
	return nil
}

// end is an agent's report that a job's program is over and its nodes are clean of it.
func (s *sim) end(e end) error {
	nodes := e.alloc.Nodes
	s.exiting = state.Exited{
		Node: nodes[0].Node, Job: e.job, Attempt: 1, Step: "batch", Elapsed: time.Duration(e.run) * time.Second,
		JobDone: true,
	}
	if _, err := state.Apply(s.st, &s.exiting); err != nil {
		return err
	}
	for i := range nodes[1:] {
		if _, err := state.Apply(s.st, &state.NodeDone{Node: nodes[i+1].Node, Job: e.job, Attempt: 1}); err != nil {
			return err
		}
	}
	return nil
}
