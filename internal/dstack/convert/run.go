package convert

import (
	"encoding/json"
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// View is what the conversion of runs needs to know of the cluster.
type View struct {
	Now      core.Time
	Node     func(core.NodeName) *core.Node // nil: it is gone
	Listener attach.Listener                // where jobs are reached by SSH
	Images   Images                         // of containers that name none
	// FleetOf names the fleet of a node, which may be a partition, and its id.
	FleetOf func(n *core.Node, part core.PartitionName) wire.NamedID

	WithJobs    bool
	Submissions int // of each job, the newest; below 0: all
	// Left bounds the answer, in bytes of jobs that are still to come: each job repeats what its run is. Of a run for
	// which nothing is left only the first job is told. nil: no bound.
	Left *int64
}

// jobOverhead is about what a job, and each of its submissions, has in an answer beside what it repeats of its run.
const jobOverhead = 4 << 10

// spend gives how many of a run's jobs an answer may have.
func (v *View) spend(r *Shown, jobs int) int {
	if v.Left == nil || jobs == 0 {
		return jobs
	}
	attempts := 1
	if e := r.Job.Earlier; e != nil {
		attempts += len(e.Attempts)
	}
	if v.Submissions >= 0 {
		attempts = min(attempts, v.Submissions)
	}
	each := int64(len(r.Raw)) + jobOverhead*int64(1+attempts)
	n := max(1, min(jobs, int(*v.Left/each)))
	*v.Left = max(0, *v.Left-int64(n)*each)
	return n
}

// Shown is a run with what is known of it.
type Shown struct {
	Run     *core.Run
	Job     *core.Job // nil: it was purged
	Spec    *Spec
	Raw     json.RawMessage // JSON of Spec
	Waiting string          // why the job waits; empty: not known yet
	// Launching says what is done before the part of a rank runs; nil: all parts run.
	Launching func(rank int) Launching
	Deleted   bool
	Replicas  []Replica // of a service, by number
	Begun     bool      // it is an array of which some tasks have started; Job stands for those that wait
}

// Launching is what is done before a part of a run runs.
type Launching struct {
	Status string                  // provisioning or pulling; empty: it runs
	Pull   *wire.ImagePullProgress // while its image comes
}

// launching is what is done before the part of a rank runs.
func (r *Shown) launching(rank int) Launching {
	if r.Launching == nil {
		return Launching{}
	}
	return r.Launching(rank)
}

// SubmissionID is the id of an attempt of one node's part of a run. num counts from 0.
func SubmissionID(job core.JobID, num int32, rank int) string {
	return wire.UUID(wire.KindSubmission, fmt.Sprintf("%d/%d/%d", job, num, rank))
}

// JobUUID is the id of one node's part of a run.
func JobUUID(job core.JobID, rank int) string {
	return wire.UUID(wire.KindJob, fmt.Sprintf("%d/%d", job, rank))
}

// Run is a run as clients see it.
func (v *View) Run(r *Shown) *wire.Run {
	out := &wire.Run{
		ID: wire.RunID(r.Run.ID), ProjectName: string(r.Run.Project), User: string(r.Run.User),
		SubmittedAt: wire.Time(r.Run.Created), LastProcessedAt: wire.Time(r.Run.Created), RunSpec: r.Raw,
		Jobs: []wire.Job{}, DeploymentNum: r.Run.Updates, Deleted: r.Deleted || r.Run.Deleted != 0,
	}
	j := r.Job
	if r.Run.Service != nil {
		out.Service = serviceOf(r.Run)
		if len(r.Replicas) == 0 && r.Run.Ended == 0 { // it waits for requests
			out.Status, out.StatusMessage = wire.RunPending, wire.RunPending
			return out
		}
	}
	if j == nil {
		out.Status, out.StatusMessage = wire.RunTerminated, wire.RunTerminated
		return out
	}
	out.BiremeJob = int64(j.ID)
	if len(r.Run.Jobs) > 0 {
		out.BiremeJob = int64(r.Run.Jobs[0])
	}
	if next := j.NextTrigger(v.Now); next != 0 {
		out.Status, out.StatusMessage, out.NextTriggeredAt = wire.RunPending, wire.RunPending, wire.TimePtr(next)
		if j.Attempt == 0 {
			return out
		}
	}
	at := stageOf(j, waitingText(j, r.Waiting), r.launching(0).Status)
	status, reason := runStatus(j, at, v.Now)
	if r.Begun && (status == wire.RunSubmitted || status == wire.RunPending) {
		out.Status, out.StatusMessage = wire.RunRunning, at.message
	}
	if out.Status == "" {
		out.Status, out.StatusMessage = status, runMessage(status, at, j)
	}
	if reason != core.EndNone {
		text := string(reason)
		out.TerminationReason = &text
		if e := runEndings[reason].err; e != "" && status != wire.RunTerminating {
			out.Error = &e
		}
	}
	last := v.submission(r, j, v.stage(r, 0), 0)
	out.LatestJobSubmission = &last
	out.LastProcessedAt = last.LastProcessedAt
	if al := j.Alloc; al != nil && len(al.Nodes) > 0 && v.FleetOf != nil {
		if n := v.Node(al.Nodes[0].Node); n != nil {
			fleet := v.FleetOf(n, al.Partition)
			out.Fleet = &fleet
		}
	}
	if v.WithJobs {
		out.Jobs = v.jobs(r)
	}
	return out
}

// stage is where the present attempt of a rank's part is.
func (v *View) stage(r *Shown, rank int) stage {
	at := stageOf(r.Job, waitingText(r.Job, r.Waiting), r.launching(rank).Status)
	if at.status == wire.JobPulling {
		at.pull = r.launching(rank).Pull
	}
	return at.of(r.Job, rank)
}

// of is the stage of one of several ranks, which may have ended otherwise than the run: that ends with the first that
// fails, and those that go on then are ended by the server.
func (at stage) of(j *core.Job, rank int) stage {
	if j.Life == nil || len(j.Life.Ranks) == 0 || at.reason != core.EndDone && at.reason != core.EndExitStatus ||
		at.status == wire.JobTerminating {
		return at
	}
	at.reason, at.exit = core.EndByServer, nil
	for _, e := range j.Life.Ranks {
		if int(e.Rank) != rank {
			continue
		}
		code := e.Code
		if e.Signal > 0 {
			code = 128 + e.Signal
		}
		if at.exit, at.reason = &code, core.EndDone; code != 0 {
			at.reason = core.EndExitStatus
		}
	}
	at.status = endings[string(at.reason)].status
	at.message = jobMessage(at.status, at.reason, "", at.exit)
	at.rank = true
	return at
}

// waitingText is what clients show of a job that waits.
func waitingText(j *core.Job, why string) string {
	switch {
	case j.Attempt > 0:
		return "retrying"
	case why == "":
		return wire.JobSubmitted
	}
	return why
}

func runMessage(status string, at stage, j *core.Job) string {
	switch {
	case status == wire.RunSubmitted, status == wire.RunPending && j.Attempt > 0:
		if at.status == wire.JobSubmitted {
			return at.message
		}
		return "retrying"
	case at.status == wire.JobPulling:
		return wire.JobPulling
	}
	return status
}

// jobs shows a run node by node.
func (v *View) jobs(r *Shown) []wire.Job {
	if len(r.Replicas) > 0 {
		return v.replicas(r)
	}
	specs := r.Spec.JobSpecs(r.Run.Name, r.Job.Spec.Runtime, v.Images)
	specs = specs[:v.spend(r, len(specs))]
	out := make([]wire.Job, len(specs))
	for rank, spec := range specs {
		out[rank] = wire.Job{Spec: spec, Submissions: v.submissions(r, v.stage(r, rank), rank)}
		j := r.Job
		if j.Alloc != nil && rank < len(j.Alloc.Nodes) && v.Listener.Port != 0 {
			out[rank].ConnectionInfo = v.connection(r, rank)
		}
	}
	return out
}

// submissions are the attempts of one node's part, oldest first.
func (v *View) submissions(r *Shown, at stage, rank int) []wire.JobSubmission {
	j := r.Job
	var earlier []core.Attempt
	if j.Earlier != nil {
		earlier = j.Earlier.Attempts
	}
	if v.Submissions >= 0 && len(earlier) > v.Submissions-1 {
		earlier = earlier[len(earlier)-max(0, v.Submissions-1):]
	}
	out := make([]wire.JobSubmission, 0, len(earlier)+1)
	for i := range earlier {
		old := j.As(&earlier[i])
		x := stageOf(&old, "", "")
		if x.status == wire.JobTerminating || x.status == wire.JobRunning {
			x.status = wire.JobTerminated
		}
		out = append(out, v.submission(r, &old, x, rank))
	}
	if v.Submissions == 0 {
		return out
	}
	return append(out, v.submission(r, j, at, rank))
}

// number is that of the present attempt, from 0: one that waits has not been counted yet.
func number(j *core.Job) int32 {
	if j.State == core.Pending || j.Attempt == 0 {
		return j.Attempt
	}
	return j.Attempt - 1
}

func (v *View) submission(r *Shown, j *core.Job, at stage, rank int) wire.JobSubmission {
	num := number(j)
	out := wire.JobSubmission{
		ID: SubmissionID(j.ID, num, rank), SubmissionNum: num, SubmittedAt: wire.Time(submitted(j)),
		LastProcessedAt: wire.Time(max(submitted(j), j.Start, j.End)), Status: at.status, StatusMessage: at.message,
		ExitStatus: at.exit, Probes: []wire.ProbeState{}, ImagePullProgress: at.pull,
	}
	if at.reason != core.EndNone {
		text := string(at.reason)
		out.TerminationReason = &text
		if text := endMessage(j, at.reason); text != "" && !at.rank {
			out.TerminationReasonMessage = &text
		}
		if e := endings[text]; e.err != "" && at.status != wire.JobTerminating {
			out.Error = &e.err
		}
		if at.status != wire.JobTerminating {
			out.FinishedAt = wire.TimePtr(max(j.End, submitted(j)))
		}
	}
	rules := j.Spec.Rules()
	if life := j.Life; life != nil && rules != nil && rules.Inactivity > 0 && at.status == wire.JobRunning {
		idle := int64(0)
		if life.IdleSince != 0 {
			idle = int64(v.Now.Sub(life.IdleSince).Seconds())
		}
		out.InactivitySecs = &idle
	}
	if al := j.Alloc; al != nil && rank < len(al.Nodes) && j.Attempt > 0 {
		v.place(r, j, rank, &out)
	}
	return out
}

// submitted is when the present attempt began to wait.
func submitted(j *core.Job) core.Time {
	if j.Earlier != nil && len(j.Earlier.Attempts) > 0 {
		if last := j.Earlier.Attempts[len(j.Earlier.Attempts)-1]; last.End > j.Submit {
			return last.End
		}
	}
	return j.Submit
}

// place tells where an attempt is or was.
func (v *View) place(r *Shown, j *core.Job, rank int, out *wire.JobSubmission) {
	na := &j.Alloc.Nodes[rank]
	n := v.Node(na.Node)
	if n == nil {
		n = &core.Node{Name: na.Node, Hardware: core.Hardware{CPUs: na.CPUs, Memory: na.Mem}}
	}
	c := v.Listener.Connection(attach.Target{Job: j.ID, Attempt: j.Attempt, Node: rank})
	p := &wire.JobProvisioningData{
		Backend: wire.BackendRemote, InstanceType: InstanceType(n), InstanceID: string(n.Name), Region: wire.RegionRemote,
		PublicIPEnabled: true, Username: c.Username, Dockerized: c.Dockerized,
	}
	if n.Host.Addr != "" {
		p.InternalIP = &n.Host.Addr
	}
	if zone := string(j.Alloc.Partition); zone != "" {
		p.AvailabilityZone = &zone
	}
	taken := v.taken(n, na)
	if n.Blocks == 0 { // of a node that is not split a job has a part of its own size
		arch := p.InstanceType.Resources.CPUArch
		p.InstanceType.Resources = taken.Instance.Resources
		p.InstanceType.Resources.CPUArch = arch
	}
	d := &wire.JobRuntimeData{
		NetworkMode: c.NetworkMode, GPU: na.GPUs(), CPU: float64(na.CPUs), Memory: float64(na.Mem) / float64(core.GiB),
		VolumeNames: volumeNames(j), Offer: taken, WorkingDir: r.Spec.Configuration.Run().WorkingDir,
	}
	if v.Listener.Port != 0 {
		p.Hostname, p.SSHPort = &c.Hostname, &c.Port
		if c.Ports != nil {
			d.Ports = map[string]int{}
			for from, to := range c.Ports {
				d.Ports[strconv.Itoa(from)] = to
			}
		}
	}
	user := "root"
	if box := j.Spec.More().Container; box == nil {
		user = string(j.Spec.User)
	} else if box.User != "" {
		user = box.User
	}
	d.Username = &user
	out.JobProvisioningData, out.JobRuntimeData = p, d
}

// taken is what a job has of a node, as an offer.
func (v *View) taken(n *core.Node, na *core.NodeAlloc) *wire.Offer {
	total := max(1, n.Blocks)
	o := &wire.Offer{
		Backend: wire.BackendRemote, Region: wire.RegionRemote, InstanceRuntime: "shim", Availability: wire.OfferIdle,
		Blocks: total, TotalBlocks: total,
		Instance: wire.InstanceType{Name: instanceName, Resources: wire.InstanceResources{
			CPUs: na.CPUs, MemoryMiB: int64(na.Mem / core.MiB), GPUs: []wire.InstanceGPU{},
			Disk: wire.InstanceDisk{SizeMiB: int64(n.Hardware.TmpDisk / core.MiB)},
		}},
	}
	if na.Mem == 0 {
		o.Instance.Resources.MemoryMiB = int64(n.Hardware.Memory / core.MiB)
	}
	if n.Blocks > 1 {
		o.Blocks = max(1, ceil(int64(na.CPUs)*int64(total), int64(n.Hardware.CPUs)))
	}
	for _, g := range na.Gres {
		for _, at := range g.Units {
			if g.Name != "gpu" {
				continue
			}
			u := core.Unit{Type: g.Type}
			for _, x := range n.Hardware.Units {
				if x.Name == "gpu" && x.Index == at {
					u = x
				}
			}
			o.Instance.Resources.GPUs = append(o.Instance.Resources.GPUs, gpu(u))
		}
	}
	return o
}

// connection tells how an attached user reaches one node's part of a run.
func (v *View) connection(r *Shown, rank int) *wire.ConnectionInfo {
	host := attach.Host(r.Run.Name, rank)
	out := &wire.ConnectionInfo{AttachedSSHCommand: attach.Command(host)}
	if d := r.Spec.Configuration.DevEnvironment; d != nil && d.IDE != nil {
		if name := attach.IDEName(*d.IDE); name != "" {
			link := attach.IDELink(*d.IDE, host, config.Value(d.WorkingDir))
			out.IDEName, out.AttachedIDEURL = &name, &link
		}
	}
	c := v.Listener.Connection(attach.Target{Job: r.Job.ID, Attempt: r.Job.Attempt, Node: rank})
	if c.ProxyHostname != "" {
		out.SSHProxyHostname, out.SSHProxyPort, out.SSHProxyUpstreamID = &c.ProxyHostname, &c.ProxyPort, &c.ProxyUpstreamID
	}
	return out
}
