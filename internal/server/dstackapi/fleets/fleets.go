package fleets

import (
	"encoding/json"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/nodes"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

// Fleets answers calls on fleets and instances.
type Fleets struct {
	*call.Base
	fleets *nodes.Fleets
}

// New makes the handlers.
func New(b *call.Base, f *nodes.Fleets) *Fleets { return &Fleets{Base: b, fleets: f} }

// Rows lists the routes.
func (a *Fleets) Rows() []front.Row {
	const base = "/api/project/{project}/fleets"
	return []front.Row{
		{Path: "/api/fleets/list", Level: front.Auth, Everywhere: true, Handle: front.OptionalBody(a.listAll)},
		{Path: base + "/list", Level: front.MemberOrPublic, Handle: front.OptionalBody(a.list)},
		{Path: base + "/get", Level: front.MemberOrPublic, Handle: front.Body(a.get)},
		{
			Path: base + "/get_plan", Level: front.Member, Scope: core.ScopeSubmit, Action: "fleet.plan", Object: "fleet",
			Quiet: true, Handle: front.Body(a.plan),
		},
		{
			Path: base + "/apply", Level: front.Member, Scope: core.ScopeAdmin, Action: "fleet.update", Object: "fleet",
			Handle: front.Body(a.apply),
		},
		{
			Path: base + "/delete", Level: front.Member, Scope: core.ScopeAdmin, Action: "fleet.delete", Object: "fleet",
			Handle: front.Body(a.remove),
		},
		{
			Path: base + "/delete_instances", Level: front.Member, Scope: core.ScopeAdmin, Action: "fleet.delete",
			Object: "fleet", Handle: front.Body(a.removeInstances),
		},
		{Path: "/api/instances/list", Level: front.Auth, Everywhere: true, Handle: front.OptionalBody(a.listInstances)},
		{Path: "/api/project/{project}/instances/get", Level: front.MemberOrPublic, Handle: front.Body(a.getInstance)},
		{
			Path: "/api/project/{project}/instances/get_instance_health_checks", Level: front.MemberOrPublic,
			Handle: front.Body(a.healthChecks),
		},
	}
}

// ID is the id of a fleet, or of a partition that appears as one.
func ID(name string) string { return wire.UUID(wire.KindFleet, name) }

// shown is what a caller sees of the nodes, worked out once.
type shown struct {
	a     *Fleets
	c     *front.Call
	nodes *nodes.InstanceView
}

func (a *Fleets) shown(c *front.Call) *shown {
	return &shown{a, c, a.fleets.Instances(a.ViewOf(c.Caller, c.Snap))}
}

// of lists the fleets of a project: its own, those of everybody, and the partitions that it may use.
func (s *shown) of(p *core.Project) []wire.Fleet {
	out := []wire.Fleet{}
	taken := map[string]bool{}
	for _, f := range s.c.Snap.Fleets() {
		if f.Project == p.Name || f.Project == "" {
			taken[f.Name] = true
			out = append(out, s.fleet(p, f))
		}
	}
	for _, part := range s.c.Snap.Partitions() {
		if taken[string(part.Name)] || !mayUse(s.c.Snap, p.Name, &part) || part.RootOnly && !s.c.Admin {
			continue
		}
		if list := s.nodes.OfPartition(part.Name); len(list) > 0 {
			out = append(out, s.partition(p, &part, list))
		}
	}
	slices.SortStableFunc(out, func(a, b wire.Fleet) int { return -strings.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

// mayUse reports whether the jobs of a project may be in a partition.
func mayUse(snap *state.Snapshot, p core.ProjectName, part *core.Partition) bool {
	if len(part.AllowProjects) > 0 && !snap.IsUnder(p, part.AllowProjects) {
		return false
	}
	return !snap.IsUnder(p, part.DenyProjects)
}

func (s *shown) fleet(p *core.Project, f *core.Fleet) wire.Fleet {
	view := s.nodes.Fleet(f)
	out := wire.Fleet{
		ID: ID(f.Name), Name: f.Name, ProjectName: string(p.Name), Spec: s.spec(f), CreatedAt: wire.Time(f.Created),
		Status: wire.FleetActive, Instances: []wire.Instance{},
	}
	if f.Leaving {
		out.Status = wire.FleetTerminating
	}
	for i := range view.Instances {
		x := &view.Instances[i]
		n, ok := s.c.Snap.Node(x.Node)
		if !ok {
			n = &core.Node{Name: x.Node}
		}
		w := instance(n, x)
		w.Created = wire.Time(max(f.Created, n.Joined))
		if h := f.Host(x.Num); h != nil {
			w.Hostname = &h.Login.Host
		}
		out.Instances = append(out.Instances, s.within(w, &out))
	}
	return out
}

// partition is a partition as a fleet.
func (s *shown) partition(p *core.Project, part *core.Partition, list []*core.Node) wire.Fleet {
	first := s.c.Snap.Now()
	for _, n := range list {
		first = min(first, joined(n, p))
	}
	name := string(part.Name)
	out := wire.Fleet{
		ID: ID(name), Name: name, ProjectName: string(p.Name), CreatedAt: wire.Time(first), Status: wire.FleetActive,
		Spec: partitionSpec(name, list), Instances: make([]wire.Instance, 0, len(list)),
	}
	for i, n := range list {
		x := s.nodes.Node(n)
		x.Num = int32(i)
		w := instance(n, &x)
		w.Created, w.Hostname = wire.Time(joined(n, p)), &x.Host
		out.Instances = append(out.Instances, s.within(w, &out))
	}
	return out
}

// joined is when a node joined; one that has not is there since the project is.
func joined(n *core.Node, p *core.Project) core.Time {
	if n.Joined == 0 {
		return p.Created
	}
	return n.Joined
}

// within makes an instance one of a fleet.
func (s *shown) within(w wire.Instance, f *wire.Fleet) wire.Instance {
	w.ProjectName, w.FleetID, w.FleetName = f.ProjectName, f.ID, f.Name
	return w
}

type listBody struct {
	IncludeImported bool `json:"include_imported"`
}

func (a *Fleets) list(c *front.Call, _ *listBody) (any, error) { return a.shown(c).of(c.Project), nil }

type getBody struct {
	Name *string `json:"name"`
	ID   *string `json:"id" in:"uuid"`
}

func (a *Fleets) get(c *front.Call, in *getBody) (any, error) {
	if in.Name == nil && in.ID == nil {
		return nil, front.Errorf("name or id must be specified")
	}
	f := a.find(c, in)
	if f == nil {
		return nil, front.ErrNotExists()
	}
	return f, nil
}

func (a *Fleets) find(c *front.Call, in *getBody) *wire.Fleet {
	list := a.shown(c).of(c.Project)
	for i := range list {
		if in.Name != nil && list[i].Name == *in.Name || in.Name == nil && strings.EqualFold(list[i].ID, *in.ID) {
			return &list[i]
		}
	}
	return nil
}

type page struct {
	PrevCreatedAt *string `json:"prev_created_at" in:"time"`
	PrevID        *string `json:"prev_id" in:"uuid"`
	Limit         int     `json:"limit" in:"ge=0,le=1000"`
	Ascending     bool    `json:"ascending"`
}

type listAllBody struct {
	ProjectName     *string `json:"project_name"`
	OnlyActive      bool    `json:"only_active"`
	IncludeImported bool    `json:"include_imported"`
	page
}

// Defaults are those of a client that sends nothing.
func (b *listAllBody) Defaults() { b.Limit = 100 }

// projects are those that the caller is in, or the one that is named.
func (a *Fleets) projects(c *front.Call, names []string) (list []*core.Project) {
	for _, p := range c.Snap.Projects() {
		own := c.TokenRecord == nil || c.TokenRecord.Project == "" || c.TokenRecord.Project == p.Name
		if own && c.RoleIn(p) != core.RoleNone && (len(names) == 0 || slices.Contains(names, string(p.Name))) {
			list = append(list, p)
		}
	}
	return list
}

func (a *Fleets) listAll(c *front.Call, in *listAllBody) (any, error) {
	var names []string
	if in.ProjectName != nil {
		names = []string{*in.ProjectName}
	}
	out, view := []wire.Fleet{}, a.shown(c)
	for _, p := range a.projects(c, names) {
		out = append(out, view.of(p)...)
	}
	return cut(&in.page, out, func(f *wire.Fleet) (string, string) { return f.CreatedAt, f.ID }), nil
}

type listInstancesBody struct {
	ProjectNames    *[]string `json:"project_names"`
	FleetIDs        *[]string `json:"fleet_ids" in:"uuid"`
	OnlyActive      bool      `json:"only_active"`
	IncludeImported bool      `json:"include_imported"`
	page
}

// Defaults are those of a client that sends nothing.
func (b *listInstancesBody) Defaults() { b.Limit = 1000 }

func (a *Fleets) listInstances(c *front.Call, in *listInstancesBody) (any, error) {
	var names []string
	if in.ProjectNames != nil {
		names = *in.ProjectNames
	}
	out, view := []wire.Instance{}, a.shown(c)
	for _, p := range a.projects(c, names) {
		for _, f := range view.of(p) {
			if in.FleetIDs != nil && !slices.Contains(*in.FleetIDs, f.ID) {
				continue
			}
			out = append(out, f.Instances...)
		}
	}
	if in.OnlyActive {
		out = slices.DeleteFunc(out, func(i wire.Instance) bool { return i.Status == "terminated" })
	}
	return cut(&in.page, out, func(i *wire.Instance) (string, string) { return i.Created, i.ID }), nil
}

// cut keeps what comes after the cursor, at most a page of it, by age and id.
func cut[T any](p *page, list []T, key func(*T) (made, id string)) []T {
	less := func(a, b *T) int {
		ma, ia := key(a)
		mb, ib := key(b)
		n := strings.Compare(ma+"\x00"+ia, mb+"\x00"+ib)
		if p.Ascending {
			return n
		}
		return -n
	}
	slices.SortStableFunc(list, func(a, b T) int { return less(&a, &b) })
	if p.PrevCreatedAt != nil {
		at, _ := wire.ParseTime(*p.PrevCreatedAt) // it has been checked
		prev := wire.Time(at) + "\x00"
		if p.PrevID != nil {
			prev += *p.PrevID
		}
		list = slices.DeleteFunc(list, func(x T) bool {
			made, id := key(&x)
			n := strings.Compare(made+"\x00"+id, prev)
			return p.Ascending && n <= 0 || !p.Ascending && n >= 0
		})
	}
	return list[:min(len(list), p.Limit)]
}

type instanceBody struct {
	ID string `json:"id" in:"required,uuid"`
}

func (a *Fleets) getInstance(c *front.Call, in *instanceBody) (any, error) {
	for _, f := range a.shown(c).of(c.Project) {
		for i := range f.Instances {
			if strings.EqualFold(f.Instances[i].ID, in.ID) {
				return f.Instances[i], nil
			}
		}
	}
	return nil, front.ErrNotExists()
}

type healthBody struct {
	FleetName   string  `json:"fleet_name" in:"required"`
	InstanceNum int32   `json:"instance_num" in:"required,ge=0"`
	After       *string `json:"after" in:"time"`
	Before      *string `json:"before" in:"time"`
	Limit       *int    `json:"limit" in:"ge=1,le=100"`
}

// healthChecks tells what is wrong with a node now: earlier looks are not kept.
func (a *Fleets) healthChecks(c *front.Call, in *healthBody) (any, error) {
	f := a.find(c, &getBody{Name: &in.FleetName})
	if f == nil {
		return nil, front.ErrNotExists()
	}
	at := slices.IndexFunc(f.Instances, func(i wire.Instance) bool { return i.InstanceNum == in.InstanceNum })
	if at < 0 {
		return nil, front.ErrNotExists()
	}
	now := wire.Time(a.Now(c.Snap))
	check := wire.HealthCheck{CollectedAt: now, Status: f.Instances[at].HealthStatus, Events: []wire.HealthEvent{}}
	if n, ok := c.Snap.Node(core.NodeName(f.Instances[at].Name)); ok {
		for _, x := range n.Faults {
			status := wire.HealthWarning
			if x.Drain {
				status = wire.HealthFailure
			}
			check.Events = append(check.Events, wire.HealthEvent{Timestamp: now, Status: status, Message: x.Text})
		}
	}
	return wire.HealthChecks{HealthChecks: []wire.HealthCheck{check}}, nil
}

// mustJSON is the JSON of our own types.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	core.Assert(err == nil, "our own types: %v", err)
	return data
}
