package state

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/sched/fit"
)

// script is a scenario being played.
type script struct {
	t   *testing.T
	cfg Config
	w   *world
	out io.Writer

	told int64                      // events shown so far
	log  []core.Event               // all of them
	seen map[core.JobID]*core.Job   // the last record of every job
	ids  []core.JobID               // of those that ended, in order
	uids map[core.UserName]uint32   // users made on first sight
	boot map[core.NodeName]int      // how often a node was restarted
	hw   map[core.NodeName]Register // how it registered last
}

// args are key=value words; a bare word is true.
type args map[string]string

var commands map[string]func(*script, []string, args) error

func init() {
	commands = map[string]func(*script, []string, args) error{
		"partition": (*script).partition, "config": (*script).config, "nodes": (*script).nodes, "node": (*script).node,
		"submit": (*script).submit, "array": (*script).array, "alloc": (*script).alloc, "step": (*script).step,
		"exit": (*script).exit, "end": (*script).end, "done": (*script).done, "giveback": (*script).giveback,
		"cancel": (*script).cancel,
		"hold":   (*script).update, "release": (*script).update, "update": (*script).update, "requeue": (*script).requeue,
		"suspend": (*script).suspend, "resume": (*script).suspend, "advance": (*script).advance, "pass": (*script).pass,
		"queue": (*script).queue, "why": (*script).why, "ended": (*script).ended, "steps": (*script).steps,
		"events": (*script).events, "use": (*script).use, "restart": (*script).restart, "topology": (*script).topology,
	}
}

func (s *script) line(words []string, out io.Writer) {
	s.t.Helper()
	do := commands[words[0]]
	if do == nil {
		s.t.Fatalf("there is no command %q", words[0])
	}
	var plain []string
	opts := args{"": words[0]}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			opts[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	s.out = out
	if words[0] != "partition" && words[0] != "config" && words[0] != "offer" && words[0] != "topology" &&
		words[0] != "preemption" && s.w == nil {
		s.begin()
	}
	if err := do(s, plain, opts); err != nil {
		fmt.Fprintf(out, "error %s %s: %v\n", core.CodeOf(err), core.ReasonOf(err), err)
	}
	if s.w != nil {
		s.w.check()
	}
}

func (s *script) begin() {
	s.w = newWorld(s.t, s.cfg)
	s.seen, s.uids = map[core.JobID]*core.Job{}, map[core.UserName]uint32{}
	s.boot, s.hw = map[core.NodeName]int{}, map[core.NodeName]Register{}
	s.w.onFlush = func(c *core.Changes) {
		s.log = append(s.log, c.Events...)
		for _, j := range c.Jobs {
			if old := s.seen[j.ID]; old != nil && old.State != j.State && !old.State.MayBecome(j.State) && !j.State.Final() {
				s.t.Errorf("job %d went from %s to %s", j.ID, old.State, j.State)
			}
			s.seen[j.ID] = j
			if !j.Live() {
				s.ids = append(s.ids, j.ID)
			}
		}
	}
}

func (s *script) printf(format string, a ...any) { fmt.Fprintf(s.out, format+"\n", a...) }

func (s *script) by(o args) core.Identity {
	name := core.UserName(o["by"])
	if name == "" || name == "root" {
		return core.Identity{User: "root", Admin: true}
	}
	return core.Identity{User: name, UID: s.user(name)}
}

func (s *script) user(name core.UserName) uint32 {
	if uid, ok := s.uids[name]; ok {
		return uid
	}
	uid := uint32(1000 + len(s.uids))
	s.uids[name] = uid
	s.w.must(&EnsureUser{UID: uid, UnixName: string(name)})
	return uid
}

// Small readers of words; a bad word is a fault of the script.

func (s *script) num(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *script) mem(v string) core.Bytes {
	if v == "all" {
		return fit.AllMemory
	}
	mib, err := grammar.ParseMemory(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return core.Bytes(mib) * core.MiB
}

func (s *script) dur(v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// gres reads name:type:count, several joined by commas; here any list goes, also one the commands would refuse.
func (s *script) gres(v string) (out []core.Gres) {
	for item := range strings.SplitSeq(v, ",") {
		list, err := grammar.ParseGRES(item)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, g := range list {
			out = append(out, core.Gres{Name: g.Name, Type: g.Type, Count: g.Count})
		}
	}
	return out
}

func (s *script) id(v string) core.JobID { return core.JobID(s.num(v)) }

func (s *script) partition(p []string, o args) error {
	part := core.Partition{
		Name: core.PartitionName(p[0]), Nodes: o["nodes"], State: o["state"],
		Default: o["default"] != "",
	}
	if v := o["maxtime"]; v != "" {
		part.MaxTime = core.Seconds(s.dur(v) / time.Second)
	}
	if v := o["maxnodes"]; v != "" {
		part.MaxNodes = int32(s.num(v))
	}
	if v := o["minnodes"]; v != "" {
		part.MinNodes = int32(s.num(v))
	}
	part.ReqResv = o["reqresv"] != ""
	if v := o["tier"]; v != "" {
		part.PriorityTier = int32(s.num(v))
	}
	part.PreemptMode = core.PreemptMode(o["preempt"])
	if v := o["grace"]; v != "" {
		part.Grace = core.Seconds(s.dur(v) / time.Second)
	}
	if v := o["maxmem"]; v != "" {
		part.MaxMemPerNode = s.mem(v)
	}
	if v := o["defmem"]; v != "" {
		part.DefMemPerCPU = s.mem(v)
	}
	part.LLN, part.ExclusiveUser = o["lln"] != "", o["exclusiveuser"] != ""
	s.access(&part, o)
	s.bounds(&part, o)
	s.cfg.Partitions = append(slices.DeleteFunc(slices.Clone(s.cfg.Partitions),
		func(o core.Partition) bool { return o.Name == part.Name }), part)
	return nil
}

func (s *script) config(_ []string, o args) error {
	for k, v := range o {
		switch k {
		case "":
		case "maxrequeues":
			s.cfg.MaxRequeues = int32(s.num(v))
		case "maxjobs":
			s.cfg.MaxJobs = int(s.num(v))
		case "idle":
			d, err := time.ParseDuration(v)
			if err != nil {
				s.t.Fatal(err)
			}
			s.cfg.InteractiveIdle = core.Seconds(d / time.Second)
		case "licenses":
			for w := range strings.SplitSeq(v, ",") {
				name, n, _ := strings.Cut(w, ":")
				s.cfg.Licenses = append(s.cfg.Licenses, core.License{Name: name, Total: s.num(n)})
			}
		case "overrun":
			if s.cfg.ReservationOverrun = core.Forever; v != "unlimited" {
				s.cfg.ReservationOverrun = core.Seconds(s.dur(v) / time.Second)
			}
		case "strict":
			s.cfg.StrictSubmit = v == "yes"
		case "rule":
			rule, ok := core.ParseRule(v)
			if !ok {
				s.t.Fatalf("rule %s?", v)
			}
			s.cfg.Rule = rule
		case "reservations":
			s.cfg.Reservations = int32(s.num(v))
		case "resume":
			s.cfg.ResumeTime = core.Seconds(s.dur(v) / time.Second)
		default:
			if !s.limitConfig(k, v) && !s.powerConfig(k, v) {
				s.t.Fatalf("config %s?", k)
			}
		}
	}
	return nil
}

// nodes LIST cpus= mem= gres= features= user= : the agents of these nodes register.
func (s *script) nodes(p []string, o args) error {
	names, err := hostlist.Expand(p[0], 1000)
	if err != nil {
		return err
	}
	for _, n := range names {
		name := core.NodeName(n)
		r, known := s.hw[name]
		if !known {
			b := coretest.Node(name).Build()
			r = Register{Node: name, Hardware: b.Hardware, Host: b.Host, Roles: b.Roles}
		}
		if v := o["cpus"]; v != "" {
			r.Hardware.CPUs = int32(s.num(v))
		}
		if v := o["mem"]; v != "" {
			r.Hardware.Memory = s.mem(v)
		}
		if v := o["gres"]; v != "" {
			r.Hardware.Gres = s.gres(v)
		}
		if v := o["weight"]; v != "" { // as a config file says it, before the node joins
			s.w.must(&PutNode{Node: coretest.Node(name).Weight(int32(s.num(v))).Build()})
		}
		s.hardware(&r.Hardware, o)
		if v := o["features"]; v != "" {
			r.Features = strings.Split(v, ",")
		}
		if v := o["user"]; v != "" { // its agent is not root, but this user
			r.Host.Root, r.Host.UID = v == "root", s.user(core.UserName(v))
		}
		s.hw[name] = r
		if _, err := s.w.do(&r); err != nil {
			return err
		}
	}
	return nil
}

// node NAME silent|back|fence|reboot|reconnect, or what is asked of it: restart and the others of core.NodeVerbs;
// running=JOB.ATTEMPT.STEP
func (s *script) node(p []string, o args) error {
	name := core.NodeName(p[0])
	var in Input
	switch p[1] {
	case "silent":
		in = &NodeSilence{Node: name}
	case "back":
		in = &NodeSilence{Node: name, Back: true}
	case "fence":
		in = &Fenced{Node: name}
	case "reboot", "reconnect":
		r := s.hw[name]
		if p[1] == "reboot" {
			s.boot[name]++
			r.Host.BootID = fmt.Sprintf("boot-%d", 1+s.boot[name])
			s.hw[name] = r
		}
		if v := o["running"]; v != "" {
			f := strings.Split(v, ".")
			r.Running = []StepRef{{Job: s.id(f[0]), Attempt: int32(s.num(f[1])), Step: f[2]}}
		}
		reply, err := s.w.do(&r)
		if err == nil {
			for _, k := range reply.(*Reconciled).Kill {
				s.printf("kill %d.%d.%s", k.Job, k.Attempt, k.Step)
			}
		}
		return err
	default:
		if p[1] == "restart" { // that is what is asked; reboot is that it happened
			p[1] = "reboot"
		}
		in = &UpdateNode{
			By: s.by(o), Node: name, State: core.NodeVerb(p[1]), Next: core.NodeVerb(o["next"]), System: o["system"] != "",
			Reason: strings.ReplaceAll(o["reason"], "_", " "), ResumeAfter: s.after(o["after"]),
		}
	}
	_, err := s.w.do(in)
	return err
}

func (s *script) spec(name string, o args) *core.Spec {
	user := core.UserName(o["user"])
	if user == "" {
		user = "alice"
	}
	b := coretest.Job().Name(name).User(user).Partition(core.PartitionName(o["partition"]))
	uid := s.user(user)
	b.Set(func(sp *core.Spec) { sp.UID, sp.GID = uid, uid })
	x := core.Extra{
		NodeList: o["nodelist"], Exclude: o["exclude"], Constraint: coretest.Constraint(o["constraint"]),
		Dependency: coretest.Dependency(o["dependency"]), Licenses: coretest.Licenses(o["licenses"]),
	}
	wishes := s.wishes(b, &x, o)
	wishes = s.times(&x, o) || wishes
	wishes = s.shapes(b, &x, o) || wishes
	for k, v := range o {
		switch k {
		case "cpus":
			b.CPUs(int32(s.num(v)))
		case "tasks":
			b.Tasks(int32(s.num(v)))
		case "nodes":
			lo, hi, ok := strings.Cut(v, "-")
			if !ok || lo == "" {
				lo, hi = v, v
			}
			b.Set(func(sp *core.Spec) { sp.Shape.NodesMin, sp.Shape.NodesMax = int32(s.num(lo)), int32(s.num(hi)) })
		case "pernode":
			b.Set(func(sp *core.Spec) { sp.Shape.TasksPerNode = int32(s.num(v)) })
		case "mincpus":
			b.Set(func(sp *core.Spec) { sp.Shape.MinCPUs = int32(s.num(v)) })
		case "mem":
			b.Mem(s.mem(v))
		case "mempercpu":
			b.MemPerCPU(s.mem(v))
		case "gres":
			b.Set(func(sp *core.Spec) { sp.Shape.Gres = s.gres(v) })
		case "time":
			b.Time(s.dur(v))
		case "begin":
			b.Set(func(sp *core.Spec) { sp.Begin = s.w.now.Add(s.dur(v)) })
		case "nice":
			b.Set(func(sp *core.Spec) { sp.Nice = int32(s.num(v)) })
		case "prio":
			p := uint32(s.num(v))
			x.Priority = &p
		case "hold":
			b.Set(func(sp *core.Spec) { sp.Hold = true })
		case "maxprice":
			x.MaxPrice = core.Price(s.num(v) * 1_000_000)
		case "kill":
			x.Keep().KillInvalid = ptr(v == "yes")
		case "nokill":
			x.Keep().NoKill = ptr(v != "off")
			wishes = true
		case "requeue":
			b.Set(func(sp *core.Spec) { sp.Requeue = v != "no" })
		case "exclusive":
			b.Exclusive()
		case "qos":
			b.Set(func(sp *core.Spec) { sp.QOS = core.QOSName(v) })
		case "project":
			b.Set(func(sp *core.Spec) { sp.Project = core.ProjectName(v) })
		case "reservation":
			x.Reservation = v
		case "", "user", "by", "key", "strict", "run", "nodelist", "exclude", "constraint", "dependency", "licenses",
			"partition":
		default:
			if !wishWords[k] && !shapeWord(k) && k != "groups" && k != "runprio" {
				s.t.Fatalf("submit with %s?", k)
			}
		}
	}
	if x.NodeList+x.Exclude != "" || !x.Constraint.IsZero() || !x.Dependency.IsZero() || !x.Licenses.IsZero() ||
		x.Priority != nil || x.MaxPrice != 0 || wishes || s.rank(&x, o) {
		b.Set(func(sp *core.Spec) { sp.Extra = &x })
	}
	return b.Spec()
}

func (s *script) send(spec *core.Spec, o args) error {
	by := core.Identity{User: spec.User, UID: spec.UID}
	if o["by"] != "" {
		by = s.by(o)
	}
	in := &Submit{By: by, Spec: spec, Key: o["key"], Strict: o["strict"] != "", Groups: words(o["groups"])}
	if v := o["run"]; v != "" {
		in.Run = &core.Run{Name: v, ID: fmt.Sprintf("%s-%d", v, s.w.st.rec.NextJob())}
	}
	reply, err := s.w.do(in)
	if err != nil {
		return err
	}
	r := reply.(*Submitted)
	if r.Duplicate {
		s.printf("job %d, as before", r.ID)
	} else {
		s.printf("job %d", r.ID)
	}
	return nil
}

func (s *script) submit(p []string, o args) error { return s.send(s.spec(p[0], o), o) }

// array NAME 0-9%2 …
func (s *script) array(p []string, o args) error {
	spec := s.spec(p[0], o)
	spec.Array = p[1]
	if expr, limit, ok := strings.Cut(p[1], "%"); ok {
		spec.Array, spec.Throttle = expr, int32(s.num(limit))
	}
	return s.send(spec, o)
}

func (s *script) alloc(p []string, o args) error {
	spec := s.spec(p[0], o)
	spec.Kind = core.Interactive
	return s.send(spec, o)
}

// step JOB [on=n[1-2]] [by=]: srun inside the job.
func (s *script) step(p []string, o args) error {
	j, ok := s.w.st.rec.Job(s.id(p[0]))
	if !ok {
		return core.Errorf(core.NotFound, "no job %s", p[0])
	}
	st := &core.Step{Job: j.ID, Name: cmp.Or(o["name"], "step"), CPUs: 1}
	if v := o["on"]; v != "" {
		names, err := hostlist.Expand(v, 100)
		if err != nil {
			return err
		}
		for _, n := range names {
			st.Nodes = append(st.Nodes, core.NodeName(n))
		}
	} else if j.Alloc != nil {
		for i := range j.Alloc.Nodes {
			st.Nodes = append(st.Nodes, j.Alloc.Nodes[i].Node)
		}
	}
	for range st.Nodes {
		st.Tasks = append(st.Tasks, 1)
	}
	by := core.Identity{User: j.Spec.User}
	if o["by"] != "" {
		by = s.by(o)
	}
	if request := s.stepRequest(o); request != nil {
		return s.placeStep(&CreateStep{By: by, Step: &core.Step{Job: j.ID, Name: "step"}, Request: request})
	}
	reply, err := s.w.do(&CreateStep{By: by, Step: st})
	if err == nil {
		s.printf("step %d.%d", j.ID, reply.(*StepsCreated).Steps[0].ID)
	}
	return err
}

// exit JOB[.STEP] [CODE|sigN] [cause=] [node=] [attempt=] [keep=yes] [message=]: keep: the node is not clean yet.
func (s *script) exit(p []string, o args) error {
	id, step, ok := strings.Cut(p[0], ".")
	if !ok {
		step = "batch"
	}
	in := &Exited{
		Job: s.id(id), Step: step, Attempt: 1, Cause: ExitCause(o["cause"]), JobDone: o["keep"] == "",
		Message: strings.ReplaceAll(o["message"], "_", " "), Usage: core.Usage{User: time.Second, MaxRSS: core.MiB},
		Node: core.NodeName(o["node"]),
	}
	if len(p) > 1 {
		if sig, ok := strings.CutPrefix(p[1], "sig"); ok {
			in.Exit.Signal = int32(s.num(sig))
		} else {
			in.Exit.Code = int32(s.num(p[1]))
		}
	}
	if j := s.seen[in.Job]; j != nil {
		in.Attempt = max(1, j.Attempt)
		if in.Node == "" && j.Alloc != nil {
			in.Node = j.Alloc.Nodes[0].Node
		}
	}
	if v := o["attempt"]; v != "" {
		in.Attempt = int32(s.num(v))
	}
	_, err := s.w.do(in)
	return err
}

// done JOB NODE…: the node is clean of the job.
func (s *script) done(p []string, o args) error {
	id := s.id(p[0])
	attempt := s.seen[id].Attempt
	if v := o["attempt"]; v != "" {
		attempt = int32(s.num(v))
	}
	for _, n := range p[1:] {
		if _, err := s.w.do(&NodeDone{Node: core.NodeName(n), Job: id, Attempt: attempt}); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) giveback(p []string, o args) error {
	in := &AllocDone{By: s.by(o), Job: s.id(p[0])}
	switch {
	case len(p) > 1 && p[1] == "oom":
		in.Exit = core.ExitOOM
	case len(p) > 1:
		in.Exit.Code = int32(s.num(p[1]))
	}
	_, err := s.w.do(in)
	return err
}

// cancel JOB | JOB_TASKS [states=PENDING,RUNNING] [by=]
func (s *script) cancel(p []string, o args) error {
	id, tasks, some := strings.Cut(p[0], "_")
	in := &Cancel{By: s.by(o), Job: s.id(id), Abort: o["abort"] != ""}
	if some {
		set, err := taskset.Parse(tasks)
		if err != nil {
			return err
		}
		in.Tasks = set
	}
	if v := o["states"]; v != "" {
		for _, name := range strings.Split(v, ",") {
			st, ok := core.ParseJobState(name)
			if !ok {
				s.t.Fatalf("state %s?", name)
			}
			in.States = append(in.States, st)
		}
	}
	_, err := s.w.do(in)
	return err
}

// hold|release|update JOB …
func (s *script) update(p []string, o args) error {
	id, tasks, some := strings.Cut(p[0], "_")
	in := &UpdateJob{By: s.by(o), Job: s.id(id)}
	if some {
		set, err := taskset.Parse(tasks)
		if err != nil {
			return err
		}
		in.Tasks = set
	}
	switch o[""] {
	case "hold":
		in.Hold, in.AdminHold = ptr(true), o["admin"] != ""
	case "release":
		in.Hold = ptr(false)
	}
	for k, v := range o {
		switch k {
		case "time":
			in.TimeLimit = ptr(core.Seconds(s.dur(v) / time.Second))
		case "prio":
			in.Priority = ptr(uint32(s.num(v)))
		case "nice":
			in.Nice = ptr(int32(s.num(v)))
		case "checkpoint": // so long ago
			in.Checkpoint = ptr(s.w.now.Add(-s.dur(v)))
		case "name":
			in.Name = ptr(v)
		case "partition":
			in.Partition = ptr(core.ParsePartitions(v))
		case "dependency":
			in.Dependency = ptr(coretest.Dependency(v))
		case "strict":
			in.Strict = true
		case "licenses":
			in.Wish.Licenses = ptr(coretest.Licenses(v))
		case "reservation":
			in.Wish.Reservation = &v
		case "deadline":
			in.Wish.Deadline = ptr(s.w.now.Add(s.dur(v)))
		case "begin":
			in.Wish.Begin = ptr(s.w.now.Add(s.dur(v)))
		case "timemin":
			in.Wish.TimeMin = ptr(core.Seconds(s.dur(v) / time.Second))
		case "qos":
			in.QOS = ptr(core.QOSName(v))
		case "site":
			in.Site = ptr(int32(s.num(v)))
		case "throttle":
			in.Spec.Throttle = ptr(int32(s.num(v)))
		case "project":
			in.Spec.Project = ptr(core.ProjectName(v))
		case "constraint":
			in.Spec.Constraint = ptr(coretest.Constraint(v))
		case "gpus":
			in.Spec.Gres = &[]core.Gres{{Name: "gpu", Count: int64(s.num(v))}}
		case "nodelist":
			in.Spec.NodeList = &v
		case "exclude":
			in.Spec.Exclude = &v
		case "nodes":
			in.Spec.Nodes = &core.NodeCount{Min: int32(s.num(v))}
		case "tasks":
			in.Spec.Tasks = ptr(int32(s.num(v)))
		case "cpus":
			in.Spec.CPUs = ptr(int32(s.num(v)))
		case "mem":
			in.Spec.MemPerNode = ptr(core.Bytes(s.num(v)) * core.GiB)
		case "requeue":
			in.Spec.Requeue = ptr(v == "yes")
		case "runprio":
			in.Run = ptr(int32(s.num(v)))
		}
	}
	_, err := s.w.do(in)
	return err
}

func ptr[T any](v T) *T { return &v }

func (s *script) requeue(p []string, o args) error {
	_, err := s.w.do(&Requeue{By: s.by(o), Job: s.id(p[0]), Hold: o["hold"] != ""})
	return err
}

func (s *script) suspend(p []string, o args) error {
	_, err := s.w.do(&Suspend{By: s.by(o), Job: s.id(p[0]), Resume: o[""] == "resume"})
	return err
}

func (s *script) advance(p []string, _ args) error {
	to := s.w.now.Add(s.dur(p[0]))
	for at := s.w.st.NextWake(); at != 0 && at < to; at = s.w.st.NextWake() { // what time does, it does in time
		s.w.advance(max(at, s.w.now))
	}
	s.w.advance(to)
	return nil
}

// pass plans and applies the plan: who starts where, and when to look again.
func (s *script) pass(_ []string, _ args) error {
	starts := s.w.pass()
	s.planned(s.w.plan)
	for _, st := range starts {
		j := s.seen[st.ID]
		s.printf("start %s on %s%s", label(j), allocText(j), besideText(j))
	}
	if s.w.plan.WakeAt != 0 {
		s.printf("look again in %v", s.w.plan.WakeAt.Sub(s.w.now))
	}
	return nil
}

func (s *script) restart(_ []string, _ args) error {
	s.w.restart()
	return nil
}
