package slurmsite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/migrate/slurmdb"
)

// migration is what an import does.
type migration struct {
	o   *importOptions
	c   *client.Client
	db  *slurmdb.Database
	src *source
	say *progress

	rows      []Row
	bare      core.Policy // projects and QOS, with the members whose users are here
	full      core.Policy // with all members
	newUsers  []core.User
	changed   map[core.UserName]*client.UpdateUser
	jobs      client.HistoryTaken // of all batches
	conflicts []client.HistoryConflict
	spent     []core.Spent
	halfLife  core.Seconds
	steps     int64
	absent    []string // users without an account on this machine
}

// Row is one thing of the dump and what becomes of it.
type Row struct {
	Kind   string `json:"kind"` // qos, account, user, association
	Name   string `json:"name"`
	Action string `json:"action"`
	Note   string `json:"note,omitempty"`
}

// What becomes of a thing.
const (
	actTake    = "take"    // it is not here
	actSame    = "same"    // it is here
	actKeep    = "keep"    // it is otherwise here, and stays
	actReplace = "replace" // it is otherwise here, and becomes as in the dump
)

func (m *migration) add(kind, name, action, note string) {
	m.rows = append(m.rows, Row{kind, name, action, note})
}

// prepare compares the dump with what is here, and checks all of it.
func (m *migration) prepare(ctx context.Context) error {
	policy, err := m.c.Policy(ctx)
	if err != nil {
		return err
	}
	users, err := m.c.Users(ctx)
	if err != nil {
		return err
	}
	m.changed = map[core.UserName]*client.UpdateUser{}
	m.compareQOS(policy)
	m.compareUsers(users.Users)
	m.compareProjects(policy)
	m.bare.QOS = m.full.QOS
	m.leaveOutNew()
	if len(m.bare.QOS)+len(m.bare.Projects) > 0 {
		in := &client.ApplyPolicy{Policy: m.bare, Force: true, DryRun: true}
		if _, err := m.c.ApplyPolicy(ctx, in); err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
	}
	first, err := client.TakeOverHistory(ctx, m.c, &client.TakeHistory{DryRun: true})
	if err != nil {
		return err
	}
	m.halfLife = first.HalfLife
	return m.checkJobs(ctx)
}

func (m *migration) compareQOS(policy *core.Policy) {
	here := map[core.QOSName]core.QOS{}
	for _, q := range policy.QOS {
		q.ID, q.Created = 0, 0
		here[q.Name] = q
	}
	for _, q := range m.db.QOS {
		old, ok := here[q.Name]
		switch action := m.action(ok, ok && same(old, q)); action {
		case actTake, actReplace:
			m.full.QOS = append(m.full.QOS, q)
			m.add("qos", string(q.Name), action, "")
		default:
			m.add("qos", string(q.Name), action, "")
		}
	}
}

func (m *migration) action(here, equal bool) string {
	switch {
	case !here:
		return actTake
	case equal:
		return actSame
	case m.o.replace:
		return actReplace
	}
	return actKeep
}

// same reports whether two records say the same.
func same(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func (m *migration) compareUsers(list []core.User) {
	here := map[core.UserName]*core.User{}
	for i := range list {
		here[list[i].Name] = &list[i]
	}
	for _, u := range m.db.Users {
		if _, err := account.ByName(u.UnixName); err != nil {
			m.absent = append(m.absent, u.UnixName)
		}
		old := here[u.Name]
		if old == nil {
			m.newUsers = append(m.newUsers, u)
			m.add("user", string(u.Name), actTake, noteOf(u.Role == core.RoleAdmin, "administrator"))
			continue
		}
		equal := old.Default == u.Default && old.Role == u.Role && slices.Equal(old.WCKeys, u.WCKeys) &&
			old.DefaultWCKey == u.DefaultWCKey
		action := m.action(true, equal)
		m.add("user", string(u.Name), action, "")
		if action == actReplace {
			m.changed[u.Name] = &client.UpdateUser{
				Role: &u.Role, Default: &u.Default, WCKeys: &u.WCKeys,
				DefaultWCKey: &u.DefaultWCKey,
			}
		}
	}
}

func noteOf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func (m *migration) compareProjects(policy *core.Policy) {
	here := map[core.ProjectName]*core.Project{}
	for i := range policy.Projects {
		here[policy.Projects[i].Name] = &policy.Projects[i]
	}
	for _, p := range m.db.Projects {
		old := here[p.Name]
		merged, touched := p, true
		if old != nil {
			merged = *old
			action := m.action(true, sameProject(old, &p))
			if touched = action == actReplace; touched {
				merged.Parent, merged.Shares, merged.Assoc = p.Parent, p.Shares, p.Assoc
				merged.Description, merged.Organization = p.Description, p.Organization
			}
			m.add("account", string(p.Name), action, "")
			merged.Members = slices.Clone(old.Members)
		} else {
			m.add("account", string(p.Name), actTake, noteOf(p.Parent != "", "below "+string(p.Parent)))
			merged.Members = nil
		}
		for _, x := range p.Members {
			touched = m.member(&merged, x) || touched
		}
		if touched {
			m.full.Projects = append(m.full.Projects, merged)
		}
	}
}

func sameProject(a, b *core.Project) bool {
	return a.Parent == b.Parent && max(a.Shares, 1) == max(b.Shares, 1) && same(a.Assoc, b.Assoc)
}

// member adds an association to a project and reports whether that changes it.
func (m *migration) member(p *core.Project, x core.Member) bool {
	name := fmt.Sprintf("%s in %s", x.User, p.Name)
	for i := range p.Members {
		old := &p.Members[i]
		if old.User != x.User {
			continue
		}
		equal := old.Role == x.Role && max(old.Shares, 1) == max(x.Shares, 1) && same(old.Assoc, x.Assoc)
		action := m.action(true, equal)
		m.add("association", name, action, "")
		if action != actReplace {
			return false
		}
		x.ID = old.ID
		*old = x
		return true
	}
	m.add("association", name, actTake, noteOf(x.Role == core.RoleManager, "coordinator"))
	p.Members = append(p.Members, x)
	slices.SortFunc(p.Members, func(a, b core.Member) int { return compare(a.User, b.User) })
	return true
}

func compare(a, b core.UserName) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// leaveOutNew makes the policy without the members whose users are not here: projects come before users, who need one.
func (m *migration) leaveOutNew() {
	fresh := map[core.UserName]bool{}
	for i := range m.newUsers {
		fresh[m.newUsers[i].Name] = true
	}
	for _, p := range m.full.Projects {
		p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(x core.Member) bool { return fresh[x.User] })
		m.bare.Projects = append(m.bare.Projects, p)
	}
}

// checkJobs reads all jobs once, without sending them: all of them must be readable, and no id may be another's.
func (m *migration) checkJobs(ctx context.Context) error {
	ledger := m.db.NewLedger(core.At(m.o.app.Now()), m.halfLife)
	var known []client.KnownJob
	send := func() error {
		got, err := client.TakeOverHistory(ctx, m.c, &client.TakeHistory{Known: known, DryRun: true})
		if err != nil {
			return err
		}
		m.jobs.Taken += got.Taken
		m.jobs.Same += got.Same
		m.conflicts = append(m.conflicts, got.Conflicts...)
		known = known[:0]
		return nil
	}
	if err := m.src.rewind(); err != nil {
		return err
	}
	var failed error // of the server, not of the dump
	err := m.db.Jobs(m.src.f, ledger, slurmdb.Sink{
		Job: func(j *core.Job) error {
			known = append(known, client.KnownJob{ID: j.ID, User: j.Spec.User, Submit: j.Submit})
			if len(known) == client.MaxHistory && !m.o.noJobs {
				failed = send()
			}
			return failed
		},
		Step: func(*core.Step) error { m.steps++; return nil },
	}, m.say.step("checking"))
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return m.src.fault(err)
	}
	if !m.o.noUsage {
		m.spent = ledger.Spent()
	}
	if m.o.noJobs || len(known) == 0 {
		return nil
	}
	return send()
}

// changes counts what is to be done; usage counts once.
func (m *migration) changes() (n int) {
	for _, r := range m.rows {
		if r.Action == actTake || r.Action == actReplace {
			n++
		}
	}
	return n + m.jobs.Taken
}

// do does it: ids first, so that no job that is submitted meanwhile gets one of those that come.
func (m *migration) do(ctx context.Context) error {
	if _, err := m.takeOver(ctx, &client.TakeHistory{NextJob: m.db.Counts.MaxJob + 1}); err != nil {
		return err
	}
	if err := m.apply(ctx, m.bare); err != nil {
		return err
	}
	for i := range m.newUsers {
		if err := m.c.NewUser(ctx, &m.newUsers[i]); err != nil {
			return fmt.Errorf("user %s: %w", m.newUsers[i].Name, err)
		}
	}
	for name, change := range m.changed {
		if err := m.c.UpdateUser(ctx, name, change); err != nil {
			return fmt.Errorf("user %s: %w", name, err)
		}
	}
	if err := m.apply(ctx, m.full); err != nil {
		return err
	}
	if !m.o.noJobs {
		if err := m.sendJobs(ctx); err != nil {
			return err
		}
	}
	return m.sendUsage(ctx)
}

func (m *migration) apply(ctx context.Context, p core.Policy) error {
	if len(p.QOS)+len(p.Projects) == 0 {
		return nil
	}
	_, err := m.c.ApplyPolicy(ctx, &client.ApplyPolicy{Policy: p, Force: true})
	return err
}

// batchJobs is how many jobs go in one call.
const batchJobs = 500

func (m *migration) sendJobs(ctx context.Context) error {
	if err := m.src.rewind(); err != nil {
		return err
	}
	in := &client.TakeHistory{}
	flush := func() error {
		if len(in.Jobs)+len(in.Steps) == 0 {
			return nil
		}
		got, err := m.takeOver(ctx, in)
		in = &client.TakeHistory{}
		if err == nil && len(got.Conflicts) > 0 {
			err = core.Errorf(core.Conflict, "job %d: %s", got.Conflicts[0].ID, got.Conflicts[0].Why)
		}
		return err
	}
	ledger := m.db.NewLedger(core.At(m.o.app.Now()), m.halfLife)
	err := m.db.Jobs(m.src.f, ledger, slurmdb.Sink{
		Job: func(j *core.Job) error {
			if in.Jobs = append(in.Jobs, j); len(in.Jobs) < batchJobs {
				return nil
			}
			return flush()
		},
		Step: func(s *core.Step) error {
			if in.Steps = append(in.Steps, s); len(in.Steps) < batchJobs {
				return nil
			}
			return flush()
		},
	}, m.say.step("sending"))
	if err != nil {
		return err
	}
	return flush()
}

func (m *migration) sendUsage(ctx context.Context) error {
	for chunk := range slices.Chunk(m.spent, batchJobs) {
		got, err := m.takeOver(ctx, &client.TakeHistory{Spent: chunk})
		if err != nil {
			return err
		}
		m.jobs.Spent += got.Spent
	}
	return nil
}

// Report is what --json prints.
type Report struct {
	Cluster string         `json:"cluster"`
	Rows    []Row          `json:"rows"`
	Jobs    JobReport      `json:"jobs"`
	Usage   []core.Spent   `json:"usage"` // decayed to now; with taken what became of it
	Taken   int            `json:"usage_taken"`
	Left    []slurmdb.Left `json:"left"`
	Absent  []string       `json:"absent"` // users whom this machine does not know
	Next    core.JobID     `json:"next_job"`

	Conflicts []client.HistoryConflict `json:"conflicts"`
}

// JobReport counts jobs.
type JobReport struct {
	Take       int   `json:"take"`
	Same       int   `json:"same"`
	Attempts   int64 `json:"attempts"`   // that went back to the queue
	Steps      int64 `json:"steps"`      // numbered ones
	Unfinished int64 `json:"unfinished"` // they stay with Slurm
	Reused     int64 `json:"reused"`     // older jobs whose id a later one has
}

func (m *migration) report() *Report {
	n := m.db.Counts
	return &Report{
		Cluster: m.db.Cluster, Rows: m.rows, Usage: m.spent, Taken: m.jobs.Spent, Left: m.db.Left, Absent: m.absent,
		Next: n.MaxJob + 1, Conflicts: m.conflicts,
		Jobs: JobReport{m.jobs.Taken, m.jobs.Same, n.Attempts, m.steps, n.Unfinished, n.Reused},
	}
}

// write prints a table with a line for each kind, and below it what is not taken over.
func (m *migration) write() error {
	t := app.Table{{"KIND", "TAKE", "REPLACE", "SAME", "KEEP", "NOTE"}}
	kinds := []string{"qos", "account", "user", "association"}
	for _, kind := range kinds {
		count := map[string]int{}
		for _, r := range m.rows {
			if r.Kind == kind {
				count[r.Action]++
			}
		}
		note := "-"
		if kind == "user" && len(m.absent) > 0 {
			note = fmt.Sprintf("this machine does not know %s", someOf(m.absent))
		}
		t.Row(kind, strconv.Itoa(count[actTake]), strconv.Itoa(count[actReplace]), strconv.Itoa(count[actSame]),
			strconv.Itoa(count[actKeep]), note)
	}
	n := m.db.Counts
	t.Row("usage", strconv.Itoa(len(m.spent)), "0", "0", "0",
		"users in accounts; those who have used something here keep that")
	t.Row("job", strconv.Itoa(m.jobs.Taken), "0", strconv.Itoa(m.jobs.Same), "0",
		fmt.Sprintf("with %s, %s; the next id is %d", app.Plural(m.steps, "step"), app.Plural(n.Attempts, "earlier attempt"),
			n.MaxJob+1))
	if err := t.Write(m.o.app.Out); err != nil {
		return err
	}
	if n.Unfinished > 0 {
		m.o.app.Note("%s not ended: they stay with Slurm", haveNot(n.Unfinished))
	}
	if n.Reused > 0 {
		m.o.app.Note("%s left: a later job has the id", app.Plural(n.Reused, "older job"))
	}
	for _, l := range m.db.Left {
		m.o.app.Note("left: %s %s: %s", l.Kind, l.Name, l.Why)
	}
	for _, c := range m.conflicts[:min(len(m.conflicts), 10)] {
		m.o.app.Note("conflict: job %d: %s", c.ID, c.Why)
	}
	return nil
}

func haveNot(n int64) string {
	if n == 1 {
		return "1 job has"
	}
	return fmt.Sprintf("%d jobs have", n)
}

func someOf(list []string) string {
	const most = 5
	if len(list) <= most {
		return fmt.Sprint(list)
	}
	return fmt.Sprintf("%v and %d more", list[:most], len(list)-most)
}
