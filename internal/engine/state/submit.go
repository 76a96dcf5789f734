package state

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/runlife"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched/fit"
)

// apply admits a job: identity, partition, limits, then a record. The order of checks is the order users meet them.
func (in *Submit) apply(s *State) (*Submitted, error) {
	spec := in.Spec
	if use, ok := s.submitKeys.Find(in.Key); ok && in.Key != "" {
		if use.User != spec.User {
			return nil, core.Errorf(core.Conflict, "this submit key was used by somebody else").Because("submit_key")
		}
		return &Submitted{ID: use.Job, Duplicate: true}, nil
	}
	if err := speccheck.Submission(in.Key, in.Spec, in.Components); err != nil {
		return nil, err
	}
	if len(in.Components) > 0 {
		return s.submitHet(in)
	}
	j, err := s.prepareJob(in, spec)
	if err != nil && in.FailUnfit && speccheck.IsUnfit(err) {
		return in.submitUnfit(s, err)
	}
	if err != nil {
		return nil, err
	}
	s.enqueueJob(in, j)
	return &Submitted{ID: j.ID}, nil
}

// prepareJob makes the record of a job that may be, without an id.
func (s *State) prepareJob(in *Submit, spec *core.Spec) (*core.Job, error) {
	if err := s.admit(in, spec); err != nil {
		return nil, err
	}
	j := &core.Job{Spec: spec, Submit: s.rec.Now(), Eligible: max(s.rec.Now(), spec.Begin)}
	j.Priority = s.ranking.PriorityOf(j, spec)
	if spec.Array != "" {
		ref, err := s.parseArray(spec)
		if err != nil {
			return nil, err
		}
		j.Array = ref
	}
	if err := s.counts.Admit(in.By, j, 1+len(in.Components)); err != nil {
		return nil, err
	}
	if err := s.limits.Admit(j); err != nil {
		return nil, err
	}
	if err := s.admitRun(in); err != nil {
		return nil, err
	}
	if spec.More().Dependency != "" {
		if err := s.dependencies.Admit(in.lookup(), j); err != nil {
			return nil, err
		}
	}
	if err := runlife.Admit(j, s.cfg.Zone.Location, s.rec.Now()); err != nil {
		return nil, err
	}
	if spec.Hold {
		j.Flags |= core.HeldUser
		j.Priority = 0
	}
	return j, nil
}

// enqueueJob gives a prepared record its id and puts it down.
func (s *State) enqueueJob(in *Submit, j *core.Job) {
	spec := j.Spec
	j.ID = s.rec.TakeJobID()
	j.SpecID = j.ID
	if j.Array != nil {
		j.Array.Base = j.ID
	}
	if !s.cfg.Unkept {
		s.rec.AddSpec(j.SpecID, spec)
		s.rec.AddBlob(spec.Script, in.Script)
		s.rec.AddBlob(spec.Env, in.Env)
		s.rec.AddBlob(spec.More().Files, in.Files)
	}
	if in.Run != nil {
		s.createRun(in, j.ID)
	}
	edit := s.jobs.EditRecord(j)
	edit.CommitSilently() // its event comes once its key is noted
	if in.Key != "" {
		s.submitKeys.Remember(in.Key, j.ID, spec.User)
		c := s.rec.Changes()
		c.Keys = append(c.Keys, core.SubmitKey{Key: in.Key, Job: j.ID, At: s.rec.Now(), User: spec.User})
	}
	edit.Event(core.JobSubmitted, core.Event{By: in.By.User, Data: s.rec.EventData(live.SubmittedData, j)})
	if j.Needs != nil {
		s.dependencies.EvaluateNew(j.ID, in.Ended)
	}
}

// appendJSON appends a JSON string.
func appendJSON(b []byte, t string) []byte { return jsontext.AppendString(b, t) }

// lookup is what the submission knows of the jobs that its dependency names.
func (in *Submit) lookup() *depend.Lookup {
	return &depend.Lookup{User: in.Spec.User, Ended: in.Ended, Seen: in.Seen, Hidden: in.Hidden, Strict: in.Strict}
}

// admit completes the spec with defaults and checks it.
func (s *State) admit(in *Submit, spec *core.Spec) error {
	user, ok := s.rec.User(spec.User)
	if !ok || user.Disabled {
		return core.Errorf(core.Unknown, "there is no user %q", spec.User).Because("invalid_user")
	}
	if spec.Project == "" {
		spec.Project = in.By.Project
	}
	if spec.Project == "" {
		spec.Project = user.Default
	}
	if spec.Project == "" {
		spec.Project = s.cfg.DefaultProject
	}
	if err := s.admitProject(in, spec); err != nil {
		return err
	}
	if err := s.admitQOS(spec); err != nil {
		return err
	}
	if spec.Partition == "" {
		spec.Partition = s.cluster.DefaultPartition()
		if spec.Partition == "" {
			return core.Errorf(core.Invalid, "no partition was given and there is no default partition").Because(
				"no_default_partition")
		}
	}
	if err := s.admitRuntime(in.By, spec); err != nil {
		return err
	}
	if p := spec.More().Priority; p != nil && *p == 0 { // as Slurm: a hold
		x := *spec.Extra
		x.Priority = nil
		spec.Extra, spec.Hold = &x, true
	} else if p != nil && !in.By.Admin {
		return core.Errorf(core.Denied, "only an administrator may set a priority").Because("access_denied")
	}
	if x := spec.More(); x.Site != 0 && !in.By.Admin {
		return core.Errorf(core.Denied, "only an administrator may set a site factor").Because("access_denied")
	} else if x.RunPriority < 0 || x.RunPriority > 100 {
		return core.Errorf(core.Invalid, "priority: %d must be from 0 to 100", x.RunPriority).Because("invalid_priority")
	}
	if spec.Nice < 0 && !in.By.Admin {
		spec.Nice = 0 // as Slurm: only administrators may go up
	}
	return s.admitShape(in, spec)
}

// admitProject checks who may run in the project. Without enforcement Slurm's users may name any account; others mean a
// project that is there and that they are in.
func (s *State) admitProject(in *Submit, spec *core.Spec) error {
	if err := people.CheckTokenProject(in.By, spec.Project); err != nil {
		return err
	}
	if !s.cfg.EnforceAccounts && !in.Strict || s.rec.Role(spec.User, spec.Project) != core.RoleNone {
		return nil
	}
	_, known := s.rec.Project(spec.Project)
	switch {
	case s.cfg.EnforceAccounts:
		return core.Errorf(core.Invalid, "user %s is not in project %s", spec.User, spec.Project).Because("invalid_account")
	case !known:
		return core.Errorf(core.NotFound, "there is no project %q", spec.Project).Because("invalid_account")
	case !in.By.Admin:
		return core.Errorf(core.Denied, "user %s is not in project %s", spec.User, spec.Project).Because("invalid_account")
	}
	return nil
}

// admitShape checks the request against the partitions it names.
func (s *State) admitShape(in *Submit, spec *core.Spec) error {
	if err := speccheck.Spec(spec); err != nil { // a change comes here without having been a submission
		return err
	}
	if x := spec.Extra; x != nil {
		if err := s.admitExtra(x); err != nil {
			return err
		}
	}
	if err := s.admitReservationsAndLicenses(in, spec); err != nil {
		return err
	}
	if err := speccheck.Shape(spec); err != nil {
		return err
	}
	if err := s.admitSegment(spec); err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(spec.Partition), ",") {
		if _, ok := s.cluster.Partitions[core.PartitionName(name)]; !ok {
			return core.Errorf(core.Invalid, "there is no partition %q", name).Because("invalid_partition")
		}
	}
	list, err := s.usablePartitions(in, spec)
	if err != nil {
		return err
	}
	spec.Partition = list
	if err := s.fillDefaults(spec, s.cluster.Partitions[limits.FirstPartition(list)]); err != nil {
		return err
	}
	if err := s.admitDeadline(spec); err != nil {
		return err
	}
	if err := s.admitUnprivilegedNodes(spec); err != nil { // no partition could have said it as well
		return err
	}
	var refused error // by the first partition; one that takes it is enough
	for name := range strings.SplitSeq(string(spec.Partition), ",") {
		err := s.admitPartition(in, spec, s.cluster.Partitions[core.PartitionName(name)])
		if err == nil {
			return nil
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// fillDefaults puts the partition's defaults where the user said nothing.
func (s *State) fillDefaults(spec *core.Spec, part *cluster.Partition) error {
	sh := &spec.Shape
	if spec.TimeLimit == 0 {
		if x := spec.Extra; x != nil && x.Reservation != "" && x.TimeMin == 0 {
			x.Fill = true
		}
		if spec.TimeLimit = part.DefaultTime; spec.TimeLimit == 0 {
			spec.TimeLimit = part.MaxTime
		}
		if spec.TimeLimit == 0 {
			spec.TimeLimit = core.Forever
		}
		spec.TimeLimit = s.limits.MaxWallTime(spec, part)
	}
	if spec.Extra != nil && speccheck.IsArbitrary(spec.Extra) {
		if err := speccheck.ShapeFromNodeList(spec); err != nil {
			return err
		}
	}
	if err := sh.Derive(); err != nil {
		return err
	}
	if sh.MemPerNode == 0 && sh.MemPerCPU == 0 && sh.Wide().MemPerGPU == 0 {
		if sh.MemPerCPU = part.DefMemPerCPU; sh.MemPerCPU == 0 {
			sh.MemPerCPU = s.cfg.DefMemPerCPU
		}
	}
	sh.CPUsPerTask = max(1, sh.CPUsPerTask)
	if err := speccheck.RaiseCPUsForMemory(sh, part.MaxMemPerCPU); err != nil {
		return err
	}
	if sh.Tasks == 0 {
		tasks := int64(max(1, sh.NodesMin)) * int64(max(1, sh.TasksPerNode))
		if tasks > speccheck.MaxTasks {
			return core.Errorf(core.Invalid, "the job requests %d tasks; the maximum is %d", tasks,
				speccheck.MaxTasks).Because("invalid_shape")
		}
		sh.Tasks = int32(tasks)
	}
	return nil
}

func (s *State) admitExtra(x *core.Extra) error {
	for i, list := range []string{x.NodeList, x.Exclude} {
		if list == "" {
			continue
		}
		// The writer expands no more names than there are nodes: beyond that one of them is wrong anyway. A list of the
		// nodes of tasks names them again and again.
		most := s.rec.NumNodes() + 1
		if i == 0 && speccheck.IsArbitrary(x) {
			most = speccheck.MaxListedTasks
		}
		names, err := hostlist.Expand(list, most)
		if err != nil {
			return core.Errorf(core.Invalid, "node list %.200q: %v", list, err).Because("invalid_node")
		}
		if len(names) == 0 {
			return core.Errorf(core.Invalid, "node list %.200q names no node", list).Because("invalid_node")
		}
		for _, n := range names {
			if _, ok := s.rec.Node(core.NodeName(n)); !ok {
				return core.Errorf(core.Invalid, "there is no node %q", n).Because("invalid_node")
			}
		}
	}
	if err := s.admitConstraints(x); err != nil {
		return err
	}
	if x.KillGrace < 0 || x.KillGrace > s.cfg.MaxKillGrace {
		return core.Errorf(core.Invalid, "kill_grace: %v exceeds the limit of %v", x.KillGrace.Duration(),
			s.cfg.MaxKillGrace.Duration()).Because("kill_grace")
	}
	return nil
}

// admitPartition checks what can never start. As Slurm: a node configuration that is not there is refused, but tasks
// wider than any node, and a node count or time over the partition's limit, wait with their reason, unless submission
// is strict.
func (s *State) admitPartition(in *Submit, spec *core.Spec, part *cluster.Partition) error {
	strict := in.Strict || s.cfg.StrictSubmit
	if part.State == "INACTIVE" || part.State == "DRAIN" {
		return core.Errorf(core.Conflict, "partition %s does not accept jobs now", part.Name).Because("partition_inactive")
	}
	nodes := s.rec.NumNodes()
	if part.Nodes != nil {
		nodes = len(part.Nodes)
	}
	over := ""
	lifts := func(f core.QOSFlag) bool { q := s.rec.QOSByName()[spec.QOS]; return q != nil && q.Flags&f != 0 }
	switch sh := &spec.Shape; {
	case part.MaxTime > 0 && spec.TimeLimit > part.MaxTime && !lifts(core.PartitionTimeLimit):
		over = fmt.Sprintf("the job requests %v; partition %s allows %v", spec.TimeLimit.Duration(), part.Name,
			part.MaxTime.Duration())
		if strict {
			return core.Errorf(core.Invalid, "%s", over).Because("time_limit")
		}
	case part.MaxNodes > 0 && sh.NodesMin > part.MaxNodes && !lifts(core.PartitionMaxNodes):
		over = fmt.Sprintf("the job requests %d nodes; partition %s allows %d per job", sh.NodesMin, part.Name, part.MaxNodes)
	case int(sh.NodesMin) > nodes:
		over = fmt.Sprintf("the job requests %d nodes; partition %s has %d", sh.NodesMin, part.Name, nodes)
	}
	if over != "" {
		if strict {
			return core.Errorf(core.Invalid, "%s", over).Because("too_many_nodes")
		}
		return nil
	}
	if least, most := speccheck.MinMemoryPerNode(&spec.Shape), part.MaxMemPerNode; most > 0 && least > most {
		return core.Errorf(core.Invalid, "the job requests %d MiB of memory on a node; partition %s allows %d",
			least/core.MiB,
			part.Name, most/core.MiB).Because("memory_unsatisfiable")
	}
	key := cluster.AdmitKey{Key: fit.KeyOf(spec), UID: s.cluster.Ledger.KeptUser(spec)}
	fault, seen := part.AdmitCache[key]
	if !seen {
		if fault = s.checkGresExists(spec); fault == nil {
			fault = s.checkFeaturesExist(spec)
		}
		if fault == nil {
			fault = fit.CheckSatisfiable(s.cluster.Ledger, spec, &part.Partition, &part.Within, s.cluster.Expand)
		}
		if len(part.AdmitCache) > 10_000 {
			clear(part.AdmitCache)
		}
		part.AdmitCache[key] = fault
	}
	if fault != nil && len(s.cfg.Offers) > 0 && fit.OffersCouldHold(s.cfg.Offers, spec, part.Name, s.cluster.Expand) {
		return nil
	}
	if fault != nil && (strict || !fault.OnlyCPUs) {
		return core.Errorf(core.Invalid, "%s", fault.Text).Because(fault.Reason)
	}
	return nil
}

// checkGresExists refuses resources no node has any of.
func (s *State) checkGresExists(spec *core.Spec) *fit.Unsatisfiable {
	for _, want := range speccheck.AllGres(&spec.Shape) {
		found := false
		for n := range s.rec.Nodes() {
			for _, g := range n.Hardware.Gres {
				found = found || g.Name == want.Name
			}
		}
		if !found {
			return &fit.Unsatisfiable{Reason: "invalid_gres", Text: fmt.Sprintf("no node has %q", want.Name)}
		}
	}
	return nil
}

// admitUnprivilegedNodes refuses what no node may run: without root an agent runs its own user's jobs only.
func (s *State) admitUnprivilegedNodes(spec *core.Spec) error {
	any := s.rec.NumNodes() == 0
	for n := range s.rec.Nodes() {
		if n.Host.KeptTo() == 0 || n.Host.KeptTo() == spec.UID || n.Flags.Has(core.NodeUnknown) {
			any = true
			break
		}
	}
	if any {
		return nil
	}
	return core.Errorf(core.Denied,
		"the nodes' agents do not run as root and run only their own user's jobs, not those of %s (uid %d)", spec.User,
		spec.UID).Because("access_denied")
}

func (s *State) parseArray(spec *core.Spec) (*core.ArrayRef, error) {
	set, err := taskset.Parse(spec.Array)
	if err != nil || set.Len() == 0 {
		return nil, core.Errorf(core.Invalid, "array %q: %v", spec.Array, err).Because("invalid_array")
	}
	if set.Pieces() > speccheck.MaxArrayRanges {
		return nil, core.Errorf(core.Invalid, "array %.80q: its indices are %d ranges; the limit is %d", spec.Array,
			set.Pieces(), speccheck.MaxArrayRanges).Because("invalid_array")
	}
	if spec.Kind != core.Batch {
		return nil, core.Errorf(core.Invalid, "only batch jobs can be arrays").Because("invalid_array")
	}
	if int64(set.Max()) >= int64(s.cfg.MaxArraySize) {
		return nil, core.Errorf(core.Invalid, "array: index %d exceeds the limit of %d", set.Max(),
			s.cfg.MaxArraySize-1).Because("invalid_array")
	}
	return &core.ArrayRef{
		Tasks: set, Count: int32(set.Len()), Min: int32(set.Min()), Max: int32(set.Max()),
		Step: int32(set.Step()),
	}, nil
}

// admitRun checks a run's name: one open run a name and project.
func (s *State) admitRun(in *Submit) error {
	if in.Run == nil {
		return nil
	}
	if !named.IsValid(in.Run.Name) {
		return core.Errorf(core.Invalid, "%q is not a valid run name", in.Run.Name).Because("invalid_name")
	}
	in.Run.Project = in.Spec.Project
	if r, ok := s.rec.Run(in.Run.Project, in.Run.Name); ok {
		return core.Errorf(core.Conflict, "run %s already exists (job %d); stop it first or use another name", r.Name,
			r.Jobs[0]).Because("run_exists")
	}
	return nil
}

func (s *State) createRun(in *Submit, id core.JobID) {
	r := in.Run
	r.Jobs, r.Created, r.User = []core.JobID{id}, s.rec.Now(), in.Spec.User
	in.Spec.Run = r.Name
	s.rec.AddBlob(r.Config, in.Config)
	s.rec.PutRun(r)
}
