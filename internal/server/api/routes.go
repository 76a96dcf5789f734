package api

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/cluster"
	"bireme.dev/bireme/internal/server/api/metrics"
	"bireme.dev/bireme/internal/server/api/people"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/pass"
	"bireme.dev/bireme/internal/server/slurmapi"
)

var jobQuery = []string{
	"view", "id", "user", "project", "partition", "state", "name", "node", "run", "history",
	"since", "until", "limit", "after", "newest", "leave_deleted",
}

// table lists every route.
func (a *API) table() []call.Route {
	native := []call.Route{
		{
			Method: "GET", Path: "/ping", Summary: "Is the server there?", Handle: a.cluster.Ping, Open: true,
			Reply: cluster.PingBody{},
		},
		{
			Method: "GET", Path: "/openapi.json", Summary: "This document", Handle: a.openapi, Local: true,
			Reply: map[string]any{},
		},
		{
			Method: "GET", Path: "/cluster", Summary: "The cluster, its partitions and settings", Handle: a.cluster.Show,
			Reply: client.Cluster{},
		},
		{
			Method: "GET", Path: "/servers", Summary: "The servers of the cluster: who leads, how far the others are behind",
			Handle: a.cluster.Servers, Reply: client.ServerList{},
		},
		{
			Method: "POST", Path: "/servers/stepdown", Summary: "Have the server that leads let another one lead",
			Handle: a.cluster.StepDownNow, Reply: call.OK{},
		},
		{
			Method: "POST", Path: "/reconfigure", Summary: "Read the config file again and take it over, all of it or nothing",
			Handle: a.cluster.Reconfigure, Body: client.Reconfigure{}, Reply: client.Reconfigured{},
		},
		{
			Method: "GET", Path: "/ca", Summary: "The certificate authority to trust, and how far its replacement is",
			Handle: a.cluster.ShowCA, Reply: client.CA{},
		},
		{
			Method: "POST", Path: "/ca/rotate", Summary: "Take the next step of replacing the certificate authority",
			Handle: a.cluster.RotateCA, Body: client.RotateCA{}, Reply: client.CA{},
		},
		{
			Method: "GET", Path: "/seals", Summary: "The key that seals secrets in the store, and how far its rotation is",
			Handle: a.cluster.ShowSeals, Reply: client.Seals{},
		},
		{
			Method: "POST", Path: "/seals/rotate",
			Summary: "Seal everything in the store with a new key, beside what else happens", Handle: a.cluster.RotateSeals,
			Reply: client.Seals{},
		},
		{Method: "GET", Path: "/diag", Summary: "How the server fares", Handle: a.diag.Show, Reply: client.Diag{}},
		{
			Method: "POST", Path: "/diag/reset", Summary: "Have the figures of /diag count from now on",
			Handle: a.diag.Reset, Reply: call.OK{},
		},
		{Method: "GET", Path: "/whoami", Summary: "Who the caller is", Handle: a.cluster.Whoami, Reply: client.Whoami{}},

		{
			Method: "POST", Path: "/jobs", Summary: "Submit a job or an array", Handle: a.submissions.Submit,
			Body: client.Submit{}, Reply: client.Submitted{},
		},
		{
			Method: "POST", Path: "/jobs/try", Summary: "When and where a job would start; nothing is submitted",
			Handle: a.submissions.Try, Body: client.Submit{}, Reply: client.Trials{},
		},
		{
			Method: "GET", Path: "/jobs",
			Summary: "List jobs, in pages: while more is true, ask again with after= the answer's next", Handle: a.jobs.List,
			Query: jobQuery, Reply: client.JobList{},
		},
		{
			Method: "GET", Path: "/priorities", Summary: "What the priorities of waiting jobs are made of, in pages",
			Handle: a.jobs.Priorities, Query: []string{"id", "user", "project", "partition", "limit", "after"},
			Reply: client.PriorityList{},
		},
		{
			Method: "POST", Path: "/jobs/cancel", Summary: "End or signal all jobs that match", Handle: a.control.CancelJobs,
			Body: client.Cancel{}, Reply: client.Cancelled{},
		},
		{
			Method: "GET", Path: "/jobs/{id}", Summary: "One job, or an array and its started tasks", Query: []string{"after"},
			Handle: a.jobs.Show, Reply: client.JobList{},
		},
		{
			Method: "PATCH", Path: "/jobs/{id}", Summary: "Change, hold, release, requeue, suspend or resume a job",
			Handle: a.control.UpdateJob, Body: client.Update{}, Reply: call.OK{},
		},
		{Method: "GET", Path: "/jobs/{id}/script", Summary: "The job's script", Handle: a.jobs.Script, Reply: call.Octets},
		{
			Method: "GET", Path: "/jobs/{id}/env", Summary: "The job's environment, NUL-separated", Handle: a.jobs.Env,
			Reply: call.Octets,
		},
		{
			Method: "GET", Path: "/jobs/{id}/why", Summary: "Why a job waits, or how it ended", Handle: a.jobs.Why,
			Reply: client.Why{},
		},
		{
			Method: "GET", Path: "/jobs/{id}/metrics", Summary: "What the job used of CPUs, memory and GPUs, moment by moment",
			Handle: a.jobs.JobMetrics, Query: []string{"attempt"}, Reply: client.Metrics{},
		},
		{
			Method: "GET", Path: "/jobs/{id}/logs", Summary: "The job's output", Handle: a.streams.JobLogs,
			Lasts: call.Download, Query: []string{"offset", "follow", "attempt"}, Reply: call.Octets,
		},
		{Method: "GET", Path: "/jobs/{id}/steps", Summary: "The job's steps", Handle: a.steps.List, Reply: client.StepList{}},
		{
			Method: "POST", Path: "/jobs/{id}/steps", Summary: "Make a step in a running job", Handle: a.steps.Create,
			Body: client.NewStep{}, Reply: client.StepMade{},
		},
		{
			Method: "PATCH", Path: "/jobs/{id}/steps/{step}", Summary: "Change the time limit of a step, or of all",
			Handle: a.steps.Update, Body: client.UpdateStep{}, Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/jobs/{id}/steps/{step}/usage", Summary: "What a running step uses, task by task",
			Handle: a.steps.Usage, Reply: client.StepUsage{},
		},
		{
			Method: "POST", Path: "/jobs/{id}/release", Summary: "Give an interactive allocation back",
			Handle: a.control.Release, Body: client.Release{}, Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/jobs/{id}/steps/{step}/attach",
			Summary: "Watch a running step's streams (Upgrade: bireme-stream)", Handle: a.streams.AttachStep,
			Lasts: call.Streaming, Reply: call.Octets,
		},
		{
			Method: "GET", Path: "/jobs/{id}/steps/{step}/resume",
			Summary: "srun's end of a step's streams, after the server was away (Upgrade: bireme-stream)",
			Handle:  a.streams.ResumeStep, Lasts: call.Streaming, Query: []string{"key", "owns"}, Reply: call.Octets,
		},
		{
			Method: "GET", Path: "/streams/{key}", Summary: "srun's end of a step's streams (Upgrade: bireme-stream)",
			Handle: a.streams.SrunStream, Lasts: call.Streaming, Reply: call.Octets,
		},

		{
			Method: "GET", Path: "/nodes", Summary: "List nodes", Handle: a.nodes.List, Query: call.PageQuery,
			Reply: client.NodeList{},
		},
		{Method: "GET", Path: "/nodes/{name}", Summary: "One node", Handle: a.nodes.Show, Reply: client.Node{}},
		{
			Method: "GET", Path: "/nodes/{name}/events", Summary: "The last events of a node, oldest first (limit=N)",
			Handle: a.nodes.NodeEvents, Reply: client.EventList{},
		},
		{
			Method: "DELETE", Path: "/nodes/{name}",
			Summary: "Forget a node (drain=1: when its jobs have ended; now=1: end them)", Handle: a.nodes.Remove,
			Reply: client.RemovedNode{},
		},
		{
			Method: "PATCH", Path: "/nodes/{name}", Summary: "Drain, resume or take down a node", Handle: a.nodes.Update,
			Body: client.UpdateNode{}, Reply: call.OK{},
		},
		{
			Method: "PATCH", Path: "/partitions/{name}",
			Summary: "Make or change a partition, until the config file is read again", Handle: a.nodes.ChangePartition,
			Body: client.PartitionChange{}, Reply: call.OK{},
		},
		{
			Method: "DELETE", Path: "/partitions/{name}", Summary: "Remove a partition, until the config file is read again",
			Handle: a.nodes.DropPartition, Reply: call.OK{},
		},
		{
			Method: "POST", Path: "/join", Summary: "Trade a one-time token for a node's certificate", Handle: a.identity.Join,
			Open: true, Body: client.Join{}, Reply: client.Joined{},
		},
		{
			Method: "POST", Path: "/renew", Summary: "Give a node that shows its key a new certificate",
			Handle: a.identity.Renew, Open: true, Body: client.Renew{}, Reply: client.Joined{},
		},

		{
			Method: "GET", Path: "/watch", Summary: "Events as they happen, from a sequence number on",
			Handle: a.events.WatchEvents, Lasts: call.Streaming, Query: []string{"after"}, Reply: "text/event-stream",
		},

		{
			Method: "GET", Path: "/audit",
			Summary: "The audit log, newest entries first; while more is true, ask again with before=SEQ of the last",
			Handle:  a.cluster.AuditLog, Query: []string{
				"user", "token", "action", "object", "answer", "since", "until",
				"before", "limit",
			}, Reply: client.AuditList{},
		},
		{
			Method: "GET", Path: "/tokens", Summary: "List tokens", Handle: a.tokens.List, Query: call.PageQuery,
			Reply: client.TokenList{},
		},
		{
			Method: "POST", Path: "/tokens", Summary: "Make a token", Handle: a.tokens.Create, Body: client.NewToken{},
			Reply: client.NewTokenMade{},
		},
		{
			Method: "POST", Path: "/tokens/jwt", Summary: "Make a JWT for Slurm's REST API", Handle: a.jwt.Create,
			Body: client.NewJWT{}, Reply: client.JWT{},
		},
		{
			Method: "POST", Path: "/tokens/jwt/revoke", Summary: "Revoke a user's JWTs, all that were made until now",
			Handle: a.jwt.Revoke, Body: client.RevokeJWTs{}, Reply: call.OK{},
		},
		{
			Method: "POST", Path: "/tokens/{id}/rotate", Summary: "Give a token another secret", Handle: a.tokens.Rotate,
			Body: client.RotateToken{}, Reply: client.NewTokenMade{},
		},
		{
			Method: "DELETE", Path: "/tokens/{id}", Summary: "Revoke a token, or the node that joined with it",
			Handle: a.tokens.Revoke, Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/users", Summary: "List users", Handle: a.people.Users, Query: call.PageQuery,
			Reply: client.UserList{},
		},
		{
			Method: "POST", Path: "/users", Summary: "Add a user", Handle: a.people.NewUser, Body: core.User{},
			Reply: client.UserPut{},
		},
		{Method: "GET", Path: "/users/{name}", Summary: "One user", Handle: a.people.User, Reply: core.User{}},
		{
			Method: "PATCH", Path: "/users/{name}", Summary: "Change a user", Handle: a.people.UpdateUser, Body: core.User{},
			Reply: core.User{},
		},
		{
			Method: "GET", Path: "/shares", Summary: "What is each project's and user's share, what they used, and their factor",
			Handle: a.people.Shares, Query: call.PageQuery, Reply: client.ShareList{},
		},
		{
			Method: "GET", Path: "/usage",
			Summary: "What was used of the cluster between two moments (microseconds since 1970), by whom",
			Handle:  a.usage.Show, Query: []string{"start", "end", "id", "gid", "node", "partition"}, Reply: client.Usage{},
		},
		{
			Method: "POST", Path: "/history", Summary: "Take over ended jobs, steps and usage of another system",
			Handle: a.history.Take, Body: client.TakeHistory{}, Reply: client.HistoryTaken{},
		},
		{
			Method: "GET", Path: "/outages", Summary: "When nodes were not in service", Handle: a.usage.ShowOutages,
			Query: []string{"start", "end"}, Reply: client.OutageList{},
		},
		{
			Method: "DELETE", Path: "/users/{name}", Summary: "Delete a user who has no unfinished job",
			Handle: a.people.DropUser, Reply: call.OK{},
		},
		{
			Method: "POST", Path: "/users/{name}/take", Summary: "Take over a user's token and keys of another server",
			Handle: a.takeover.Take, Body: client.TakeUser{}, Reply: client.UserTaken{},
		},
		{
			Method: "GET", Path: "/projects", Summary: "List projects", Handle: a.people.Projects, Query: call.PageQuery,
			Reply: client.ProjectList{},
		},
		{
			Method: "POST", Path: "/projects", Summary: "Add a project", Handle: a.people.NewProject, Body: core.Project{},
			Reply: core.Project{},
		},
		{
			Method: "GET", Path: "/projects/{project}/secrets", Summary: "The secrets of a project, without their values",
			Handle: a.secrets.List, Reply: client.SecretList{},
		},
		{
			Method: "GET", Path: "/projects/{project}/secrets/{name}", Summary: "A secret with its value",
			Handle: a.secrets.Show, Reply: client.Secret{},
		},
		{
			Method: "PUT", Path: "/projects/{project}/secrets/{name}", Summary: "Make a secret, or give it another value",
			Handle: a.secrets.Set, Body: client.SecretValue{}, Reply: call.OK{},
		},
		{
			Method: "DELETE", Path: "/projects/{project}/secrets/{name}", Summary: "Delete a secret",
			Handle: a.secrets.Delete, Reply: call.OK{},
		},
		{
			Method: "PATCH", Path: "/projects/{project}", Summary: "Change a project's parent, shares, limits and QOS",
			Handle: a.people.UpdateProject, Body: people.ProjectBody{}, Reply: call.OK{},
		},
		{
			Method: "DELETE", Path: "/projects/{project}", Summary: "Remove a project that nothing needs",
			Handle: a.people.DropProject, Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/policy", Summary: "Every QOS, and the tree of projects with their limits and members",
			Handle: a.people.Policy, Query: call.PageQuery, Reply: client.PolicyList{},
		},
		{
			Method: "PUT", Path: "/policy", Summary: "Replace what a policy names, all of it or nothing",
			Handle: a.people.ApplyPolicy, Body: client.ApplyPolicy{}, Reply: core.PolicyDiff{},
		},
		{
			Method: "GET", Path: "/qos", Summary: "List qualities of service", Handle: a.people.ListQOS,
			Query: call.PageQuery, Reply: client.QOSList{},
		},
		{
			Method: "PUT", Path: "/qos/{name}", Summary: "Make or replace a QOS", Handle: a.people.PutQOS, Body: core.QOS{},
			Reply: call.OK{},
		},
		{
			Method: "DELETE", Path: "/qos/{name}", Summary: "Remove a QOS that nothing names", Handle: a.people.DropQOS,
			Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/triggers", Summary: "List triggers", Handle: a.triggers.List, Reply: client.TriggerList{},
		},
		{
			Method: "POST", Path: "/triggers", Summary: "Have a program run on the server when something has happened",
			Handle: a.triggers.Set, Body: client.Trigger{}, Reply: client.Trigger{},
		},
		{
			Method: "POST", Path: "/triggers/clear", Summary: "Remove triggers", Handle: a.triggers.Clear,
			Body: client.ClearTriggers{}, Reply: client.TriggersCleared{},
		},
		{
			Method: "GET", Path: "/reservations", Summary: "List advance reservations", Handle: a.reservations.List,
			Query: call.PageQuery, Reply: client.ReservationList{},
		},
		{
			Method: "POST", Path: "/reservations", Summary: "Make an advance reservation", Handle: a.reservations.Create,
			Body: client.NewReservation{}, Reply: client.Reservation{},
		},
		{
			Method: "GET", Path: "/reservations/{name}", Summary: "One advance reservation", Handle: a.reservations.Show,
			Reply: client.Reservation{},
		},
		{
			Method: "PATCH", Path: "/reservations/{name}", Summary: "Change an advance reservation",
			Handle: a.reservations.Update, Body: core.ReservationChange{}, Reply: client.Reservation{},
		},
		{
			Method: "DELETE", Path: "/reservations/{name}", Summary: "Remove an advance reservation",
			Handle: a.reservations.Delete, Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/fleets", Summary: "List fleets", Handle: a.fleets.List, Query: call.PageQuery,
			Reply: client.FleetList{},
		},
		{Method: "GET", Path: "/fleets/{name}", Summary: "One fleet", Handle: a.fleets.Show, Reply: client.Fleet{}},
		{
			Method: "PUT", Path: "/fleets/{name}",
			Summary: "Make a fleet, or change one in place; with dry_run only tell what would change", Handle: a.fleets.Put,
			Body: client.FleetSpec{}, Reply: core.FleetPlan{},
		},
		{
			Method: "DELETE", Path: "/fleets/{name}", Summary: "Delete a fleet, or some of its instances",
			Handle: a.fleets.Delete, Query: []string{"instance", "force"}, Reply: call.OK{},
		},
		{
			Method: "POST", Path: "/fleets/{name}/trust",
			Summary: "Forget the host keys of a fleet: the next ones shown are kept", Handle: a.fleets.Trust,
			Query: []string{"instance"}, Reply: call.OK{},
		},
		{
			Method: "GET", Path: "/plan", Summary: "The last plan: what nodes it wishes for", Handle: a.nodes.Plan,
			Reply: client.Plan{},
		},
		{
			Method: "GET", Path: "/licenses", Summary: "Licenses, and what is in use of them", Handle: a.nodes.Licenses,
			Reply: client.LicenseList{},
		},
		{
			Method: "PUT", Path: "/projects/{project}/members/{user}", Summary: "Set a member's role; an empty one removes",
			Handle: a.people.PutMember, Body: people.MemberBody{}, Reply: call.OK{},
		},

		{
			Method: "GET", Path: "/runs", Summary: "List runs, newest first", Handle: a.jobs.Runs,
			Query: []string{"project", "name", "limit"}, Reply: client.RunList{},
		},
		{
			Method: "POST", Path: "/runs/{name}/stop", Summary: "Stop a run", Handle: a.jobs.StopRun,
			Query: []string{"project"}, Reply: call.OK{},
		},
	}
	for i := range native {
		native[i].Path = call.Prefix + native[i].Path
		native[i].Native = true
	}
	return withRights(append(native,
		call.Route{Method: "GET", Path: "/agent/v1/connect", Handle: a.streams.AgentConnect, Open: true},
		call.Route{Method: "GET", Path: "/agent/v1/streams/{key}", Handle: a.streams.StepStream, Open: true},
		call.Route{Method: "GET", Path: "/agent/v1/services/{token}", Handle: a.serviceStream, Open: true},
		call.Route{Method: "GET", Path: "/metrics", Handle: a.metrics.ServeMetrics, Local: true},
		call.Route{Method: "GET", Path: "/metrics/dcgm", Handle: a.metrics.ServeDCGM, Local: true},
		call.Route{Method: "GET", Path: "/debug/pprof/{what...}", Handle: a.cluster.Profile, Lasts: call.Download},
	))
}

func (a *API) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range a.routes {
		rt := &a.routes[i]
		count := a.metrics.Route(rt)
		mux.HandleFunc(rt.Method+" "+rt.Path, func(w http.ResponseWriter, r *http.Request) { a.serve(rt, count, w, r) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, call.Prefix+"/") {
			front.NoRoute(w, r)
			return
		}
		if slurmapi.Serves(r.URL.Path) {
			a.slurm.NoRoute(w, r)
			return
		}
		a.fail(w, r, nil, core.Errorf(core.NotFound, "there is no %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// serve answers one call: identity, handler, answer.
func (a *API) serve(rt *call.Route, count *metrics.RouteCount, rw http.ResponseWriter, r *http.Request) {
	var who *call.Caller
	var err error
	w := &call.Answer{ResponseWriter: rw}
	defer func() {
		if p := recover(); p != nil {
			a.recovered(w, r, who, p)
		}
	}()
	if a.isPassed(rt, r) {
		if _, between := pass.Of(r); between { // it takes us for the leader; passed on again, nobody knew who calls
			a.fail(w, r, nil, notLeading())
			return
		}
		a.pass.ServeHTTP(rw, r)
		return
	}
	if r.ContentLength != 0 {
		// net/http asks its own body whether a rest was left unread: then it waits a moment before it closes the
		// connection, so that a peer that still sends gets the answer and not an error.
		req, body := r, r.Body
		defer func() { req.Body = body }()
		w.Body = call.TimedBody{ReadCloser: body, Writer: w}
		r.Body = &w.Body
	}
	defer w.Held.Release()
	if a.pass != nil {
		switch {
		case strings.HasPrefix(rt.Path, "/agent/"):
			err = notLeading()
		case a.Engine.Copy.Behind() > maxBehind: // who may see what has changed since
			err = core.Errorf(core.Unavailable, "this server has not reached the database for %v; try another one",
				maxBehind).Because(pass.NotLeading)
		default:
			err = a.awaitCopy(r)
		}
	}
	if err == nil {
		who, err = a.letIn(rt, w, r)
		if a.isForLeader(r, err) { // somebody who is new here: only the leader can note them
			a.pass.ServeHTTP(rw, r)
			return
		}
	}
	if err == nil && w.IsStream {
		ctx, leave := a.Open.Open(r.Context(), who, a.AdminByRecord(who.UserRecord), a.KeyOf(who.Node))
		defer leave()
		w.Ctx, r = ctx, r.WithContext(ctx)
	}
	who = a.Begin(rt, r, who)
	if err == nil {
		err = a.allow(rt, r, who)
	}
	var out any
	writes := rt.Method != http.MethodGet && !rt.Reads
	if err == nil && writes {
		err = a.mayWrite()
	}
	began := time.Now()
	if err == nil {
		out, err = rt.Handle(w, r, who)
	}
	err = a.Mask(who, a.End(rt, r, who, err))
	count.Add(err)
	a.diag.Called(rt, who, time.Since(began))
	switch {
	case err != nil && !errors.Is(err, call.ErrAnswered):
		a.fail(w, r, rt, err)
	case out != nil:
		if snap := a.Engine.Snapshot(); writes && snap != nil { // it was published before this call was answered
			w.Header().Set(pass.SeqHeader, strconv.FormatInt(snap.Seq(), 10))
		}
		call.WriteJSON(w, http.StatusOK, out)
	}
}

// mayWrite refuses what could not be recorded now. Nothing was done then.
func (a *API) mayWrite() error {
	why := a.Engine.ReadOnly()
	switch {
	case !a.Engine.HoldsLease():
		return notLeading()
	case why != "":
		return core.Errorf(core.Unavailable, "nothing can be recorded now: %s; try again", why)
	}
	return nil
}

// letIn finds out who calls and counts the call.
func (a *API) letIn(rt *call.Route, w *call.Answer, r *http.Request) (*call.Caller, error) {
	w.Long = rt.Lasts != call.Short
	if rt.Open || rt.Local && a.onLoopback(r) {
		if rt.Native || rt.Local || rt.Fail != nil { // agents show a certificate, which their handlers look at
			return nil, a.AdmitUnknown(r)
		}
		return nil, nil
	}
	if who := call.CallerOf(r.Context()); who != nil { // it was identified, and counted, by the call that makes this one
		return who, nil
	}
	who, err := a.identity.Identify(r)
	if err != nil {
		if code := core.CodeOf(err); code == core.Unknown || code == core.Denied {
			if much := a.AdmitUnknown(r); much != nil {
				err = much
			}
		}
		return nil, err
	}
	a.Conns.Known(r.Context())
	follower := rt.Lasts == call.Download && selection.IsSet(r.URL.Query().Get("follow"))
	w.IsStream = rt.Lasts == call.Streaming || follower
	return who, a.Admit(w, r, who, follower)
}

// onLoopback reports whether the API can be reached from this host only, and the call came that way.
func (a *API) onLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	if _, unix := at.(*net.UnixAddr); unix {
		return true
	}
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return false
	}
	host, _, err := net.SplitHostPort(a.Config.Server.Listen)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
