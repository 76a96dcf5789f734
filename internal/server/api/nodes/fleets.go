package nodes

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/backend/ssh"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/fleet"
)

// Fleets shows and changes fleets.
type Fleets struct {
	*call.Base
	Nodes     *Nodes
	Authority *ca.Authority
	Fleets    *fleet.Fleets
}

func (a *Fleets) List(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.FleetList{Fleets: []client.Fleet{}, Now: a.Now(v.Snap)}
	view := a.Nodes.nodeView(v)
	for _, f := range v.Snap.Fleets() { // by their names
		if len(out.Fleets) > page.Limit {
			break
		}
		if f.Name > page.After && f.SeenBy(who.Identity, v.Snap.Role(who.User, f.Project)) {
			out.Fleets = append(out.Fleets, a.showFleet(view, f))
		}
	}
	out.Fleets, out.Page = call.Cut(page, out.Fleets, func(f *client.Fleet) string { return f.Name })
	return out, nil
}

func (a *Fleets) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	f, ok := v.Snap.Fleet(r.PathValue("name"))
	if !ok || !f.SeenBy(who.Identity, v.Snap.Role(who.User, f.Project)) {
		return nil, core.Errorf(core.NotFound, "there is no fleet %q", r.PathValue("name")).Because("invalid_fleet")
	}
	out := a.showFleet(a.Nodes.nodeView(v), f)
	return &out, nil
}

func (a *Fleets) showFleet(v *nodeView, f *core.Fleet) client.Fleet {
	out := client.Fleet{
		Name: f.Name, Status: "active", Placement: f.Placement, Network: f.Network, Env: f.Env.Names,
		Project: f.Project, By: f.By, Created: f.Created, Instances: []client.FleetInstance{},
	}
	if f.Leaving {
		out.Status = "terminating"
	}
	if out.Placement == "" {
		out.Placement = core.PlaceAny
	}
	if !v.who.SeesUser(f.By) {
		out.By = ""
	}
	if !v.who.SeesNodes() && !v.who.Manages(f.Project) {
		return out
	}
	for i := range f.Hosts {
		out.Instances = append(out.Instances, a.showInstance(v, f, &f.Hosts[i]))
	}
	return out
}

func (a *Fleets) showInstance(v *nodeView, f *core.Fleet, h *core.FleetHost) client.FleetInstance {
	x := client.FleetInstance{
		Num: h.Num, Node: h.Node, Host: h.Login.User + "@" + h.Login.At(), HostKey: h.HostKey, Cause: h.Cause, Since: h.Since,
		Phase: a.Fleets.Phase(h.Node), Blocks: max(1, h.Blocks), Status: "pending",
	}
	if x.Phase == "" && h.Cause == "" && !h.Leaving && h.Runs != fleet.Runs(f, h) {
		x.Phase = "queued" // its agent is not run the way it is to be run, and nobody has begun to see to it
	}
	if h.Jump.Host != "" {
		x.Jump = h.Jump.User + "@" + h.Jump.At()
	}
	rec, ok := v.snap.Node(h.Node)
	if !ok {
		return x
	}
	n := v.show(rec)
	if rec.Blocks > 0 {
		x.Blocks, x.Busy = rec.Blocks, busyBlocks(&n)
	}
	x.Note = instanceNote(rec, &n, h)
	if x.Cause == "" && strings.HasPrefix(rec.Reason, state.Unsplit) {
		x.Cause, x.Note = rec.Reason, ""
	}
	x.State, x.Hardware, x.AllocCPUs, x.Version = n.State, n.Hardware, n.AllocCPUs, n.Host.Version
	st := v.stateOf(rec, n.AllocCPUs)
	if st.Making, st.Leaving = x.Phase != "" && h.Cause == "", h.Leaving; !n.Connected {
		st.Flags |= core.NodeSilent // who watches a fleet sees at once what listings of nodes forgive for two heartbeats
	}
	status, unreachable := st.Dstack()
	if x.Status = status; unreachable {
		x.Status = "unreachable"
	}
	return x
}

// instanceNote words what is not the fleet's doing: why the node takes no jobs, or whose alone.
func instanceNote(rec *core.Node, n *client.Node, h *core.FleetHost) string {
	var notes []string
	if rec.Reason != "" {
		notes = append(notes, rec.Reason)
	}
	if !rec.Host.Root && !rec.Flags.Has(core.NodeUnknown) {
		notes = append(notes, fmt.Sprintf("jobs of %s only: the user is not root there and has no sudo without a password",
			h.Login.User))
	}
	if n.Warning != "" && h.Cause == "" {
		notes = append(notes, n.Warning)
	}
	return strings.Join(notes, "; ")
}

func (a *Fleets) Put(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.FleetSpec
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	return a.Apply(r.Context(), who, r.PathValue("name"), &in, "")
}

// Apply makes a fleet as its user wants it. spec is what a client of dstack sent for it, without keys.
func (a *Fleets) Apply(ctx context.Context, who *call.Caller, name string, in *client.FleetSpec, spec string) (
	*core.FleetPlan, error,
) {
	if !who.Admin { // before keys are looked at
		return nil, core.Errorf(core.Denied, "only an administrator may change fleets").Because("access_denied")
	}
	f, err := a.fleetOf(name, in)
	if err != nil {
		return nil, err
	}
	f.Spec = spec
	plan, err := engine.Do(ctx, a.Engine, &state.PutFleet{By: who.Identity, Fleet: f, Force: in.Force, Dry: in.DryRun})
	if err == nil && !in.DryRun {
		a.Fleets.Retry(f.Name) // whoever applies a fleet again has mended something
	}
	return plan, err
}

// fleetOf checks what a user wants and seals the keys. All faults are told at once.
func (a *Fleets) fleetOf(name string, in *client.FleetSpec) (*core.Fleet, error) {
	f := &core.Fleet{Name: name, Project: in.Project, Placement: in.Placement}
	var faults []core.Fault
	bad := func(path, format string, args ...any) {
		faults = append(faults, core.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if !identity.ValidNode(core.NodeName(name)) {
		bad("name", "%q is not a valid fleet name", name)
	}
	if in.Placement != "" && in.Placement != core.PlaceAny && in.Placement != core.PlaceCluster {
		bad("placement", "%q is neither any nor cluster", in.Placement)
	}
	if in.Network != "" {
		if net, err := core.PrivateNetwork(in.Network); err != nil {
			bad("network", "%v", err)
		} else {
			f.Network = net.String()
		}
	}
	for _, v := range in.Env {
		if name, value, ok := strings.Cut(v, "="); !ok || !variable.MatchString(name) || strings.ContainsRune(value, 0) {
			bad("env", "%q is not NAME=VALUE", name)
		}
	}
	prints := map[string]string{}
	for name, text := range in.Keys {
		key, err := a.sealKey(text)
		if err != nil {
			bad("keys", "%s: %v", name, err)
			continue
		}
		prints[name] = key.Fingerprint
		f.Keys = append(f.Keys, *key)
	}
	slices.SortFunc(f.Keys, func(a, b core.FleetKey) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) })
	login := func(path string, l *client.SSHLogin) core.SSHLogin {
		switch {
		case l.Hostname == "" || strings.ContainsAny(l.Hostname, " \t\n/@"):
			bad(path+".hostname", "%q is not a host name or address", l.Hostname)
		case l.User == "":
			bad(path+".user", "must not be empty")
		case l.Port < 0 || l.Port > 65535:
			bad(path+".port", "%d is not a port", l.Port)
		case in.Keys[l.Key] == "":
			bad(path+".key", "%q is not one of the keys", l.Key)
		}
		return core.SSHLogin{Host: l.Hostname, Port: l.Port, User: l.User, Key: prints[l.Key]}
	}
	for i := range in.Hosts {
		h, path := &in.Hosts[i], fmt.Sprintf("hosts[%d]", i)
		x := core.FleetHost{Login: login(path, &h.SSHLogin), Addr: h.InternalIP, Blocks: h.Blocks}
		if h.Jump != nil {
			x.Jump = login(path+".proxy_jump", h.Jump)
		}
		if h.InternalIP != "" && in.Network != "" {
			bad(path+".internal_ip", "cannot be combined with the network of the fleet")
		}
		if h.Blocks < core.BlocksAuto {
			bad(path+".blocks", "%d: must be 1 or more", h.Blocks)
		}
		f.Hosts = append(f.Hosts, x)
	}
	if len(faults) > 0 {
		e := core.Errorf(core.Invalid, "fleet %s: %s: %s", name, faults[0].Path, faults[0].Message).Because("invalid_fleet")
		e.Faults = faults
		return nil, e
	}
	var err error
	f.Env, err = a.sealEnv(name, in.Env)
	return f, err
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// sealEnv seals the variables of a fleet's agents. Those that are as they were stay sealed as they were: that nothing
// has changed can be told without opening them.
func (a *Fleets) sealEnv(name string, env []string) (core.FleetEnv, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return core.FleetEnv{}, err
	}
	if old, ok := snap.Fleet(name); ok && old.Env.Sealed != "" {
		if was, err := fleet.OpenEnv(a.Authority, old); err == nil && slices.Equal(was, env) {
			return old.Env, nil
		}
	}
	return fleet.SealEnv(a.Authority, name, env)
}

func (a *Fleets) sealKey(text string) (*core.FleetKey, error) {
	signer, err := ssh.ParseKey([]byte(text))
	if err != nil {
		return nil, err
	}
	k := &core.FleetKey{Fingerprint: ssh.Fingerprint(signer.PublicKey()), Public: ssh.KeyLine(signer.PublicKey())}
	sealed, err := a.Authority.Seal(fleet.KeyName(k.Fingerprint), []byte(text))
	if err != nil {
		return nil, err
	}
	k.Sealed = base64.StdEncoding.EncodeToString(sealed)
	return k, nil
}

func (a *Fleets) Delete(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	nums, err := instances(r)
	if err != nil {
		return nil, err
	}
	in := &state.DropFleet{
		By: who.Identity, Name: r.PathValue("name"), Hosts: nums,
		Force: selection.IsSet(r.URL.Query().Get("force")),
	}
	if _, err := engine.Do(r.Context(), a.Engine, in); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *Fleets) Trust(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	nums, err := instances(r)
	if err != nil {
		return nil, err
	}
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.TrustFleet{By: who.Identity, Name: r.PathValue("name"), Hosts: nums}); err != nil {
		return nil, err
	}
	a.Fleets.Retry(r.PathValue("name"))
	return call.OK{}, nil
}

// instances reads the numbers of hosts in a query; nil: none is named.
func instances(r *http.Request) ([]int32, error) {
	var nums []int32
	for _, s := range r.URL.Query()["instance"] {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return nil, core.Errorf(core.Invalid, "instance: %q is not the number of one", s)
		}
		nums = append(nums, int32(n))
	}
	return nums, nil
}

// busyBlocks is how many blocks of a node are in use, in whole or in part.
func busyBlocks(n *client.Node) int32 {
	parts := func(used, all int64) int32 {
		if size := all / int64(n.Blocks); used > 0 && size > 0 {
			return int32((used + size - 1) / size)
		}
		return 0
	}
	busy := max(parts(int64(n.AllocCPUs), int64(n.Hardware.CPUs)), parts(int64(n.AllocMem), int64(n.Hardware.Memory)))
	for _, g := range n.Hardware.Gres {
		for _, u := range n.AllocGres {
			if g.Name == "gpu" && u.Name == g.Name && u.Type == g.Type {
				busy = max(busy, parts(u.Count, g.Count))
			}
		}
	}
	return min(busy, n.Blocks)
}

// InstanceView shows nodes as instances of fleets, to one viewer.
type InstanceView struct {
	a *Fleets
	v *nodeView
}

// Instances makes the view of one viewer.
func (a *Fleets) Instances(v *view.Viewer) *InstanceView {
	return &InstanceView{a, a.Nodes.nodeView(v)}
}

// Fleet is a fleet with its instances.
func (i *InstanceView) Fleet(f *core.Fleet) client.Fleet { return i.a.showFleet(i.v, f) }

// Node is a node that belongs to no fleet.
func (i *InstanceView) Node(n *core.Node) client.FleetInstance {
	shown := i.v.show(n)
	x := client.FleetInstance{
		Node: n.Name, Host: cmp.Or(n.Host.Hostname, string(n.Name)), Blocks: max(1, n.Blocks), Note: n.Reason,
		State: shown.State, Hardware: n.Hardware, AllocCPUs: shown.AllocCPUs, Version: n.Host.Version,
	}
	if n.Blocks > 0 {
		x.Busy = busyBlocks(&shown)
	} else if parts, err := n.Hardware.Split(core.BlocksAuto); err == nil {
		// Jobs share it by CPUs and GPUs: while some of it is in use, it is shown as what it could be split into.
		shown.Blocks = parts
		if busy := busyBlocks(&shown); busy > 0 && busy < parts {
			x.Blocks, x.Busy = parts, busy
		}
	}
	status, unreachable := i.v.stateOf(n, shown.AllocCPUs).Dstack()
	if x.Status = status; unreachable {
		x.Status = "unreachable"
	}
	return x
}

// OfPartition lists the nodes of a partition that belong to no fleet and run jobs.
func (i *InstanceView) OfPartition(name core.PartitionName) (list []*core.Node) {
	at := slices.IndexFunc(i.v.parts, func(p partView) bool { return p.name == name })
	if at < 0 || !i.v.who.SeesNodes() {
		return nil
	}
	part := &i.v.parts[at]
	all, err := i.v.who.Nodes()
	if err != nil {
		return nil
	}
	for n := range all {
		if (part.all || part.has[n.Name]) && n.Fleet == "" && !n.LoginOnly() {
			list = append(list, n)
		}
	}
	return list
}

// Env opens the variables of a fleet's agents.
func (a *Fleets) Env(f *core.Fleet) ([]string, error) {
	if f.Env.Sealed == "" {
		return nil, nil
	}
	return fleet.OpenEnv(a.Authority, f)
}
