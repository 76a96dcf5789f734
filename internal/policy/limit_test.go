package policy

import (
	"math"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

func n(v int64) *int64 { return &v }

// limitWorld is a tree root{lab{physics{ann, bob}}} with a hook for limits, and what runs in it.
type limitWorld struct {
	assocs map[string]*Assoc // by account, or account/user
	job    Job
	q      QOSPair
	safe   bool
	totals TRES
	before []Job // that run already, for an hour more
	waits  []Job
}

func newLimitWorld() *limitWorld {
	w := &limitWorld{
		assocs: map[string]*Assoc{
			"root": {Project: Root}, "lab": {Project: "lab", Shares: 1},
			"physics":     {Project: "physics", Parent: "lab", Shares: 1},
			"physics/ann": {Project: "physics", User: "ann", Shares: 1},
			"physics/bob": {Project: "physics", User: "bob", Shares: 1},
		},
		job: Job{
			User: "ann", Project: "physics", Limit: 3600,
			TRES: Of(Amount{Name: "cpu", Count: 8}, Amount{Name: "mem", Count: 4096}, Amount{Name: "node", Count: 2},
				Amount{Name: "gres/gpu", Count: 2}, Amount{Name: "license/x", Count: 1}, Amount{Name: "billing", Count: 9}),
			PerNode: Of(Amount{Name: "cpu", Count: 4}, Amount{Name: "mem", Count: 2048}, Amount{Name: "gres/gpu", Count: 1}),
		},
		q: QOSPair{Job: &QOS{QOS: &core.QOS{Name: "normal"}}},
	}
	return w
}

func (w *limitWorld) world(t *testing.T) (*Tree, *Running) {
	t.Helper()
	var list []Assoc
	for _, a := range w.assocs {
		list = append(list, *a)
	}
	tree := mustTree(t, list)
	r := NewRunning(core.Time(1e15))
	r.Safe, r.Totals = w.safe, w.totals
	for i := range w.before {
		r.Submit(&w.before[i], tree, w.q, 1)
		r.Start(&w.before[i], tree, w.q, r.Now.Add(3600e9))
	}
	for i := range w.waits {
		r.Submit(&w.waits[i], tree, w.q, 1)
	}
	return tree, r
}

func TestEveryLimitHasItsReason(t *testing.T) {
	bob := func(w *limitWorld) Job { j := w.job; j.User = "bob"; return j }
	for _, c := range []struct {
		want core.Reason
		set  func(w *limitWorld)
	}{
		{"", func(*limitWorld) {}},
		{"InvalidAccount", func(w *limitWorld) { w.job.Project = "chemistry" }},
		{"AssocGrpJobsLimit", func(w *limitWorld) { w.assocs["lab"].Limits.GrpJobs = n(1); w.before = []Job{bob(w)} }},
		{"AssocGrpWallLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.GrpWall = n(10)
			w.assocs["lab"].Used.Wall = 600
		}},
		{"AssocGrpCpuLimit", func(w *limitWorld) {
			w.assocs["root"].Limits.GrpTRES = Of(Amount{Name: "cpu", Count: 15})
			w.before = []Job{bob(w)}
		}},
		{"AssocGrpMemLimit", func(w *limitWorld) { w.assocs["physics"].Limits.GrpTRES = Of(Amount{Name: "mem", Count: 1}) }},
		{"AssocGrpNodeLimit", func(w *limitWorld) {
			w.assocs["physics"].Limits.GrpTRES = Of(Amount{Name: "node", Count: 1})
		}},
		{"AssocGrpGRES", func(w *limitWorld) { w.assocs["physics"].Limits.GrpTRES = Of(Amount{Name: "gres/gpu", Count: 1}) }},
		{"AssocGrpLicense", func(w *limitWorld) {
			w.assocs["physics"].Limits.GrpTRES = Of(Amount{Name: "license/x", Count: 0})
		}},
		{"AssocGrpBilling", func(w *limitWorld) {
			w.assocs["physics"].Limits.GrpTRES = Of(Amount{Name: "billing", Count: 8})
		}},
		{"AssocGrpCPUMinutesLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.GrpTRESMins = Of(Amount{Name: "cpu", Count: 100})
			w.assocs["lab"].Used.TRES = []Used{{Name: "cpu", Seconds: 6000}}
		}},
		{"AssocGrpMemMinutes", func(w *limitWorld) {
			w.assocs["lab"].Limits.GrpTRESMins = Of(Amount{Name: "mem", Count: 0})
		}},
		// not on the root
		{"", func(w *limitWorld) { w.assocs["root"].Limits.GrpTRESMins = Of(Amount{Name: "cpu", Count: 0}) }},
		{"", func(w *limitWorld) { w.assocs["lab"].Limits.GrpTRESMins = Of(Amount{Name: "cpu", Count: 479}) }},
		{"AssocGrpCPUMinutesLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.GrpTRESMins = Of(Amount{Name: "cpu", Count: 479})
			w.safe = true
		}},
		{"AssocGrpCPURunMinutesLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.GrpTRESRunMins = Of(Amount{Name: "cpu", Count: 959})
			w.before = []Job{bob(w)}
		}},
		{"AssocGrpGRESRunMinutes", func(w *limitWorld) {
			w.assocs["lab"].Limits.GrpTRESRunMins = Of(Amount{Name: "gres/gpu", Count: 119})
		}},
		{"AssocMaxJobsLimit", func(w *limitWorld) { w.assocs["lab"].Limits.MaxJobs = n(1); w.before = []Job{w.job} }},
		{"", func(w *limitWorld) { w.assocs["lab"].Limits.MaxJobs = n(1); w.before = []Job{bob(w)} }},
		{"AssocMaxWallDurationPerJobLimit", func(w *limitWorld) { w.assocs["lab"].Limits.MaxWall = n(59) }},
		{"AssocMaxWallDurationPerJobLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxWall = n(1e6)
			w.job.Limit = core.Forever
		}},
		{"AssocMaxCpuPerJobLimit", func(w *limitWorld) {
			w.assocs["root"].Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 7})
		}},
		{"", func(w *limitWorld) { // the nearer one counts
			w.assocs["root"].Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 7})
			w.assocs["lab"].Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 8})
		}},
		{"AssocMaxNodePerJobLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxTRESPerJob = Of(Amount{Name: "node", Count: 1})
		}},
		{"AssocMaxMemPerJob", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxTRESPerJob = Of(Amount{Name: "mem", Count: 1})
		}},
		{"", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxTRESPerJob = Of(Amount{Name: "gres/gpu:a100", Count: 0})
		}}, // untyped request
		{"AssocMaxCpuPerNode", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxTRESPerNode = Of(Amount{Name: "cpu", Count: 3})
		}},
		{"AssocMaxCpuMinutesPerJobLimit", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxTRESMinsPerJob = Of(Amount{Name: "cpu", Count: 479})
		}},
		{"AssocMaxNodeMinutesPerJob", func(w *limitWorld) {
			w.assocs["lab"].Limits.MaxTRESMinsPerJob = Of(Amount{Name: "node", Count: 119})
		}},
		{"", func(w *limitWorld) { // LimitFactor lifts an association's limit
			w.assocs["lab"].Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 4})
			w.q.Job.LimitFactor = 2
		}},

		{"QOSGrpJobsLimit", func(w *limitWorld) { w.q.Job.Limits.GrpJobs = n(0) }},
		{"QOSGrpWallLimit", func(w *limitWorld) { w.q.Job.Limits.GrpWall = n(0) }},
		{"QOSGrpCpuLimit", func(w *limitWorld) { w.q.Job.Limits.GrpTRES = Of(Amount{Name: "cpu", Count: 7}) }},
		{"QOSGrpMemLimit", func(w *limitWorld) { w.q.Job.Limits.GrpTRES = Of(Amount{Name: "mem", Count: 7}) }},
		{"QOSGrpGRES", func(w *limitWorld) { w.q.Job.Limits.GrpTRES = Of(Amount{Name: "gres/gpu", Count: 1}) }},
		{"QOSGrpMemoryMinutes", func(w *limitWorld) { w.q.Job.Limits.GrpTRESMins = Of(Amount{Name: "mem", Count: 0}) }},
		{"QOSGrpMemoryRunMinutes", func(w *limitWorld) { w.q.Job.Limits.GrpTRESRunMins = Of(Amount{Name: "mem", Count: 1}) }},
		{"QOSGrpCPURunMinutesLimit", func(w *limitWorld) {
			w.q.Job.Limits.GrpTRESRunMins = Of(Amount{Name: "cpu", Count: 1})
		}},
		{"QOSMaxJobsPerUserLimit", func(w *limitWorld) { w.q.Job.Limits.MaxJobs = n(1); w.before = []Job{w.job} }},
		{"MaxJobsPerAccount", func(w *limitWorld) { w.q.Job.MaxJobsPerProject = n(1); w.before = []Job{bob(w)} }},
		{"QOSMaxWallDurationPerJobLimit", func(w *limitWorld) { w.q.Job.Limits.MaxWall = n(5) }},
		{"QOSMaxCpuPerJobLimit", func(w *limitWorld) { w.q.Job.Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 1}) }},
		{"QOSMaxMemoryPerJob", func(w *limitWorld) { w.q.Job.Limits.MaxTRESPerJob = Of(Amount{Name: "mem", Count: 1}) }},
		{"QOSMaxGRESPerJob", func(w *limitWorld) { w.q.Job.Limits.MaxTRESPerJob = Of(Amount{Name: "gres/gpu", Count: 1}) }},
		{"QOSMaxMemoryPerNode", func(w *limitWorld) { w.q.Job.Limits.MaxTRESPerNode = Of(Amount{Name: "mem", Count: 1}) }},
		{"QOSMaxMemoryMinutesPerJob", func(w *limitWorld) {
			w.q.Job.Limits.MaxTRESMinsPerJob = Of(Amount{Name: "mem", Count: 1})
		}},
		{"QOSMaxCpuPerUserLimit", func(w *limitWorld) {
			w.q.Job.MaxTRESPerUser = Of(Amount{Name: "cpu", Count: 15})
			w.before = []Job{w.job}
		}},
		{"", func(w *limitWorld) {
			w.q.Job.MaxTRESPerUser = Of(Amount{Name: "cpu", Count: 15})
			w.before = []Job{bob(w)}
		}},
		{"QOSMaxNodePerUserLimit", func(w *limitWorld) { w.q.Job.MaxTRESPerUser = Of(Amount{Name: "node", Count: 1}) }},
		{"QOSMaxMemoryPerUser", func(w *limitWorld) { w.q.Job.MaxTRESPerUser = Of(Amount{Name: "mem", Count: 1}) }},
		{"MaxCpuPerAccount", func(w *limitWorld) {
			w.q.Job.MaxTRESPerProject = Of(Amount{Name: "cpu", Count: 15})
			w.before = []Job{bob(w)}
		}},
		{"MaxMemoryPerAccount", func(w *limitWorld) { w.q.Job.MaxTRESPerProject = Of(Amount{Name: "mem", Count: 1}) }},
		{"MaxCpuRunMinsPerUser", func(w *limitWorld) { w.q.Job.MaxRunMinsPerUser = Of(Amount{Name: "cpu", Count: 1}) }},
		{"MaxMemoryRunMinsPerAccount", func(w *limitWorld) { w.q.Job.MaxRunMinsPerAcct = Of(Amount{Name: "mem", Count: 1}) }},
		{"QOSMinCpuNotSatisfied", func(w *limitWorld) { w.q.Job.MinTRESPerJob = Of(Amount{Name: "cpu", Count: 9}) }},
		{"QOSMinMemory", func(w *limitWorld) { w.q.Job.MinTRESPerJob = Of(Amount{Name: "mem", Count: 1e6}) }},
		{"QOSMinNode", func(w *limitWorld) { w.q.Job.MinTRESPerJob = Of(Amount{Name: "node", Count: 3}) }},
		{"QOSMinGRES", func(w *limitWorld) { w.q.Job.MinTRESPerJob = Of(Amount{Name: "gres/gpu", Count: 3}) }},
		{"QOSUsageThreshold", func(w *limitWorld) {
			w.q.Job.Flags |= core.EnforceUsageThreshold
			w.q.Job.UsageThreshold, w.job.FairShare = .5, .4
		}},
		{"QOSGrpCpuLimit", func(w *limitWorld) { // in percent of the cluster
			w.q.Job.Flags |= core.Relative
			w.totals = Of(Amount{Name: "cpu", Count: 70})
			w.q.Job.Limits.GrpTRES = Of(Amount{Name: "cpu", Count: 10})
		}},
		{"", func(w *limitWorld) { // more than could be counted is no limit
			w.q.Job.Flags |= core.Relative
			w.totals = Of(Amount{Name: "cpu", Count: 70})
			w.q.Job.Limits.GrpTRES = Of(Amount{Name: "cpu", Count: math.MaxInt64 / 2})
			w.q.Job.LimitFactor = 1000
			w.assocs["lab"].Limits.GrpTRES = Of(Amount{Name: "cpu", Count: math.MaxInt64 / 2})
		}},
		{"", func(w *limitWorld) { // the partition's QOS is asked first, and what it says counts
			w.q.Partition = &QOS{QOS: &core.QOS{
				Name: "part", Limits: Limits{MaxTRESPerJob: Of(Amount{Name: "cpu", Count: 8}), MaxJobs: n(5)},
			}}
			w.q.Job.Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 1})
			w.q.Job.Limits.MaxJobs = n(0)
		}},
		{"QOSMaxCpuPerJobLimit", func(w *limitWorld) { // unless the job's goes over it
			w.q.Job.Flags |= core.OverPartQOS
			w.q.Partition = &QOS{QOS: &core.QOS{Name: "part", Limits: Limits{MaxTRESPerJob: Of(Amount{Name: "cpu", Count: 8})}}}
			w.q.Job.Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 1})
		}},
		{"", func(w *limitWorld) { // a QOS before associations
			w.q.Job.Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 8})
			w.assocs["lab"].Limits.MaxTRESPerJob = Of(Amount{Name: "cpu", Count: 1})
		}},
	} {
		w := newLimitWorld()
		c.set(w)
		tree, r := w.world(t)
		if got, text := Check(&w.job, tree, w.q, r); got != c.want || (got == "") != (text == "") {
			t.Errorf("model: got %q (%s), want %q", got, text, c.want)
		}
		if w.job.Project == "chemistry" { // admission's affair: an account that is not known is under the root alone
			c.want = ""
		}
		x := w.tally(t)
		if got, text := x.check(&w.job); got != c.want || (got == "") != (text == "") {
			t.Errorf("got %q (%s), want %q", got, text, c.want)
		}
	}
}

func TestSubmitLimits(t *testing.T) {
	for _, c := range []struct {
		want core.Reason
		set  func(w *limitWorld)
	}{
		{"", func(*limitWorld) {}},
		{"AssocGrpSubmitJobsLimit", func(w *limitWorld) { w.assocs["lab"].Limits.GrpSubmit = n(1) }},
		{"AssocMaxSubmitJobLimit", func(w *limitWorld) { w.assocs["lab"].Limits.MaxSubmit = n(1) }},
		{"QOSGrpSubmitJobsLimit", func(w *limitWorld) { w.q.Job.Limits.GrpSubmit = n(1) }},
		{"QOSMaxSubmitJobPerUserLimit", func(w *limitWorld) { w.q.Job.Limits.MaxSubmit = n(1) }},
		{"MaxSubmitJobsPerAccount", func(w *limitWorld) { w.q.Job.MaxSubmitPerProject = n(1) }},
		{"", func(w *limitWorld) { // the partition's QOS has said it
			w.q.Partition = &QOS{QOS: &core.QOS{Name: "part", MaxSubmitPerProject: n(5)}}
			w.q.Job.MaxSubmitPerProject = n(1)
		}},
		{"AssocMaxSubmitJobLimit", func(w *limitWorld) {
			w.assocs["physics/ann"].Limits.MaxSubmit = n(10)
			w.job.Tasks = 10
		}},
		{"", func(w *limitWorld) { w.assocs["physics/ann"].Limits.MaxSubmit = n(11); w.job.Tasks = 10 }},
		{"", func(w *limitWorld) { w.assocs["lab"].Limits.GrpTRES = Of(Amount{Name: "cpu", Count: 1}) }}, // it waits
		{"AssocGrpCpuLimit", func(w *limitWorld) {
			w.q.Job.Flags |= core.DenyOnLimit
			w.assocs["lab"].Limits.GrpTRES = Of(Amount{Name: "cpu", Count: 7})
		}},
		{"", func(w *limitWorld) { // it would fit if nothing else ran
			w.q.Job.Flags |= core.DenyOnLimit
			w.assocs["lab"].Limits.GrpTRES = Of(Amount{Name: "cpu", Count: 8})
			w.before = []Job{w.job}
			w.waits = nil
		}},
	} {
		w := newLimitWorld()
		w.waits = []Job{w.job}
		c.set(w)
		tree, r := w.world(t)
		if got, text := CheckSubmit(&w.job, tree, w.q, r); got != c.want || (got == "") != (text == "") {
			t.Errorf("model: got %q (%s), want %q", got, text, c.want)
		}
		x := w.tally(t)
		if got, text := x.submit(&w.job); got != c.want || (got == "") != (text == "") {
			t.Errorf("got %q (%s), want %q", got, text, c.want)
		}
	}
}

func TestRunningGoesBackToNothing(t *testing.T) {
	w := newLimitWorld()
	w.assocs["lab"].Limits.GrpTRESRunMins = Of(Amount{Name: "cpu", Count: 480})
	tree, r := w.world(t)
	end := r.Now.Add(3600e9)
	for range 3 {
		r.Submit(&w.job, tree, w.q, 1)
		r.Start(&w.job, tree, w.q, end)
		if got, text := Check(&w.job, tree, w.q, r); got != "AssocGrpCPURunMinutesLimit" ||
			!strings.Contains(text, "project lab") {
			t.Errorf("beside one that runs: %q, %q", got, text)
		}
		r.End(&w.job, tree, w.q, end)
		r.Submit(&w.job, tree, w.q, -1)
		if got, _ := Check(&w.job, tree, w.q, r); got != "" {
			t.Errorf("after its end: %q", got)
		}
	}
	for k, x := range r.assoc {
		if x.Jobs != 0 || x.Submits != 0 || len(x.Limited) != 0 || x.TRES.Count("cpu") != 0 {
			t.Errorf("%v keeps %+v", k, x)
		}
	}
}
