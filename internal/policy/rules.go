package policy

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// Rules are the limits of a cluster: its associations and its QOS, with what goes with them. They are a value: a change
// makes new ones. A Tally counts against them.
type Rules struct {
	Setting
	tree  *Tree
	qos   map[core.QOSName]*core.QOS
	names []string // resources that some limit is about, sorted
	some  bool     // there is a limit, or a QOS that changes what a job may
	mins  bool     // some limit is about minutes that were used
	ahead bool     // some limit is about minutes that running jobs have left
	own   bool     // some limit is about the minutes of single jobs

	accrual  bool // some limit is about how many jobs grow older
	relative bool // some limit is in percent of the cluster
}

// Setting is what limits are read by.
type Setting struct {
	Totals   TRES         // of the cluster, for limits in percent
	Safe     bool         // a job starts only if limit × time fits what is left of TRES-minutes
	HalfLife core.Seconds // of usage
	Reset    ResetPeriod
	// Billing tells what the resources of a job in a partition cost a second; for limits on billing.
	Billing map[core.PartitionName][]Weight
	Flags   Flag
}

// NewRules makes rules of associations and QOS, in any order. With enforce false there are no limits; the rest holds.
func NewRules(set Setting, list []Assoc, qos []*core.QOS, enforce bool) (*Rules, error) {
	if !enforce {
		list = slices.Clone(list)
		for i := range list {
			list[i].Limits = Limits{}
		}
	}
	tree, err := NewTree(list)
	if err != nil {
		return nil, err
	}
	r := &Rules{Setting: set, tree: tree, qos: map[core.QOSName]*core.QOS{}}
	for _, q := range qos {
		if !enforce {
			bare := core.QOS{
				Name: q.Name, Priority: q.Priority,
				Flags: q.Flags &^ (core.DenyOnLimit | core.EnforceUsageThreshold),
			}
			q = &bare
		}
		r.qos[q.Name] = q
	}
	for _, n := range tree.list {
		r.note(&n.Limits)
		r.noteAccrue(&n.Limits, nil)
	}
	for _, q := range r.qos {
		r.note(&q.Limits)
		r.noteAccrue(&q.Limits, q.MaxAccruePerProject)
		r.note(&Limits{GrpTRES: q.MaxTRESPerUser}, q.MaxTRESPerProject, q.MinTRESPerJob)
		r.note(&Limits{GrpTRESRunMins: q.MaxRunMinsPerUser}, q.MaxRunMinsPerAcct)
		r.ahead = r.ahead || len(q.MaxRunMinsPerAcct) > 0
		r.relative = r.relative || q.Flags&core.Relative != 0
		r.some = r.some || q.MaxJobsPerProject != nil || q.MaxSubmitPerProject != nil || q.Flags != 0
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r, nil
}

// note takes in what limits are about.
func (r *Rules) note(l *Limits, more ...TRES) {
	for _, t := range append(more, l.GrpTRES, l.GrpTRESMins, l.GrpTRESRunMins, l.MaxTRESPerJob, l.MaxTRESPerNode,
		l.MaxTRESMinsPerJob) {
		for _, a := range t {
			r.names = append(r.names, a.Name)
			r.some = true
		}
	}
	r.some = r.some || l.GrpJobs != nil || l.GrpSubmit != nil || l.GrpWall != nil || l.MaxJobs != nil ||
		l.MaxSubmit != nil || l.MaxWall != nil
	r.mins = r.mins || len(l.GrpTRESMins) > 0 || l.GrpWall != nil
	r.ahead = r.ahead || len(l.GrpTRESRunMins) > 0 || r.Safe && len(l.GrpTRESMins) > 0
	r.own = r.own || len(l.MaxTRESMinsPerJob) > 0
}

// Any reports whether any limit is set.
func (r *Rules) Any() bool { return r != nil && r.some }

// Minutes reports whether some limit is about past usage, so that the tally must be given it.
func (r *Rules) Minutes() bool { return r != nil && r.mins }

// OwnMinutes reports whether the minutes of single jobs are limited.
func (r *Rules) OwnMinutes() bool { return r != nil && r.own }

// Shares reports whether some limit is about fair shares, so that the tally must be given them.
func (r *Rules) Shares() bool {
	if r != nil {
		for _, q := range r.qos {
			if q.Flags&core.EnforceUsageThreshold != 0 {
				return true
			}
		}
	}
	return false
}

// Relative reports whether some limit is in percent of the cluster.
func (r *Rules) Relative() bool { return r != nil && r.relative }

// QOS finds a QOS; nil if there is none of that name.
func (r *Rules) QOS(name core.QOSName) *core.QOS {
	if r == nil || name == "" {
		return nil
	}
	return r.qos[name]
}

// AllQOS iterates over every QOS, in no order.
func (r *Rules) AllQOS() iter.Seq[*core.QOS] { return maps.Values(r.qos) }

// Who is what decides which limits a job is under.
type Who struct {
	Project      core.ProjectName
	User         core.UserName
	QOS          core.QOSName // the job's
	PartitionQOS core.QOSName // the partition's
}

// Request is what a job asks for, or has, of the resources that limits are about.
type Request struct {
	count, perNode []int64 // by Rules.names
	part           core.PartitionName
}

// Request gives the resources of a job by the names that limits use: all of them, and the most that one node has.
func (r *Rules) Request(all, perNode TRES, part core.PartitionName) *Request {
	n := len(r.names)
	buf := make([]int64, 2*n)
	a := &Request{count: buf[:n:n], perNode: buf[n:], part: part}
	for i, name := range r.names {
		if name == "billing" {
			a.count[i] = Bill(all, r.Billing[part], r.Flags)
			continue
		}
		a.count[i], a.perNode[i] = all.Count(name), perNode.Count(name)
	}
	return a
}

// levels are the QOS and associations a job is under, in the order they are asked.
type levels struct {
	qos    [2]*core.QOS
	factor float64
	leaf   *node // nil: an account that is not known, under the root alone
	path   []*node
}

func (r *Rules) levels(w Who) levels {
	var l levels
	job, part := r.QOS(w.QOS), r.QOS(w.PartitionQOS)
	l.qos = [2]*core.QOS{part, job}
	switch {
	case job == part:
		l.qos = [2]*core.QOS{job}
	case job != nil && job.Flags&core.OverPartQOS != 0:
		l.qos = [2]*core.QOS{job, part}
	}
	l.factor = 1
	if job != nil && job.LimitFactor != 0 {
		l.factor = job.LimitFactor
	}
	if l.leaf = r.tree.find(w.Project, w.User); l.leaf == nil {
		l.path = r.tree.list[:1]
		return l
	}
	for n := l.leaf; n != nil; n = n.parent {
		l.path = append(l.path, n)
	}
	return l
}

// percent gives a QOS's limits as counts.
func (r *Rules) percent(q *core.QOS, t TRES) TRES {
	if q.Flags&core.Relative == 0 {
		return t
	}
	out := make(TRES, len(t))
	for i, a := range t {
		out[i] = Amount{Name: a.Name, Count: times(r.Totals.Count(a.Name), a.Count) / 100}
	}
	return out
}

// scaled is a limit of TRES after a factor.
func scaled(t TRES, factor float64) TRES {
	if factor == 1 || len(t) == 0 {
		return t
	}
	out := make(TRES, len(t))
	for i, a := range t {
		out[i] = Amount{Name: a.Name, Count: int64(min(float64(a.Count)*factor, 1<<62))}
	}
	return out
}

func (r *Rules) find(name string) (int, bool) { return slices.BinarySearch(r.names, name) }

func (r *Rules) index(name string) int32 {
	i, ok := r.find(name)
	core.Assert(ok, "no limit is about %s", name)
	return int32(i)
}

// test is what a rule holds against what.
type test uint8

const (
	jobMost     test = iota // of a resource, by the job
	nodeMost                // of a resource, on one node of it
	minutesMost             // of a resource × the job's time
	jobLeast                // of a resource, by the job
	wallMost                // the job's time
	shareLeast              // the job's fair-share
	jobsMost                // jobs, of a counter
	heldMost                // of a resource, of a counter
	aheadMost               // of a resource × the time left, of a counter
	usedMost                // of a resource × time, used by a counter
	wallUsed                // time of jobs, used by a counter
	submitsMost             // jobs that run or wait, of a counter
)

// rule is one limit as it bears on some jobs.
type rule struct {
	test   test
	tres   int32 // by Rules.names
	at     int32 // the counter
	limit  int64
	share  float64
	safe   bool // usedMost: with what is ahead
	reason core.Reason
	who    string // whose limit it is
	whom   string // who is counted, if that is somebody else
}

// text says in a sentence what a rule holds against a job.
func (r *rule) text(names []string, have int64) string {
	name := ""
	if r.tres >= 0 {
		name = names[r.tres]
	}
	switch r.test {
	case jobMost:
		return fmt.Sprintf("%s: at most %d %s a job; this one has %d", r.who, r.limit, name, have)
	case nodeMost:
		return fmt.Sprintf("%s: at most %d %s a node; this job has %d", r.who, r.limit, name, have)
	case minutesMost:
		return fmt.Sprintf("%s: at most %d %s-minutes a job; this one asks for %s", r.who, r.limit, name, endless(have))
	case jobLeast:
		return fmt.Sprintf("%s: at least %d %s a job; this one has %d", r.who, r.limit, name, have)
	case wallMost:
		return fmt.Sprintf("%s: at most %d minutes a job; this one asks for %s", r.who, r.limit, endless(have))
	case shareLeast:
		return fmt.Sprintf("%s: a fair-share of %g at least; this job's is less", r.who, r.share)
	case jobsMost:
		return fmt.Sprintf("%s: at most %d jobs at once; %d run", r.counted(), r.limit, have)
	case heldMost:
		return fmt.Sprintf("%s: at most %d %s at once; with this job %d", r.counted(), r.limit, name, have)
	case aheadMost:
		return fmt.Sprintf("%s: at most %d %s-minutes ahead; with this job %s", r.counted(), r.limit, name, endless(have))
	case usedMost:
		if r.safe {
			return fmt.Sprintf("%s: %d %s-minutes in all; used and ahead, with this job, %s", r.who, r.limit, name,
				endless(have))
		}
		return fmt.Sprintf("%s: %d %s-minutes in all; %d are used", r.who, r.limit, name, have)
	case wallUsed:
		return fmt.Sprintf("%s: %d minutes of jobs in all; %d are used", r.who, r.limit, have)
	case submitsMost:
		return fmt.Sprintf("%s: at most %d jobs that run or wait; there are %d", r.counted(), r.limit, have)
	}
	return r.who
}

// endless words a number of minutes.
func endless(n int64) string {
	if n == math.MaxInt64 {
		return "endless ones"
	}
	return strconv.FormatInt(n, 10)
}

func (r *rule) counted() string {
	if r.whom == "" || r.whom == r.who {
		return r.who
	}
	return r.whom + ", by " + r.who
}
