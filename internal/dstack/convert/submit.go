package convert

import (
	"encoding/json"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/secrets"
)

// Options are what a submission needs beside the run's description.
type Options struct {
	Name    string // of the run
	Project core.ProjectName
	Runtime string // of the project, for a run that does not say its own
	From    core.Origin
	Now     time.Time
	// Secret looks for ${{ secrets.NAME }}; nil: nobody looks before the run is launched.
	Secret func(name string) (string, error)
	Images Images
	// Job gives the number of a run's job, for depends_on.
	Job func(run string) (string, error)
	// FailBusy has a run fail that cannot start at once, as dstack does, instead of waiting.
	FailBusy bool
	Places   *Places // where the run may be; nil: anywhere
}

// startAtOnce is how long a run may wait that is to fail when there is no capacity.
const startAtOnce = 5

// Submit turns the run into a submission.
func (s *Spec) Submit(o Options) (*client.Submit, error) {
	if s.Nodes() > MaxNodes {
		return nil, refuse("nodes: a run has at most %d", MaxNodes)
	}
	b := &builder{s: s, o: &o, run: s.Configuration.Run(), policy: s.Policy()}
	b.runtime()
	req := requestOf(&b.run.Resources)
	spec := core.Spec{
		Name: o.Name, Run: o.Name, Project: o.Project, Runtime: core.RuntimeProcess, Shape: req.shape(int32(s.Nodes())),
		IO: core.IO{WorkDir: "/", Stream: true}, From: o.From,
		Extra: &core.Extra{
			LoginEnv: !b.contains, TmpDisk: req.disk, RunPriority: int32(config.Value(b.run.Priority)), GPU: req.ask,
			KillGrace: b.killGrace(), Rules: b.rules(), Repo: s.repository(), Volumes: b.volumes(),
		},
	}
	if b.contains {
		spec.Runtime = core.RuntimeContainer
		spec.Extra.Container = b.container(req.shm)
		if spec.Extra.Container.Own {
			spec.Args = b.commands()
		}
	} else if dir := config.Value(b.run.WorkingDir); strings.HasPrefix(dir, "/") {
		spec.IO.WorkDir = dir
	}
	if d := b.policy.MaxDuration; d != nil {
		spec.TimeLimit, spec.Shape.Given = core.Seconds(d.Seconds), spec.Shape.Given|core.GivenTimeLimit
		if d.Off {
			spec.TimeLimit = core.Forever
		}
	}
	spec.Requeue = spec.Extra.Rules.Retry != nil && spec.Extra.Rules.Retry.Interruption
	if err := b.additions(&spec); err != nil {
		return nil, err
	}
	if err := b.place(&spec); err != nil {
		return nil, err
	}
	env, err := b.environment()
	if err != nil {
		return nil, err
	}
	out := &client.Submit{Spec: spec, Script: b.script(), Env: env, Run: o.Name, Strict: true, Service: s.Service()}
	if len(s.groups()) > 0 {
		out.Spec, out.Components, err = b.components(spec)
	}
	return out, err
}

// killAfter is how long commands on a terminal have after Ctrl+C, as in dstack.
const killAfter = 10

// killGrace is the time between the request to stop and the end; 0: the cluster's.
func (b *builder) killGrace() core.Seconds {
	switch l := b.policy.StopDuration; {
	case l != nil && !l.Off:
		return core.Seconds(l.Seconds)
	case b.contains:
		return killAfter
	}
	return 0
}

// builder makes a submission of a run.
type builder struct {
	s        *Spec
	o        *Options
	run      *config.Run
	policy   config.Policy
	contains bool // it runs in a container
}

// runtime decides what the run runs in: an image, python or docker mean a container, else its own word, else the
// project's; without any it is a container, as in dstack.
func (b *builder) runtime() { b.contains = b.s.Contained(b.o.Runtime) }

// Contained reports whether the run is in a container, in a project with that runtime.
func (s *Spec) Contained(project string) bool {
	r := s.Configuration.Run()
	if r.Image != nil || r.Python != nil || config.Value(r.Docker) || config.Value(r.NVCC) {
		return true
	}
	if own := s.Configuration.Additions.Runtime; own != "" {
		return own == core.RuntimeContainer
	}
	return project != core.RuntimeProcess
}

// rules says what of the configuration the run's life goes by.
func (b *builder) rules() *core.RunRules {
	p := &b.policy
	r := &core.RunRules{}
	if events, seconds := p.Retry.Acts(); len(events) > 0 {
		r.Retry = &core.Retry{Duration: core.Seconds(seconds)}
		for _, e := range events {
			switch e {
			case config.RetryNoCapacity:
				r.Retry.NoCapacity, r.StartWithin = true, core.Seconds(seconds)
			case config.RetryInterruption:
				r.Retry.Interruption = true
			case config.RetryError:
				r.Retry.Error = true
			}
		}
	}
	if b.o.FailBusy && r.StartWithin == 0 {
		r.StartWithin = startAtOnce
	}
	if p.Schedule != nil {
		r.Schedule = p.Schedule.Cron
	}
	if d := b.s.Configuration.DevEnvironment; d != nil {
		r.Inactivity = core.Seconds(max(0, config.Value(d.Inactivity)))
	}
	if u := p.UtilizationPolicy; u != nil {
		r.Utilization = &core.MinUtilization{Percent: int32(u.MinGPUUtilization), Window: core.Seconds(u.TimeWindow)}
	}
	if o := config.Value(p.StartupOrder); o != "any" {
		r.StartupOrder = core.StartupOrder(o)
	}
	if c := config.Value(p.StopCriteria); c != "all-done" {
		r.StopCriteria = core.StopCriteria(c)
	}
	return r
}

// additions sets what only Bireme's own keys ask for.
func (b *builder) additions(spec *core.Spec) error {
	a, x := &b.s.Configuration.Additions, spec.Extra
	if a.Account != "" && core.ProjectName(a.Account) != spec.Project {
		return refuse("account: runs of project %s are paid for by %s; apply it in project %s", spec.Project, spec.Project,
			a.Account)
	}
	if a.Array != nil {
		spec.Array, spec.Throttle = a.Array.Tasks.String(), int32(a.Array.Throttle)
	}
	spec.Partition, spec.QOS = core.ParsePartitions(a.Partition), core.QOSName(a.QOS)
	if a.Time != 0 {
		spec.TimeLimit, spec.Shape.Given = a.Time, spec.Shape.Given|core.GivenTimeLimit
	}
	var err error
	if x.Deadline, err = config.Moment(a.Deadline, b.o.Now); err != nil {
		return refuse("deadline: %v", err)
	}
	if spec.Begin, err = config.Moment(a.Begin, b.o.Now); err != nil {
		return refuse("begin: %v", err)
	}
	x.Constraint, x.Switches = a.Constraint, a.Switches
	if a.Requeue != nil {
		spec.Requeue = *a.Requeue
	}
	if c := a.Checkpoint; c != nil {
		if err := b.checkpoint(c, x); err != nil {
			return err
		}
	}
	if r := b.policy.Reservation; r != nil {
		x.Reservation = *r
	}
	if len(a.Dependencies.List) > 0 {
		text, err := a.Dependencies.Text(b.o.Job)
		if err != nil {
			return err
		}
		x.Dependency, _ = core.ParseDependency(text) // admission refuses what does not parse
	}
	return nil
}

// environment gives the variables of the run, with what a registry wants to know among them. Secrets stay references:
// they are resolved when the run is launched, and only looked for here.
func (b *builder) environment() ([]string, error) {
	var env []string
	for _, v := range b.run.Env {
		if v.From != "" {
			return nil, refuse("env: %s has no value", v.Name)
		}
		env = append(env, v.Name+"="+v.Value)
	}
	if a := b.run.RegistryAuth; a != nil && b.contains {
		text, err := json.Marshal(map[string]string{"username": a.Username, "password": a.Password})
		if err != nil {
			return nil, err
		}
		env = append(env, core.RegistryAuth+"="+string(text))
	}
	names, err := secrets.Names([]byte(strings.Join(env, "\x00")))
	if err != nil {
		return nil, refuse("%v", err)
	}
	for _, name := range names {
		if b.o.Secret == nil {
			continue
		}
		if _, err := b.o.Secret(name); err != nil {
			return nil, err
		}
	}
	return env, nil
}
