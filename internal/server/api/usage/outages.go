package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/view"
)

// outOf are the flags of a node that is not in service, asleep those of one that was put to sleep.
const (
	outOf  = core.NodeDown | core.NodeDrain | core.NodeSilent | core.NodeFailFlag
	asleep = core.NodePoweredDown | core.NodePoweringDown
)

// ShowOutages answers GET /outages.
func (a *Usage) ShowOutages(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	if _, err := v.Nodes(); err != nil {
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
	list, err := a.outages(r.Context(), v, q.start, q.end)
	if err != nil {
		return nil, err
	}
	out := &client.OutageList{Now: now, Outages: []client.Outage{}}
	for i := range list {
		out.Outages = append(out.Outages, list[i].Outage)
	}
	return out, nil
}

// outage is a time that a node was not in service, or asleep.
type outage struct {
	client.Outage
	asleep bool
}

// status is what an event says of a node.
type status struct {
	Flags  core.NodeFlag `json:"flags"`
	State  string        `json:"state"`
	Reason string        `json:"reason"`
	Gone   bool          `json:"gone"`
}

// outages lists the times before end in which nodes were not in service and which had not ended at start. What happened
// before the oldest event that is kept is not known: nodes were in service then, unless they are not now.
func (a *Usage) outages(ctx context.Context, v *view.Viewer, start, end core.Time) (out []outage, err error) {
	open := map[core.NodeName]*outage{}
	seen := map[core.NodeName]bool{}
	closed := func(o *outage, at core.Time) {
		if o.End = at; at > start && at > o.Start {
			out = append(out, *o)
		}
	}
	err = a.Store.NodeHistory(ctx, end, func(e *core.Event) {
		var st status
		if (e.Kind != core.NodeChanged && e.Kind != core.NodeJoined) || json.Unmarshal(e.Data, &st) != nil {
			return
		}
		seen[e.Node] = true
		o := open[e.Node]
		is := !st.Gone && (st.Flags.Any(outOf) || st.Flags.Any(asleep))
		if o != nil && is && o.State == st.State && o.Reason == st.Reason {
			return
		}
		if o != nil {
			closed(o, e.At)
			delete(open, e.Node)
		}
		if is {
			open[e.Node] = &outage{
				client.Outage{Node: e.Node, Start: e.At, State: st.State, Reason: st.Reason, By: e.By}, !st.Flags.Any(outOf),
			}
		}
	})
	if err != nil {
		return nil, call.StoreError(err)
	}
	for _, o := range open {
		out = append(out, *o)
	}
	for n := range v.Snap.Nodes() {
		if !seen[n.Name] && n.Joined != 0 && (n.Flags.Any(outOf) || n.Flags.Any(asleep)) {
			since := cmp.Or(n.SilentSince, n.ReasonAt, n.Joined)
			if since < end {
				out = append(out, outage{client.Outage{
					Node: n.Name, Start: since, State: n.Flags.String(), Reason: n.Reason, By: n.ReasonBy,
				}, !n.Flags.Any(outOf)})
			}
		}
	}
	slices.SortFunc(out, func(a, b outage) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(string(a.Node), string(b.Node)))
	})
	return out, nil
}

// cluster adds up what became of the time of the nodes there are.
func (s *sum) cluster(v *view.Viewer, list []outage, reservations []client.ReservationUsage) client.ClusterUsage {
	var capacity, reported, down, planned amounts
	for n := range v.Snap.Nodes() {
		if n.LoginOnly() || n.Flags.Has(core.NodeFuture) {
			continue
		}
		capacity.addNode(n, 1)
		if n.Joined != 0 {
			reported.addNode(n, float64(s.q.overlap(n.Joined, s.q.end)))
		}
	}
	for i := range list {
		o := &list[i]
		n, ok := v.Snap.Node(o.Node)
		if !ok {
			continue
		}
		until := o.End
		if until == 0 {
			until = s.q.end
		}
		micros := float64(s.q.overlap(max(o.Start, n.Joined), until))
		if o.asleep {
			planned.addNode(n, micros)
		} else {
			down.addNode(n, micros)
		}
	}
	out := client.ClusterUsage{Capacity: capacity.per(1), Reported: reported.tres(), Down: down.tres()}
	out.Allocated, out.PlannedDown = s.allocated.tres(), planned.tres()
	for i := range reservations {
		r := &reservations[i]
		idle := r.Total.Plus(r.Used, -1)
		if r.Flags&core.ReserveMaint != 0 {
			out.PlannedDown = out.PlannedDown.Plus(idle, 1)
		} else {
			out.Allocated = out.Allocated.Plus(idle, 1)
		}
	}
	free := out.Reported.Count("cpu") - out.Allocated.Count("cpu") - out.Down.Count("cpu") - out.PlannedDown.Count("cpu")
	if n := min(round(s.waited/perSecond), free); n > 0 {
		out.Planned = core.TRESOf(core.Amount{Name: "cpu", Count: n})
	}
	return out
}
