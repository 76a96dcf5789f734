package view

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// Viewer is one caller's look at a snapshot. Handlers take every list and every single record from it, so that what
// is not the caller's is not there for any of them: a job that is hidden is answered for like one that never was.
type Viewer struct {
	Visibility
	Snap   *state.Snapshot
	Groups func() []string // unix groups of the caller; asked only where a reservation is for groups

	tasks   map[core.JobID][]*core.Job // live ones by array; nil: not read yet
	largest int32                      // CPUs of the largest node; 0: not read yet
}

// LeastNodes is on how many of the largest nodes a job's CPUs fit, if that is more than it asks for; 0: it is not.
func (v *Viewer) LeastNodes(sh *core.Shape) int32 {
	nodes, cpus := client.Wants(*sh)
	if cpus <= nodes || sh.NodesMax > 0 {
		return 0
	}
	if v.largest == 0 {
		v.largest = 1
		for n := range v.Snap.Nodes() {
			v.largest = max(v.largest, n.Hardware.CPUs)
		}
	}
	if least := (cpus-1)/v.largest + 1; least > nodes {
		return least
	}
	return 0
}

// AllJobs reports whether the viewer sees every job.
func (v *Viewer) AllJobs() bool { return !v.Hides(config.PrivateJobs) }

// Job finds a live job.
func (v *Viewer) Job(id core.JobID) (*core.Job, bool) {
	j, ok := v.Snap.Job(id)
	if !ok || !v.SeesJob(j) {
		return nil, false
	}
	return j, true
}

// HidesLive reports whether there is a live job or array of an id that the viewer does not see.
func (v *Viewer) HidesLive(id core.JobID) bool {
	if v.AllJobs() {
		return false
	}
	j, ok := v.Snap.Job(id)
	if tasks := v.Snap.Tasks(id); !ok && len(tasks) > 0 {
		j, ok = tasks[0], true
	}
	return ok && !v.SeesJob(j)
}

// Jobs are the live jobs by ascending id.
func (v *Viewer) Jobs() iter.Seq[*core.Job] { return v.JobsFrom(0) }

// JobsFrom are those from an id on.
func (v *Viewer) JobsFrom(id core.JobID) iter.Seq[*core.Job] {
	if v.AllJobs() {
		return v.Snap.JobsFrom(id)
	}
	return func(yield func(*core.Job) bool) {
		for j := range v.Snap.JobsFrom(id) {
			if v.SeesJob(j) && !yield(j) {
				return
			}
		}
	}
}

// JobIDs keeps the jobs that the viewer sees; of those that have ended nothing is known, so they go too.
func (v *Viewer) JobIDs(list []core.JobID) []core.JobID {
	if v.AllJobs() {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(id core.JobID) bool { _, ok := v.Job(id); return !ok })
}

// Run finds an open run.
func (v *Viewer) Run(project core.ProjectName, name string) (*core.Run, bool) {
	r, ok := v.Snap.Run(project, name)
	if !ok || !v.SeesRun(r) {
		return nil, false
	}
	return r, true
}

// Managed are the projects whose jobs the viewer sees.
func (v *Viewer) Managed() (list []core.ProjectName) {
	for _, p := range v.Snap.Projects() {
		if v.Manages(p.Name) {
			list = append(list, p.Name)
		}
	}
	return list
}

// Partitions are those of the cluster, or none.
func (v *Viewer) Partitions() []core.Partition {
	if !v.SeesPartitions() {
		return []core.Partition{}
	}
	return v.Snap.Partitions()
}

// Nodes refuses those who may not see nodes; whether one is there is not told either.
func (v *Viewer) Nodes() (iter.Seq[*core.Node], error) {
	if !v.SeesNodes() {
		return nil, core.Errorf(core.Denied, "nodes are private here (private_data): administrators see them").
			Because("access_denied")
	}
	return v.Snap.Nodes(), nil
}

// Node finds a node.
func (v *Viewer) Node(name core.NodeName) (*core.Node, error) {
	if _, err := v.Nodes(); err != nil {
		return nil, err
	}
	n, ok := v.Snap.Node(name)
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no node %q", name).Because("invalid_node")
	}
	return n, nil
}

// Users are the records of users.
func (v *Viewer) Users() (list []*core.User) {
	for _, u := range v.Snap.Users() {
		if v.SeesUser(u.Name) {
			list = append(list, u)
		}
	}
	return list
}

// FindUser finds a user.
func (v *Viewer) FindUser(name core.UserName) (*core.User, error) {
	u, ok := v.Snap.User(name)
	if !ok || !v.SeesUser(name) {
		return nil, core.Errorf(core.NotFound, "there is no user %q", name).Because("invalid_user")
	}
	return u, nil
}

// Projects are the projects with the members that the viewer sees. Of one whose definition is hidden its members know
// the name, their own part in it and what its runs run in.
func (v *Viewer) Projects() []core.Project {
	list := []core.Project{}
	for _, p := range v.Snap.Projects() {
		if q, ok := v.project(p); ok {
			list = append(list, q)
		}
	}
	return list
}

func (v *Viewer) project(p *core.Project) (core.Project, bool) {
	q := *p
	if v.Hides(config.PrivateUsers) && !v.Manages(p.Name) {
		q.Members = slices.DeleteFunc(slices.Clone(p.Members),
			func(m core.Member) bool { return !v.seesMember(p.Name, m.User) })
	}
	if v.SeesProject(p.Name) {
		return q, true
	}
	own := slices.DeleteFunc(slices.Clone(q.Members), func(m core.Member) bool { return !v.isSelf(m.User) })
	return core.Project{Name: p.Name, Members: own, Runtime: core.RuntimeIn(p.Name, v.Snap.Project)}, len(own) > 0
}

// Policy is every QOS, and the projects that the viewer sees.
func (v *Viewer) Policy() *core.Policy {
	p := v.Snap.Policy()
	if v.Hides(config.PrivateAccounts | config.PrivateUsers) {
		p.Projects = v.Projects()
	}
	return p
}

// Reservations are the advance reservations that the viewer sees.
func (v *Viewer) Reservations() (list []*core.AdvanceReservation) {
	for _, r := range v.Snap.Reservations() {
		if v.seesReservation(func() bool { return v.canUse(r) }) {
			list = append(list, v.cutReservation(r))
		}
	}
	return list
}

// Reservation finds one.
func (v *Viewer) Reservation(name string) (*core.AdvanceReservation, error) {
	r, ok := v.Snap.Reservation(name)
	if !ok || !v.seesReservation(func() bool { return v.canUse(r) }) {
		return nil, core.Errorf(core.NotFound, "there is no reservation %q", name).Because("invalid_reservation")
	}
	return v.cutReservation(r), nil
}

// SeesPast reports whether the viewer sees a reservation that may be over.
func (v *Viewer) SeesPast(r *core.AdvanceReservation) bool {
	return v.seesReservation(func() bool { return v.canUse(r) })
}

// ReservedFor lists the members of projects that a reservation names, by project and user; none where it is for
// groups.
func (v *Viewer) ReservedFor(r *core.AdvanceReservation) (list []core.Spent) {
	if len(r.Users)+len(r.Projects) == 0 {
		return nil
	}
	for _, p := range v.Snap.Projects() {
		for i := range p.Members {
			if u := p.Members[i].User; r.Admits(u, func(top core.ProjectName) bool { return v.below(p.Name, top) }) {
				list = append(list, core.Spent{Project: p.Name, User: u})
			}
		}
	}
	return list
}

// canUse reports whether a job of the viewer in any of their projects could run in a reservation.
func (v *Viewer) canUse(r *core.AdvanceReservation) bool {
	if len(r.Groups) > 0 {
		mine := v.groupList()
		if !slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(mine, g) }) {
			return false
		}
	}
	return slices.ContainsFunc(v.Snap.Projects(), func(p *core.Project) bool {
		return v.rankIn(p.Name) > 0 && r.Admits(v.User, func(account core.ProjectName) bool {
			return v.below(p.Name, account)
		})
	})
}

func (v *Viewer) groupList() []string {
	if v.Groups == nil {
		return nil
	}
	return v.Groups()
}

// below reports whether a project is another or lies below it.
func (v *Viewer) below(p, top core.ProjectName) bool {
	const deepest = 100 // stores of old may hold circles
	for range deepest {
		if p == top {
			return true
		}
		x, ok := v.Snap.Project(p)
		if !ok || x.Parent == "" {
			return false
		}
		p = x.Parent
	}
	return false
}

// cutReservation takes the names of others out of a reservation where users or projects are private.
func (v *Viewer) cutReservation(r *core.AdvanceReservation) *core.AdvanceReservation {
	if !v.Hides(config.PrivateUsers | config.PrivateAccounts) {
		return r
	}
	cut := *r
	if v.Hides(config.PrivateUsers) {
		cut.Users = slices.DeleteFunc(slices.Clone(r.Users), func(u core.UserName) bool { return !v.isSelf(u) })
	}
	if v.Hides(config.PrivateAccounts) {
		cut.Projects = slices.DeleteFunc(slices.Clone(r.Projects), func(p core.ProjectName) bool { return v.rankIn(p) == 0 })
	}
	return &cut
}

// Hidden names the kinds of records that are withheld whole, for commands that would otherwise take none for an answer.
func (v *Viewer) Hidden() (list []string) {
	if !v.SeesNodes() {
		list = append(list, "nodes")
	}
	if !v.SeesPartitions() {
		list = append(list, "partitions")
	}
	return list
}

var namedJobs = regexp.MustCompile(`\bjobs? \d+(_\d+)?((, | and )\d+(_\d+)?)*`)

// Sentence takes jobs that the viewer does not see out of a text for people: "job 12 is ahead of it" becomes "another
// job is ahead of it". own is the job that the text is about.
func (v *Viewer) Sentence(text string, own core.JobID) string {
	if v.AllJobs() || !strings.Contains(text, "job") {
		return text
	}
	return namedJobs.ReplaceAllStringFunc(text, func(m string) string {
		for _, word := range strings.FieldsFunc(m, func(r rune) bool { return (r < '0' || r > '9') && r != '_' }) {
			head, _, _ := strings.Cut(word, "_")
			n, err := strconv.ParseInt(head, 10, 64)
			if err != nil || core.JobID(n) == own {
				continue
			}
			if _, ok := v.Job(core.JobID(n)); !ok {
				if strings.HasPrefix(m, "jobs") {
					return "other jobs"
				}
				return "another job"
			}
		}
		return m
	})
}
