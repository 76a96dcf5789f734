package nodes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/hub"
)

// PartitionFunc changes a partition; a nil change removes it.
type PartitionFunc func(ctx context.Context, by core.Identity, name core.PartitionName,
	change *client.PartitionChange) error

// Nodes shows and changes nodes, partitions and licenses.
type Nodes struct {
	*call.Base
	Reservations *Reservations
	Hub          *hub.Hub
	Partition    PartitionFunc
}

// List lists nodes in the order in which they came.
func (a *Nodes) List(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	after, err := page.AfterNumber()
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	all, err := v.Nodes()
	if err != nil {
		return nil, err
	}
	view := a.nodeView(v)
	out := &client.NodeList{Nodes: []client.Node{}, Now: a.Now(v.Snap)}
	for n := range all {
		if int64(n.ID) > after {
			if out.Nodes = append(out.Nodes, view.show(n)); len(out.Nodes) > page.Limit {
				break
			}
		}
	}
	out.Nodes, out.Page = call.Cut(page, out.Nodes, func(n *client.Node) string { return fmt.Sprint(n.ID) })
	return out, nil
}

func (a *Nodes) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	n, err := v.Node(core.NodeName(r.PathValue("name")))
	if err != nil {
		return nil, err
	}
	out := a.nodeView(v).show(n)
	return &out, nil
}

// maxNodeEvents bounds an answer.
const maxNodeEvents = 1000

func (a *Nodes) NodeEvents(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	limit, err := call.Number(r.URL.Query().Get("limit"), 20)
	if err != nil || limit < 1 || limit > maxNodeEvents {
		return nil, core.Errorf(core.Invalid, "limit %q: expected a number from 1 to %d", r.URL.Query().Get("limit"),
			maxNodeEvents)
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	if _, err := v.Nodes(); err != nil {
		return nil, err
	}
	list, err := a.Store.NodeEvents(r.Context(), core.NodeName(r.PathValue("name")), int(limit))
	if err != nil {
		return nil, call.StoreError(err)
	}
	out := &client.EventList{Events: []core.Event{}}
	for i := range list {
		if v.SeesEvent(&list[i]) {
			out.Events = append(out.Events, list[i])
		}
	}
	return out, nil
}

func (a *Nodes) Update(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.UpdateNode
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	// the words may be in any case
	verb, next := core.NodeVerb(strings.ToLower(string(in.State))), core.NodeVerb(strings.ToLower(string(in.Next)))
	if strings.HasPrefix(string(verb), "reboot") && a.Settings().Reboot.Program == "" {
		return nil, core.Errorf(core.Conflict,
			"nodes cannot be restarted: the settings name no program for it (reboot.program; RebootProgram in slurm.conf)").
			Because("no_reboot_program")
	}
	if in.Strict && who.Admin { // others are refused by the engine
		if err := a.checkState(core.NodeName(r.PathValue("name")), verb); err != nil {
			return nil, err
		}
	}
	_, err := engine.Do(r.Context(), a.Engine, &state.UpdateNode{
		By: who.Identity, Node: core.NodeName(r.PathValue("name")), State: verb,
		Next: next, Reason: in.Reason, ResumeAfter: in.ResumeAfter, Change: in.Change,
	})
	if err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

// checkState refuses a state that makes no sense for a node as it is.
func (a *Nodes) checkState(name core.NodeName, verb core.NodeVerb) error {
	n, ok := a.Engine.Snapshot().Node(name)
	if !ok {
		return nil // the engine says so
	}
	power := &a.Settings().Power
	senseless := false
	switch verb {
	case core.VerbResume:
		senseless = n.Usable() && !n.Flags.Has(core.NodeReboot)
	case core.VerbPowerUp:
		senseless = !n.Flags.Any(core.Asleep | core.NodePowerDown)
	case core.VerbPowerDown, core.VerbPowerDownASAP, core.VerbPowerDownForce:
		senseless = power.SuspendProgram == "" && !n.Cloud
	default:
	}
	if senseless {
		return core.Errorf(core.Conflict, "node %s is in state %s: %s makes no sense", name, n.Flags,
			verb).Because("invalid_node_state")
	}
	return nil
}

// Remove forgets a node. With gone=1 the caller knows that nothing of it runs any more.
func (a *Nodes) Remove(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	q := r.URL.Query()
	reply, err := engine.Do(r.Context(), a.Engine, &state.RemoveNode{
		By: who.Identity, Node: core.NodeName(r.PathValue("name")), Drain: selection.IsSet(q.Get("drain")),
		Now: selection.IsSet(q.Get("now")), Gone: selection.IsSet(q.Get("gone")),
	})
	if err != nil {
		return nil, err
	}
	return &client.RemovedNode{Gone: reply.Gone}, nil
}

// nodeView is what showing nodes needs, computed once.
type nodeView struct {
	a          *Nodes
	who        *view.Viewer
	snap       *state.Snapshot
	uses       map[core.NodeName]*state.NodeUse
	completing map[core.NodeName]bool
	parts      []partView
	aside      map[core.NodeName]*aside
	planned    map[core.NodeName]bool   // promised to jobs that wait
	causes     map[core.NodeName]string // why hosts of fleets cannot be used
}

type partView struct {
	name core.PartitionName
	all  bool
	has  map[core.NodeName]bool
}

func (a *Nodes) nodeView(who *view.Viewer) *nodeView {
	snap := who.Snap
	v := &nodeView{
		a: a, who: who, snap: snap, uses: snap.Uses(), completing: map[core.NodeName]bool{},
		aside: a.Reservations.setAside(snap),
	}
	for _, p := range who.Partitions() {
		pv := partView{name: p.Name, all: strings.EqualFold(p.Nodes, "ALL"), has: map[core.NodeName]bool{}}
		if !pv.all && p.Nodes != core.NoNodes {
			names, err := hostlist.Expand(p.Nodes, 1<<20)
			core.Assert(err == nil, "partition %s was checked: %v", p.Name, err)
			for _, n := range names {
				pv.has[core.NodeName(n)] = true
			}
		}
		v.parts = append(v.parts, pv)
	}
	if p := a.Engine.Plan(); p != nil {
		v.planned = p.ReservedNodes()
	}
	v.causes = map[core.NodeName]string{}
	for _, f := range snap.Fleets() {
		for i := range f.Hosts {
			v.causes[f.Hosts[i].Node] = f.Hosts[i].Cause
		}
	}
	for _, u := range v.uses {
		for _, id := range u.Jobs {
			if j, ok := snap.Job(id); ok && j.Flags.Has(core.Completing) {
				for i := range j.Alloc.Nodes {
					if !j.Alloc.Nodes[i].Done {
						v.completing[j.Alloc.Nodes[i].Node] = true
					}
				}
			}
		}
	}
	return v
}

func (v *nodeView) show(n *core.Node) client.Node {
	live := v.a.Hub.Live(n.Name)
	out := client.Node{
		Node: *n, Connected: live.Connected, LastHeard: core.At(live.Heard), Load: live.Load, FreeMem: live.FreeMem,
		Skew: core.Seconds(live.Skew / time.Second), Partitions: []core.PartitionName{},
	}
	out.Pin = nil // see GET /ca
	if u := v.uses[n.Name]; u != nil {
		out.AllocCPUs, out.AllocMem, out.AllocGres, out.AllocUnits, out.Jobs = u.CPUs, u.Mem, u.Gres, u.Units,
			slices.Sorted(slices.Values(v.who.JobIDs(u.Jobs)))
	}
	for _, p := range v.parts {
		if p.all || p.has[n.Name] {
			out.Partitions = append(out.Partitions, p.name)
		}
	}
	out.State = v.stateOf(n, out.AllocCPUs).Slurm()
	if at := v.aside[n.Name]; at != nil {
		if _, err := v.who.Reservation(at.name); err == nil {
			out.Reservation = at.name
		}
	}
	var warn []string
	switch kind, lacks, _ := strings.Cut(n.Host.Containment, " without "); {
	case kind == "weak":
		warn = append(warn, "containment is weak: no cgroups; a hostile job may leave processes behind, and no limit is held")
	case kind == "pidns":
		warn = append(warn, "no cgroups: jobs are kept together by PID namespaces, but no limit is held")
	case lacks != "":
		warn = append(warn, "its cgroups hold no limits on "+lacks)
	}
	out.GPUs = live.Units
	warn = append(warn, ailing(n, live.Units)...)
	for _, f := range live.Faults {
		if !f.Drain { // what drains is its reason
			warn = append(warn, f.Text)
		}
	}
	if h := &v.a.Settings().Health; h.Skew == "warn" && live.Skew.Abs() > h.MaxSkew.D() {
		warn = append(warn, fmt.Sprintf("its clock is off by %s", live.Skew.Round(time.Second)))
	}
	if cause := v.causes[n.Name]; cause != "" {
		warn = append(warn, cause)
	}
	out.Warning = strings.Join(warn, "; ")
	return out
}

// stateOf is what a node's name depends on.
func (v *nodeView) stateOf(n *core.Node, cpus int32) core.NodeState {
	st := core.NodeState{
		Flags: n.Flags, CPUs: n.Hardware.CPUs, Alloc: cpus, Completing: v.completing[n.Name],
		Planned: v.planned[n.Name] && cpus == 0 && n.Usable(), Cloud: n.Cloud || n.Offer != "",
	}
	if at := v.aside[n.Name]; at != nil {
		st.Reserved = true
		if at.maint {
			st.Flags |= core.NodeMaint
		}
	}
	return st
}

// ailing words what is wrong with a node's units: those that are out of use, and those that warn.
func ailing(n *core.Node, units []core.UnitState) []string {
	var out []string
	if text := core.SickText(n.Hardware.Sick); text != "" && text != n.Reason {
		out = append(out, "out of use: "+text)
	}
	for _, u := range units {
		if u.Faults != "" && !n.Hardware.IsSick(u.Name, u.Index) {
			out = append(out, fmt.Sprintf("%s %d: %s", u.Name, u.Index, u.Faults))
		}
	}
	return out
}
