package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/store"
)

// told is an event in dstack's words, and what it is within.
type told struct {
	wire.Event
	seq    int64 // of our own that it tells
	at     core.Time
	within []string // ids of projects, fleets and runs
}

// teller tells events to one caller.
type teller struct {
	a    *Events
	c    *front.Call
	view *view.Viewer
	jobs map[core.JobID]*core.Job
	runs map[string]*core.Run // by project/name
	out  []told
}

func newTeller(a *Events, c *front.Call) *teller {
	return &teller{
		a: a, c: c, view: a.ViewOf(c.Caller, c.Snap), jobs: map[core.JobID]*core.Job{}, runs: map[string]*core.Run{},
	}
}

// tell words a batch of events, leaving out what the caller does not get to see.
func (t *teller) tell(ctx context.Context, list []core.Event) ([]told, error) {
	if err := t.load(ctx, list); err != nil {
		return nil, err
	}
	t.out = nil
	for i := range list {
		e := &list[i]
		switch e.Kind {
		case core.JobSubmitted, core.JobStarted, core.JobEnded, core.JobRequeued, core.RunChanged:
			if err := t.job(ctx, e); err != nil {
				return nil, err
			}
		case core.ProjectChanged:
			t.project(e)
		case core.UserChanged:
			t.user(e)
		case core.FleetChanged:
			t.fleet(e)
		case core.NodeJoined:
			t.node(e)
		case core.CredentialChanged:
			t.credential(e)
		default: // other kinds tell its readers nothing
		}
	}
	return t.out, nil
}

// load reads the jobs that events are about and that have left memory.
func (t *teller) load(ctx context.Context, list []core.Event) error {
	var ended []core.JobID
	for i := range list {
		id := list[i].Job
		if _, known := t.jobs[id]; known || id == 0 {
			continue
		}
		j, live := t.c.Snap.Job(id)
		if t.jobs[id] = j; !live {
			ended = append(ended, id)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	found, err := t.a.Store.Jobs(ctx, store.JobQuery{IDs: ended, Exact: true, Limit: len(ended)})
	for _, j := range found {
		t.jobs[j.ID] = j
	}
	return call.StoreError(err)
}

// add appends an event. Its id is the same in every call: our own number, and which of those it becomes.
func (t *teller) add(e *core.Event, by core.UserName, within []string, targets []wire.EventTarget, format string,
	args ...any,
) {
	n := 0
	for i := len(t.out) - 1; i >= 0 && t.out[i].seq == e.Seq; i-- {
		n++
	}
	x := told{seq: e.Seq, at: e.At, within: within, Event: wire.Event{
		ID: wire.UUID(wire.KindEvent, fmt.Sprintf("%d/%d", e.Seq, n)), Message: fmt.Sprintf(format, args...),
		RecordedAt: wire.Time(e.At), Targets: targets,
	}}
	if by != "" {
		id, name, gone := wire.UUID(wire.KindUser, string(by)), string(by), false
		x.ActorUserID, x.ActorUser, x.IsActorUserDeleted = &id, &name, &gone
	}
	t.out = append(t.out, x)
}

// inProject makes a target one of a project.
func inProject(kind, id, name string, p core.ProjectName) wire.EventTarget {
	out := wire.EventTarget{Type: kind, ID: id, Name: name}
	if p != "" {
		pid, pname, gone := wire.UUID(wire.KindProject, string(p)), string(p), false
		out.ProjectID, out.ProjectName, out.IsProjectDeleted = &pid, &pname, &gone
	}
	return out
}

// sees reports whether the caller is in a project.
func (t *teller) sees(p core.ProjectName) bool {
	if k := t.c.TokenRecord; k != nil && k.Project != "" && k.Project != p {
		return false
	}
	rec, ok := t.c.Snap.Project(p)
	return t.c.Admin || ok && t.c.RoleIn(rec) != core.RoleNone
}

func (t *teller) project(e *core.Event) {
	var d struct {
		Project core.ProjectName
		Gone    bool
	}
	if json.Unmarshal(e.Data, &d) != nil || !t.sees(d.Project) {
		return
	}
	id := wire.UUID(wire.KindProject, string(d.Project))
	targets := []wire.EventTarget{inProject(wire.TargetProject, id, string(d.Project), d.Project)}
	p, there := t.c.Snap.Project(d.Project)
	switch {
	case d.Gone:
		t.add(e, e.By, []string{id}, targets, "Project deleted")
	case there && p.Created == e.At:
		t.add(e, p.Owner, []string{id}, targets, "Project created")
	default:
		t.add(e, e.By, []string{id}, targets, "Project updated")
	}
}

func (t *teller) user(e *core.Event) {
	if t.c.TokenRecord != nil && t.c.TokenRecord.Project != "" || !t.c.Admin && e.User != t.c.User {
		return
	}
	id := wire.UUID(wire.KindUser, string(e.User))
	targets := []wire.EventTarget{{Type: wire.TargetUser, ID: id, Name: string(e.User)}}
	message := "User updated"
	if u, ok := t.c.Snap.User(e.User); ok && u.Created == e.At {
		message = "User created"
	}
	t.add(e, e.By, nil, targets, "%s", message)
}

func (t *teller) fleet(e *core.Event) {
	var d struct {
		Fleet string
		Gone  bool
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return
	}
	f, ok := t.c.Snap.Fleet(d.Fleet)
	switch {
	case d.Gone && t.c.Admin:
		id := wire.UUID(wire.KindFleet, d.Fleet)
		t.add(e, e.By, []string{id}, []wire.EventTarget{inProject(wire.TargetFleet, id, d.Fleet, "")}, "Fleet deleted")
	case ok && f.Created == e.At && (f.Project == "" || t.sees(f.Project)):
		id := wire.UUID(wire.KindFleet, d.Fleet)
		within := []string{id, wire.UUID(wire.KindProject, string(f.Project))}
		t.add(e, f.By, within, []wire.EventTarget{inProject(wire.TargetFleet, id, f.Name, f.Project)},
			"Fleet created. Status: ACTIVE")
		for i := range f.Hosts {
			node := string(f.Hosts[i].Node)
			t.add(e, f.By, within,
				[]wire.EventTarget{inProject(wire.TargetInstance, wire.UUID(wire.KindInstance, node), node, f.Project)},
				"Instance created on fleet submission. Status: PENDING")
		}
	}
}

func (t *teller) node(e *core.Event) {
	n, ok := t.c.Snap.Node(e.Node)
	if !ok || !t.view.SeesNodes() {
		return
	}
	project, within := core.ProjectName(""), []string{}
	if f, ok := t.c.Snap.Fleet(n.Fleet); ok {
		project, within = f.Project, []string{wire.UUID(wire.KindFleet, f.Name)}
	}
	if project != "" && !t.sees(project) {
		return
	}
	if project != "" {
		within = append(within, wire.UUID(wire.KindProject, string(project)))
	}
	id := wire.UUID(wire.KindInstance, string(n.Name))
	t.add(e, "", within, []wire.EventTarget{inProject(wire.TargetInstance, id, string(n.Name), project)},
		"Instance status changed PENDING -> IDLE")
}

func (t *teller) credential(e *core.Event) {
	var d struct {
		Kind              core.CredentialKind
		Owner, Name, Done string
	}
	if json.Unmarshal(e.Data, &d) != nil || d.Done == "resealed" {
		return
	}
	switch d.Kind {
	case core.SecretCredential:
		p, ok := t.c.Snap.Project(core.ProjectName(d.Owner))
		if !ok || !t.sees(p.Name) || t.c.RoleIn(p).Rank() < core.RoleManager.Rank() {
			return
		}
		id := wire.UUID(wire.KindSecret, d.Owner+"/"+d.Name)
		t.add(e, e.By, []string{wire.UUID(wire.KindProject, d.Owner)},
			[]wire.EventTarget{inProject(wire.TargetSecret, id, d.Name, p.Name)}, "Secret %s", d.Done)
	case core.SSHKeyCredential, core.PublicKeyCredential:
		if t.c.TokenRecord != nil && t.c.TokenRecord.Project != "" || !t.c.Admin && d.Owner != string(t.c.User) {
			return
		}
		message := "User SSH key refreshed"
		if d.Kind == core.PublicKeyCredential {
			message = "User public key " + strings.Replace(d.Done, "created", "added", 1)
		}
		t.add(e, e.By, nil,
			[]wire.EventTarget{{Type: wire.TargetUser, ID: wire.UUID(wire.KindUser, d.Owner), Name: d.Owner}}, "%s", message)
	default: // other kinds tell its readers nothing
	}
}

// run finds the run of a job: of those with its name, the one that has it.
func (t *teller) run(ctx context.Context, j *core.Job) (*core.Run, error) {
	key := fmt.Sprintf("%s/%s/%d", j.Spec.Project, j.Spec.Run, j.ID)
	if r, known := t.runs[key]; known {
		return r, nil
	}
	has := func(r *core.Run) bool {
		for _, id := range r.Jobs {
			if id == j.ID {
				return true
			}
		}
		return false
	}
	if r, ok := t.c.Snap.Run(j.Spec.Project, j.Spec.Run); ok && has(r) {
		t.runs[key] = r
		return r, nil
	}
	list, err := t.a.Store.Runs(ctx, store.RunQuery{Project: j.Spec.Project, Name: j.Spec.Run, Limit: 100})
	if err != nil {
		return nil, call.StoreError(err)
	}
	t.runs[key] = nil
	for _, r := range list {
		if has(r) {
			t.runs[key] = r
		}
	}
	return t.runs[key], nil
}
