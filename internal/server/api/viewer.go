package api

import (
	"errors"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// viewer is one caller's look at a snapshot. Handlers take every list and every single record from it, so that what is not
// the caller's is not there for any of them: a job that is hidden is answered for like one that never was.
type viewer struct {
	visibility
	snap   *state.Snapshot
	groups func() []string // unix groups of the caller; asked only where a reservation is for groups
}

// viewer gives a caller's view of the present state; nil is a stranger, who sees what is public.
func (a *Base) viewer(who *caller) (*viewer, error) {
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	return a.viewOf(who, snap), nil
}

func (a *Base) viewOf(who *caller, snap *state.Snapshot) *viewer {
	v := &viewer{snap: snap, visibility: visibility{private: a.conf().Private()}}
	if who == nil {
		return v
	}
	v.user, v.admin = who.User, who.Admin
	if v.admin || v.private == 0 { // nothing is hidden: nothing is asked
		return v
	}
	roles := map[core.ProjectName]core.Role{} // one look a project, however many jobs it has
	v.role = func(p core.ProjectName) core.Role {
		r, known := roles[p]
		if !known {
			r = snap.Role(who.User, p)
			roles[p] = r
		}
		return r
	}
	v.groups = func() []string { return groupNames(who.UID) }
	return v
}

// allJobs tells whether the viewer sees every job.
func (v *viewer) allJobs() bool { return !v.hides(config.PrivateJobs) }

// job finds a live job.
func (v *viewer) job(id core.JobID) (*core.Job, bool) {
	j, ok := v.snap.Job(id)
	if !ok || !v.seesJob(j) {
		return nil, false
	}
	return j, true
}

// hidesLive tells whether there is a live job or array of an id that the viewer does not see.
func (v *viewer) hidesLive(id core.JobID) bool {
	if v.allJobs() {
		return false
	}
	j, ok := v.snap.Job(id)
	if tasks := v.snap.Tasks(id); !ok && len(tasks) > 0 {
		j, ok = tasks[0], true
	}
	return ok && !v.seesJob(j)
}

// jobs are the live jobs by ascending id.
func (v *viewer) jobs() iter.Seq[*core.Job] { return v.jobsFrom(0) }

// jobsFrom are those from an id on.
func (v *viewer) jobsFrom(id core.JobID) iter.Seq[*core.Job] {
	if v.allJobs() {
		return v.snap.JobsFrom(id)
	}
	return func(yield func(*core.Job) bool) {
		for j := range v.snap.JobsFrom(id) {
			if v.seesJob(j) && !yield(j) {
				return
			}
		}
	}
}

// jobIDs keeps the jobs that the viewer sees; of those that have ended nothing is known, so they go too.
func (v *viewer) jobIDs(list []core.JobID) []core.JobID {
	if v.allJobs() {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(id core.JobID) bool { _, ok := v.job(id); return !ok })
}

// run finds an open run.
func (v *viewer) run(project core.ProjectName, name string) (*core.Run, bool) {
	r, ok := v.snap.Run(project, name)
	if !ok || !v.seesRun(r) {
		return nil, false
	}
	return r, true
}

// managed are the projects whose jobs the viewer sees.
func (v *viewer) managed() (list []core.ProjectName) {
	for _, p := range v.snap.Projects() {
		if v.manages(p.Name) {
			list = append(list, p.Name)
		}
	}
	return list
}

// partitions are those of the cluster, or none.
func (v *viewer) partitions() []core.Partition {
	if !v.seesPartitions() {
		return []core.Partition{}
	}
	return v.snap.Partitions()
}

// nodes refuses those who may not see nodes; whether one is there is not told either.
func (v *viewer) nodes() (iter.Seq[*core.Node], error) {
	if !v.seesNodes() {
		return nil, core.Errorf(core.Denied, "nodes are private here (private_data): administrators see them").Because("access_denied")
	}
	return v.snap.Nodes(), nil
}

// node finds a node.
func (v *viewer) node(name core.NodeName) (*core.Node, error) {
	if _, err := v.nodes(); err != nil {
		return nil, err
	}
	n, ok := v.snap.Node(name)
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no node %q", name).Because("invalid_node")
	}
	return n, nil
}

// users are the records of users.
func (v *viewer) users() (list []*core.User) {
	for _, u := range v.snap.Users() {
		if v.seesUser(u.Name) {
			list = append(list, u)
		}
	}
	return list
}

// findUser finds a user.
func (v *viewer) findUser(name core.UserName) (*core.User, error) {
	u, ok := v.snap.User(name)
	if !ok || !v.seesUser(name) {
		return nil, core.Errorf(core.NotFound, "there is no user %q", name).Because("invalid_user")
	}
	return u, nil
}

// projects are the projects with the members that the viewer sees. Of one whose definition is hidden its members know the
// name, their own part in it and what its runs run in.
func (v *viewer) projects() []core.Project {
	list := []core.Project{}
	for _, p := range v.snap.Projects() {
		if q, ok := v.project(p); ok {
			list = append(list, q)
		}
	}
	return list
}

func (v *viewer) project(p *core.Project) (core.Project, bool) {
	q := *p
	if v.hides(config.PrivateUsers) && !v.manages(p.Name) {
		q.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m core.Member) bool { return !v.seesMember(p.Name, m.User) })
	}
	if v.seesProject(p.Name) {
		return q, true
	}
	own := slices.DeleteFunc(slices.Clone(q.Members), func(m core.Member) bool { return !v.isSelf(m.User) })
	return core.Project{Name: p.Name, Members: own, Runtime: core.RuntimeIn(p.Name, v.snap.Project)}, len(own) > 0
}

// policy is every QOS, and the projects that the viewer sees.
func (v *viewer) policy() *core.Policy {
	p := v.snap.Policy()
	if v.hides(config.PrivateAccounts | config.PrivateUsers) {
		p.Projects = v.projects()
	}
	return p
}

// reservations are the advance reservations that the viewer sees.
func (v *viewer) reservations() (list []*core.AdvanceReservation) {
	for _, r := range v.snap.Reservations() {
		if v.seesReservation(func() bool { return v.canUse(r) }) {
			list = append(list, v.cutReservation(r))
		}
	}
	return list
}

// reservation finds one.
func (v *viewer) reservation(name string) (*core.AdvanceReservation, error) {
	r, ok := v.snap.Reservation(name)
	if !ok || !v.seesReservation(func() bool { return v.canUse(r) }) {
		return nil, core.Errorf(core.NotFound, "there is no reservation %q", name).Because("invalid_reservation")
	}
	return v.cutReservation(r), nil
}

// canUse tells whether a job of the viewer in any of their projects could run in a reservation.
func (v *viewer) canUse(r *core.AdvanceReservation) bool {
	if len(r.Groups) > 0 {
		mine := v.groupList()
		if !slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(mine, g) }) {
			return false
		}
	}
	return slices.ContainsFunc(v.snap.Projects(), func(p *core.Project) bool {
		return v.rankIn(p.Name) > 0 && r.Admits(v.user, func(account core.ProjectName) bool { return v.below(p.Name, account) })
	})
}

func (v *viewer) groupList() []string {
	if v.groups == nil {
		return nil
	}
	return v.groups()
}

// below tells whether a project is another or lies below it.
func (v *viewer) below(p, top core.ProjectName) bool {
	const deepest = 100 // stores of old may hold circles
	for range deepest {
		if p == top {
			return true
		}
		x, ok := v.snap.Project(p)
		if !ok || x.Parent == "" {
			return false
		}
		p = x.Parent
	}
	return false
}

// cutReservation takes the names of others out of a reservation where users or projects are private.
func (v *viewer) cutReservation(r *core.AdvanceReservation) *core.AdvanceReservation {
	if !v.hides(config.PrivateUsers | config.PrivateAccounts) {
		return r
	}
	cut := *r
	if v.hides(config.PrivateUsers) {
		cut.Users = slices.DeleteFunc(slices.Clone(r.Users), func(u core.UserName) bool { return !v.isSelf(u) })
	}
	if v.hides(config.PrivateAccounts) {
		cut.Accounts = slices.DeleteFunc(slices.Clone(r.Accounts), func(p core.ProjectName) bool { return v.rankIn(p) == 0 })
	}
	return &cut
}

// hidden names the kinds of records that are withheld whole, for commands that would otherwise take none for an answer.
func (v *viewer) hidden() (list []string) {
	if !v.seesNodes() {
		list = append(list, "nodes")
	}
	if !v.seesPartitions() {
		list = append(list, "partitions")
	}
	return list
}

var namedJobs = regexp.MustCompile(`\bjobs? \d+(_\d+)?((, | and )\d+(_\d+)?)*`)

// sentence takes jobs that the viewer does not see out of a text for people: "job 12 is ahead of it" becomes "another job is
// ahead of it". own is the job that the text is about.
func (v *viewer) sentence(text string, own core.JobID) string {
	if v.allJobs() || !strings.Contains(text, "job") {
		return text
	}
	return namedJobs.ReplaceAllStringFunc(text, func(m string) string {
		for _, word := range strings.FieldsFunc(m, func(r rune) bool { return (r < '0' || r > '9') && r != '_' }) {
			head, _, _ := strings.Cut(word, "_")
			n, err := strconv.ParseInt(head, 10, 64)
			if err != nil || core.JobID(n) == own {
				continue
			}
			if _, ok := v.job(core.JobID(n)); !ok {
				if strings.HasPrefix(m, "jobs") {
					return "other jobs"
				}
				return "another job"
			}
		}
		return m
	})
}

var closedReservation = regexp.MustCompile(`^reservation (\S+) is not for `)

// mask keeps a refusal from telling what the caller is not to know: the ids of jobs that are hidden, and that a reservation
// is there which is not for them.
func (a *Base) mask(who *caller, err error) error {
	var e *core.Error
	if err == nil || who == nil || who.user == nil || who.Admin || a.conf().Private() == 0 || !errors.As(err, &e) {
		return err
	}
	v, verr := a.viewer(who)
	if verr != nil {
		return verr
	}
	told := *e
	if e.Code == core.Conflict || e.Code == core.Denied {
		told.Message = v.sentence(e.Message, 0)
	}
	if m := closedReservation.FindStringSubmatch(e.Message); m != nil && v.hides(config.PrivateReservations) {
		told = *core.Errorf(core.Invalid, "there is no reservation %q that jobs can run in", m[1]).Because("invalid_reservation")
	}
	return &told
}
