package admit

import (
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/advance"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// Admission completes what jobs ask for and refuses what may not be.
type Admission struct {
	rec          *live.Records
	cfg          *conf.Config
	cluster      *cluster.Cluster
	limits       *limits.Limits
	reservations *advance.Reservations
}

// New makes an admission by the present records and settings.
func New(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, l *limits.Limits,
	r *advance.Reservations,
) *Admission {
	return &Admission{rec: rec, cfg: cfg, cluster: cl, limits: l, reservations: r}
}

// Request is who asks.
type Request struct {
	By     core.Identity
	Groups []string // unix groups of the job's user, where a partition or a reservation asks for them
	Strict bool     // refuse what can never start instead of letting it wait
	Site   bool     // the site's own plug-ins may have set what only administrators may ask for
}

// Admit completes the spec with defaults and checks it.
func (a *Admission) Admit(in *Request, spec *core.Spec) error {
	user, ok := a.rec.User(spec.User)
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
		spec.Project = a.cfg.DefaultProject
	}
	if err := a.Project(in, spec); err != nil {
		return err
	}
	if err := a.QOS(spec); err != nil {
		return err
	}
	if spec.Partition.IsZero() {
		spec.Partition = core.ListPartitions(a.cluster.DefaultPartition())
		if spec.Partition.IsZero() {
			return core.Errorf(core.Invalid, "no partition was given and there is no default partition").Because(
				"no_default_partition")
		}
	}
	if err := a.Runtime(in.By, spec); err != nil {
		return err
	}
	if p := spec.More().Priority; p != nil && *p == 0 { // as Slurm: a hold
		x := *spec.Extra
		x.Priority = nil
		spec.Extra, spec.Hold = &x, true
	}
	if !in.By.Admin && !in.Site {
		if err := speccheck.Ordinary(spec); err != nil {
			return err
		}
	}
	if x := spec.More(); x.RunPriority < 0 || x.RunPriority > 100 {
		return core.Errorf(core.Invalid, "priority: %d must be from 0 to 100", x.RunPriority).Because("invalid_priority")
	}
	if spec.Nice < 0 && !in.By.Admin && !in.Site {
		spec.Nice = 0 // as Slurm: only administrators may go up
	}
	// Its texts were checked as a submission's, and what was filled in since comes from the settings and the policy.
	if err := speccheck.Ranges(spec); err != nil {
		return err
	}
	return a.shape(in, spec)
}

// Readmit checks a job that was admitted before and comes back: its user, project, QOS and partitions must still be
// there. The spec stays as it is.
func (a *Admission) Readmit(in *Request, spec *core.Spec) error {
	if user, ok := a.rec.User(spec.User); !ok || user.Disabled {
		return core.Errorf(core.Unknown, "there is no user %q", spec.User).Because("invalid_user")
	}
	if err := a.Project(in, spec); err != nil {
		return err
	}
	again := *spec // the default QOS would be written there
	if err := a.QOS(&again); err != nil {
		return err
	}
	return a.checkPartitions(spec)
}

// checkPartitions refuses partitions that are not there.
func (a *Admission) checkPartitions(spec *core.Spec) error {
	for name := range spec.Partition.All() {
		if _, ok := a.cluster.Partitions[name]; !ok {
			return core.Errorf(core.Invalid, "there is no partition %q", name).Because("invalid_partition")
		}
	}
	return nil
}

// alternates puts in the place of partitions that take no jobs now those that take theirs.
func (a *Admission) alternates(list core.PartitionList) core.PartitionList {
	closed := func(p *cluster.Partition) bool {
		return p.Alternate != "" && (p.State == "INACTIVE" || p.State == "DRAIN") && a.cluster.Partitions[p.Alternate] != nil
	}
	any := false
	for name := range list.All() {
		any = any || closed(a.cluster.Partitions[name])
	}
	if !any {
		return list
	}
	var names []core.PartitionName
	for name := range list.All() {
		if p := a.cluster.Partitions[name]; closed(p) {
			name = p.Alternate
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return core.ListPartitions(names...)
}

// Project checks who may run in the project. Without enforcement Slurm's users may name any account; others mean a
// project that is there and that they are in.
func (a *Admission) Project(in *Request, spec *core.Spec) error {
	if err := people.CheckTokenProject(in.By, spec.Project); err != nil {
		return err
	}
	if !a.cfg.EnforceProjects && !in.Strict || a.rec.Role(spec.User, spec.Project) != core.RoleNone {
		return nil
	}
	_, known := a.rec.Project(spec.Project)
	switch {
	case a.cfg.EnforceProjects:
		return core.Errorf(core.Invalid, "user %s is not in project %s", spec.User, spec.Project).Because("invalid_account")
	case !known:
		return core.Errorf(core.NotFound, "there is no project %q", spec.Project).Because("invalid_account")
	case !in.By.Admin:
		return core.Errorf(core.Denied, "user %s is not in project %s", spec.User, spec.Project).Because("invalid_account")
	}
	return nil
}

// Shape checks a request that was changed, and has not been a submission, against the partitions it names.
func (a *Admission) Shape(in *Request, spec *core.Spec) error {
	if err := speccheck.Spec(spec); err != nil {
		return err
	}
	return a.shape(in, spec)
}

// shape checks the request against the partitions it names. Its texts and numbers have been checked.
func (a *Admission) shape(in *Request, spec *core.Spec) error {
	if err := a.volumes(spec); err != nil {
		return err
	}
	if x := spec.Extra; x != nil {
		if err := a.checkExtra(x); err != nil {
			return err
		}
	}
	if err := a.ReservationsAndLicenses(in, spec); err != nil {
		return err
	}
	if err := speccheck.Shape(spec); err != nil {
		return err
	}
	if err := a.checkSegment(spec); err != nil {
		return err
	}
	if err := a.checkPartitions(spec); err != nil {
		return err
	}
	spec.Partition = a.alternates(spec.Partition)
	list, err := a.UsablePartitions(in, spec)
	if err != nil {
		return err
	}
	spec.Partition = list
	if err := a.fillDefaults(spec, a.cluster.Partitions[list.First()]); err != nil {
		return err
	}
	if err := a.Deadline(spec); err != nil {
		return err
	}
	if err := a.checkUnprivilegedNodes(spec); err != nil { // no partition could have said it as well
		return err
	}
	var refused error // by the first partition; one that takes it is enough
	for name := range spec.Partition.All() {
		err := a.checkPartition(in, spec, a.cluster.Partitions[name])
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
func (a *Admission) fillDefaults(spec *core.Spec, part *cluster.Partition) error {
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
		spec.TimeLimit = a.limits.MaxWallTime(spec, part)
	}
	if spec.Extra != nil && speccheck.IsArbitrary(spec.Extra) {
		if err := speccheck.ShapeFromNodeList(spec); err != nil {
			return err
		}
	}
	defaultsPerGPU(sh, part)
	if err := sh.Derive(); err != nil {
		return err
	}
	if sh.MemPerNode == 0 && sh.MemPerCPU == 0 && sh.Wide().MemPerGPU == 0 {
		defaultMemory(sh, part, a.cfg.DefMemPerCPU)
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

// defaultsPerGPU gives CPUs and memory to a request for GPUs that names none, where the partition says how many.
func defaultsPerGPU(sh *core.Shape, part *cluster.Partition) {
	if part.DefCPUsPerGPU == 0 && part.DefMemPerGPU == 0 || !asksGPUs(sh) {
		return
	}
	m := *sh.Wide()
	if m.CPUsPerGPU == 0 && sh.Given&core.GivenCPUsPerTask == 0 {
		m.CPUsPerGPU = part.DefCPUsPerGPU
	}
	if m.MemPerGPU == 0 && sh.MemPerNode == 0 && sh.MemPerCPU == 0 {
		m.MemPerGPU = part.DefMemPerGPU
	}
	sh.More = &m
}

// asksGPUs reports whether a request is for GPUs, in any of the ways to ask for them.
func asksGPUs(sh *core.Shape) bool {
	m := sh.Wide()
	return len(m.GPUs)+len(m.GPUsPerTask)+len(m.GPUsPerSocket) > 0 || core.CountGres(sh.Gres, "gpu") > 0
}

// defaultMemory gives memory to a request that names none: what the partition says, else the cluster.
func defaultMemory(sh *core.Shape, part *cluster.Partition, perCPU core.Bytes) {
	switch {
	case part.DefMemPerNode > 0:
		sh.MemPerNode = part.DefMemPerNode
	case part.DefMemPerCPU > 0:
		sh.MemPerCPU = part.DefMemPerCPU
	default:
		sh.MemPerCPU = perCPU
	}
}

// Deadline checks the shortest time and the deadline of a job, once its limit is known.
func (a *Admission) Deadline(spec *core.Spec) error {
	x := spec.Extra
	if x == nil || x.TimeMin == 0 && x.Deadline == 0 {
		return nil
	}
	if x.TimeMin < 0 || x.TimeMin > spec.TimeLimit {
		return core.Errorf(core.Invalid, "time_min: %v exceeds the time limit %v", x.TimeMin.Duration(),
			spec.TimeLimit.Duration()).Because("time_limit")
	}
	if x.Deadline == 0 {
		return nil
	}
	now := a.rec.Now()
	left := core.Seconds(x.Deadline.Sub(now)/time.Minute) * 60 // whole minutes
	if x.LateAccepted && x.TimeMin == 0 && spec.TimeLimit == core.Forever && left > 0 {
		x.TimeMin, spec.TimeLimit = 60, left
	}
	if jobs.LatestStart(spec) >= max(now, spec.Begin) || x.LateAccepted && x.TimeMin == 0 && x.Deadline > now {
		return nil
	}
	why := "time_limit"
	if x.LateAccepted && x.TimeMin > 0 && x.Deadline > now {
		why = "time_min"
	}
	return core.Errorf(core.Invalid, "deadline: the job could not end before %s",
		x.Deadline.Go().UTC().Format("2006-01-02T15:04:05Z")).Because(why)
}

// Array reads the indices of an array.
func (a *Admission) Array(spec *core.Spec) (*core.ArrayRef, error) {
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
	if int64(set.Max()) >= int64(a.cfg.MaxArraySize) {
		return nil, core.Errorf(core.Invalid, "array: index %d exceeds the limit of %d", set.Max(),
			a.cfg.MaxArraySize-1).Because("invalid_array")
	}
	return &core.ArrayRef{
		Tasks: set, Count: int32(set.Len()), Min: int32(set.Min()), Max: int32(set.Max()),
		Step: int32(set.Step()),
	}, nil
}
