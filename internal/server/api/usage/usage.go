package usage

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// Usage answers reports of usage.
type Usage struct{ *call.Base }

// query is which jobs are asked for, in which time.
type query struct {
	start, end core.Time
	// Sets: there may be thousands of names, and each is compared with each job. Nil: any.
	ids        map[string]bool
	groups     map[uint32]bool
	nodes      map[string]bool
	partitions map[string]bool
}

// add puts a value into a set.
func add[T comparable](set *map[T]bool, value T) {
	if *set == nil {
		*set = map[T]bool{}
	}
	(*set)[value] = true
}

func setOf(list []string) (set map[string]bool) {
	for _, text := range list {
		add(&set, text)
	}
	return set
}

func parseQuery(q url.Values, now core.Time) (out query, err error) {
	start, err := call.Number(q.Get("start"), 0)
	if err != nil {
		return out, err
	}
	end, err := call.Number(q.Get("end"), int64(now))
	if err != nil {
		return out, err
	}
	out = query{
		start: core.Time(start), end: min(core.Time(end), now), ids: setOf(q["id"]), nodes: setOf(q["node"]),
		partitions: setOf(q["partition"]),
	}
	for _, g := range q["gid"] {
		n, err := strconv.ParseUint(g, 10, 32)
		if err != nil {
			return out, core.Errorf(core.Invalid, "gid: %q is no number of a group", g)
		}
		add(&out.groups, uint32(n))
	}
	return out, nil
}

// wants reports whether a job is one of those asked for.
func (q *query) wants(u *store.JobUsage, al *core.Alloc) bool {
	switch {
	case len(q.groups) > 0 && !q.groups[u.GID],
		len(q.partitions) > 0 && !q.partitions[string(al.Partition)],
		len(q.ids) > 0 && !q.named(u),
		len(q.nodes) > 0 && !slices.ContainsFunc(al.Nodes, func(n core.NodeAlloc) bool { return q.nodes[string(n.Node)] }):
		return false
	}
	return true
}

func (q *query) named(u *store.JobUsage) bool {
	id := strconv.FormatInt(int64(u.ID), 10)
	if a := u.Array; a != nil && q.ids[strconv.FormatInt(int64(a.Base), 10)] {
		return true
	}
	return q.ids[id]
}

// Show answers GET /usage.
func (a *Usage) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	now := a.Now(v.Snap)
	q, err := parseQuery(r.URL.Query(), now)
	if err != nil {
		return nil, err
	}
	done, err := a.Heavy(r.Context(), who)
	if err != nil {
		return nil, err
	}
	defer done()
	past, err := a.Store.PastReservations(r.Context(), q.start, q.end)
	if err != nil {
		return nil, call.StoreError(err)
	}
	sum := newSum(q, past)
	var u store.JobUsage
	for j := range v.Snap.Jobs() {
		u = store.JobUsage{
			ID: j.ID, User: j.Spec.User, Project: j.Spec.Project, State: j.State, Submit: j.Submit, Eligible: j.Eligible,
			Start: j.Start, End: j.End, PausedFor: int64(j.PausedFor), Array: j.Array, Alloc: j.Alloc, Earlier: j.Earlier,
			GID: j.Spec.GID, WCKey: j.Spec.More().WCKey,
		}
		if j.Paused != 0 && j.End == 0 { // it stands still since
			u.End = j.Paused
		}
		if j.State == core.Pending && !j.IsArray() && !j.Flags.Held() {
			sum.wait(j.Eligible, q.end, j.Spec.Shape.Tasks*max(1, j.Spec.Shape.CPUsPerTask))
		}
		sum.add(&u)
	}
	err = a.Store.Usage(r.Context(), q.start, q.end, func(u *store.JobUsage) {
		if _, live := v.Snap.Job(u.ID); !live {
			sum.add(u)
		}
	})
	if err != nil {
		return nil, call.StoreError(err)
	}
	sum.chargeIdle(v)
	out := &client.Usage{
		Now: now, Start: q.start, End: q.end, Rows: sum.list(v), Reservations: []client.ReservationUsage{},
	}
	if !v.SeesNodes() {
		return out, nil
	}
	list, err := a.outages(r.Context(), v, q.start, q.end)
	if err != nil {
		return nil, err
	}
	out.Reservations = sum.reservations(v, past)
	out.Cluster = sum.cluster(v, list, out.Reservations)
	return out, nil
}

// list gives the rows that the viewer sees, by project, user, WCKey and size.
func (s *sum) list(v *view.Viewer) []client.UsageRow {
	rows := make([]client.UsageRow, 0, len(s.rows))
	for k, x := range s.rows {
		if v.SeesUsage(k.user, k.project) {
			rows = append(rows, client.UsageRow{
				Project: k.project, User: k.user, WCKey: k.wckey, CPUs: max(0, k.cpus), Jobs: x.jobs, TRES: x.tres(),
			})
		}
	}
	slices.SortFunc(rows, func(a, b client.UsageRow) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User), cmp.Compare(a.WCKey, b.WCKey),
			cmp.Compare(a.CPUs, b.CPUs))
	})
	return rows
}
