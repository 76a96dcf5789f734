package api

import (
	"errors"
	"net"
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// handler answers a call of somebody. It returns the answer, or an error; nil, nil means that it has answered itself.
type handler func(w http.ResponseWriter, r *http.Request, who *caller) (any, error)

// route is one row of the API.
type route struct {
	method, path string
	summary      string
	handle       handler
	open         bool     // no identity is asked for
	query        []string // names of query parameters
	body         any      // zero value of what is sent; nil: nothing
	reply        any      // zero value of the answer; nil: none; a string: a content type
	native       bool     // under /api/v1; false: the agents' side, not in the document
	right        right    // what a caller's token must allow; see rights.go
	lasts        lasting  // how long its answer takes
	local        bool     // no identity is asked for where the API listens on loopback only
	audit        auditing // what the audit log calls it; see audit.go
}

// lasting says how long an answer takes and what it counts as.
type lasting uint8

const (
	short     lasting = iota
	download          // as long as its reader takes; with follow=1 it is a stream that follows a log
	streaming         // until its caller leaves
)

const (
	base   = "/api/v1"
	octets = "application/octet-stream"
)

var jobQuery = []string{"view", "id", "user", "project", "partition", "state", "name", "node", "run", "history", "since", "until", "limit", "after", "newest"}

// table lists every route.
func (a *API) table() []route {
	native := []route{
		{method: "GET", path: "/ping", summary: "Is the server there?", handle: a.cluster.ping, open: true, reply: pingBody{}},
		{method: "GET", path: "/openapi.json", summary: "This document", handle: a.openapi, local: true, reply: map[string]any{}},
		{method: "GET", path: "/cluster", summary: "The cluster, its partitions and settings", handle: a.cluster.cluster, reply: client.Cluster{}},
		{method: "POST", path: "/reconfigure", summary: "Read the config file again and take it over, all of it or nothing", handle: a.cluster.reconfigure, body: client.Reconfigure{}, reply: client.Reconfigured{}},
		{method: "GET", path: "/ca", summary: "The certificate authority to trust, and how far its replacement is", handle: a.cluster.showCA, reply: client.CA{}},
		{method: "POST", path: "/ca/rotate", summary: "Take the next step of replacing the certificate authority", handle: a.cluster.rotateCA, body: client.RotateCA{}, reply: client.CA{}},
		{method: "GET", path: "/seals", summary: "The key that seals secrets in the store, and how far its rotation is", handle: a.cluster.showSeals, reply: client.Seals{}},
		{method: "POST", path: "/seals/rotate", summary: "Seal everything in the store with a new key, beside what else happens", handle: a.cluster.rotateSeals, reply: client.Seals{}},
		{method: "GET", path: "/whoami", summary: "Who the caller is", handle: a.cluster.whoami, reply: client.Whoami{}},

		{method: "POST", path: "/jobs", summary: "Submit a job or an array", handle: a.submissions.submit, body: client.Submit{}, reply: client.Submitted{}},
		{method: "POST", path: "/jobs/try", summary: "When and where a job would start; nothing is submitted", handle: a.submissions.try, body: client.Submit{}, reply: client.Trials{}},
		{method: "GET", path: "/jobs", summary: "List jobs, in pages: while more is true, ask again with after= the answer's next", handle: a.jobs.jobs, query: jobQuery, reply: client.JobList{}},
		{method: "POST", path: "/jobs/cancel", summary: "End or signal all jobs that match", handle: a.control.cancelJobs, body: client.Cancel{}, reply: client.Cancelled{}},
		{method: "GET", path: "/jobs/{id}", summary: "One job, or an array and its started tasks", query: []string{"after"}, handle: a.jobs.job, reply: client.JobList{}},
		{method: "PATCH", path: "/jobs/{id}", summary: "Change, hold, release, requeue, suspend or resume a job", handle: a.control.updateJob, body: client.Update{}, reply: okBody{}},
		{method: "GET", path: "/jobs/{id}/script", summary: "The job's script", handle: a.jobs.script, reply: octets},
		{method: "GET", path: "/jobs/{id}/env", summary: "The job's environment, NUL-separated", handle: a.jobs.env, reply: octets},
		{method: "GET", path: "/jobs/{id}/why", summary: "Why a job waits, or how it ended", handle: a.jobs.why, reply: client.Why{}},
		{method: "GET", path: "/jobs/{id}/metrics", summary: "What the job used of CPUs, memory and GPUs, moment by moment", handle: a.jobs.jobMetrics, query: []string{"attempt"}, reply: client.Metrics{}},
		{method: "GET", path: "/jobs/{id}/logs", summary: "The job's output", handle: a.streams.jobLogs, lasts: download, query: []string{"offset", "follow", "attempt"}, reply: octets},
		{method: "GET", path: "/jobs/{id}/steps", summary: "The job's steps", handle: a.steps.steps, reply: client.StepList{}},
		{method: "POST", path: "/jobs/{id}/steps", summary: "Make a step in a running job", handle: a.steps.newStep, body: client.NewStep{}, reply: client.StepMade{}},
		{method: "POST", path: "/jobs/{id}/release", summary: "Give an interactive allocation back", handle: a.control.release, body: client.Release{}, reply: okBody{}},
		{method: "GET", path: "/jobs/{id}/steps/{step}/attach", summary: "Watch a running step's streams (Upgrade: bireme-stream)", handle: a.streams.attachStep, lasts: streaming, reply: octets},
		{method: "GET", path: "/jobs/{id}/steps/{step}/resume", summary: "srun's end of a step's streams, after the server was away (Upgrade: bireme-stream)", handle: a.streams.resumeStep, lasts: streaming, query: []string{"key", "owns"}, reply: octets},
		{method: "GET", path: "/streams/{key}", summary: "srun's end of a step's streams (Upgrade: bireme-stream)", handle: a.streams.srunStream, lasts: streaming, reply: octets},

		{method: "GET", path: "/nodes", summary: "List nodes", handle: a.nodes.nodes, reply: client.NodeList{}},
		{method: "GET", path: "/nodes/{name}", summary: "One node", handle: a.nodes.node, reply: client.Node{}},
		{method: "GET", path: "/nodes/{name}/events", summary: "The last events of a node, oldest first (limit=N)", handle: a.nodes.nodeEvents, reply: client.EventList{}},
		{method: "DELETE", path: "/nodes/{name}", summary: "Forget a node (drain=1: when its jobs have ended; now=1: end them)", handle: a.nodes.removeNode, reply: client.RemovedNode{}},
		{method: "PATCH", path: "/nodes/{name}", summary: "Drain, resume or take down a node", handle: a.nodes.updateNode, body: client.UpdateNode{}, reply: okBody{}},
		{method: "PATCH", path: "/partitions/{name}", summary: "Make or change a partition, until the config file is read again", handle: a.nodes.changePartition, body: client.PartitionChange{}, reply: okBody{}},
		{method: "DELETE", path: "/partitions/{name}", summary: "Remove a partition, until the config file is read again", handle: a.nodes.dropPartition, reply: okBody{}},
		{method: "POST", path: "/join", summary: "Trade a one-time token for a node's certificate", handle: a.identity.join, open: true, body: client.Join{}, reply: client.Joined{}},
		{method: "POST", path: "/renew", summary: "Give a node that shows its key a new certificate", handle: a.identity.renew, open: true, body: client.Renew{}, reply: client.Joined{}},

		{method: "GET", path: "/watch", summary: "Events as they happen, from a sequence number on", handle: a.events.watchEvents, lasts: streaming, query: []string{"after"}, reply: "text/event-stream"},

		{method: "GET", path: "/audit", summary: "The audit log, newest entries first; while more is true, ask again with before=SEQ of the last", handle: a.cluster.auditLog, query: []string{"user", "token", "action", "object", "answer", "since", "until", "before", "limit"}, reply: client.AuditList{}},
		{method: "GET", path: "/tokens", summary: "List tokens", handle: a.tokens.tokens, reply: client.TokenList{}},
		{method: "POST", path: "/tokens", summary: "Make a token", handle: a.tokens.newToken, body: client.NewToken{}, reply: client.NewTokenMade{}},
		{method: "POST", path: "/tokens/{id}/rotate", summary: "Give a token another secret", handle: a.tokens.rotateToken, body: client.RotateToken{}, reply: client.NewTokenMade{}},
		{method: "DELETE", path: "/tokens/{id}", summary: "Revoke a token, or the node that joined with it", handle: a.tokens.revokeToken, reply: okBody{}},
		{method: "GET", path: "/users", summary: "List users", handle: a.people.users, reply: client.UserList{}},
		{method: "POST", path: "/users", summary: "Add a user", handle: a.people.newUser, body: core.User{}, reply: client.UserPut{}},
		{method: "GET", path: "/users/{name}", summary: "One user", handle: a.people.user, reply: core.User{}},
		{method: "PATCH", path: "/users/{name}", summary: "Change a user", handle: a.people.updateUser, body: core.User{}, reply: core.User{}},
		{method: "GET", path: "/projects", summary: "List projects", handle: a.people.projects, reply: client.ProjectList{}},
		{method: "POST", path: "/projects", summary: "Add a project", handle: a.people.newProject, body: core.Project{}, reply: core.Project{}},
		{method: "PATCH", path: "/projects/{project}", summary: "Change a project's parent, shares, limits and QOS", handle: a.people.updateProject, body: projectBody{}, reply: okBody{}},
		{method: "DELETE", path: "/projects/{project}", summary: "Remove a project that nothing needs", handle: a.people.dropProject, reply: okBody{}},
		{method: "GET", path: "/policy", summary: "Every QOS, and the tree of projects with their limits and members", handle: a.people.policy, reply: core.Policy{}},
		{method: "PUT", path: "/policy", summary: "Replace what a policy names, all of it or nothing", handle: a.people.applyPolicy, body: client.ApplyPolicy{}, reply: core.PolicyDiff{}},
		{method: "GET", path: "/qos", summary: "List qualities of service", handle: a.people.listQOS, reply: client.QOSList{}},
		{method: "PUT", path: "/qos/{name}", summary: "Make or replace a QOS", handle: a.people.putQOS, body: core.QOS{}, reply: okBody{}},
		{method: "DELETE", path: "/qos/{name}", summary: "Remove a QOS that nothing names", handle: a.people.dropQOS, reply: okBody{}},
		{method: "GET", path: "/reservations", summary: "List advance reservations", handle: a.reservations.reservations, reply: client.ReservationList{}},
		{method: "POST", path: "/reservations", summary: "Make an advance reservation", handle: a.reservations.newReservation, body: client.NewReservation{}, reply: client.Reservation{}},
		{method: "GET", path: "/reservations/{name}", summary: "One advance reservation", handle: a.reservations.reservation, reply: client.Reservation{}},
		{method: "PATCH", path: "/reservations/{name}", summary: "Change an advance reservation", handle: a.reservations.updateReservation, body: core.ReservationChange{}, reply: client.Reservation{}},
		{method: "DELETE", path: "/reservations/{name}", summary: "Remove an advance reservation", handle: a.reservations.dropReservation, reply: okBody{}},
		{method: "GET", path: "/fleets", summary: "List fleets", handle: a.fleets.fleets, reply: client.FleetList{}},
		{method: "GET", path: "/fleets/{name}", summary: "One fleet", handle: a.fleets.fleet, reply: client.Fleet{}},
		{method: "PUT", path: "/fleets/{name}", summary: "Make a fleet, or change one in place; with dry_run only tell what would change", handle: a.fleets.putFleet, body: client.FleetSpec{}, reply: core.FleetPlan{}},
		{method: "DELETE", path: "/fleets/{name}", summary: "Delete a fleet, or some of its instances", handle: a.fleets.dropFleet, query: []string{"instance", "force"}, reply: okBody{}},
		{method: "POST", path: "/fleets/{name}/trust", summary: "Forget the host keys of a fleet: the next ones shown are kept", handle: a.fleets.trustFleet, query: []string{"instance"}, reply: okBody{}},
		{method: "GET", path: "/plan", summary: "The last plan: what nodes it wishes for", handle: a.nodes.plan, reply: client.Plan{}},
		{method: "GET", path: "/licenses", summary: "Licences, and what is in use of them", handle: a.nodes.licenses, reply: client.LicenseList{}},
		{method: "PUT", path: "/projects/{project}/members/{user}", summary: "Set a member's role; an empty one removes", handle: a.people.putMember, body: memberBody{}, reply: okBody{}},

		{method: "GET", path: "/runs", summary: "List runs, newest first", handle: a.jobs.runs, query: []string{"project", "name", "limit"}, reply: client.RunList{}},
		{method: "POST", path: "/runs/{name}/stop", summary: "Stop a run", handle: a.jobs.stopRun, query: []string{"project"}, reply: okBody{}},
	}
	for i := range native {
		native[i].path = base + native[i].path
		native[i].native = true
	}
	return withRights(append(native,
		route{method: "GET", path: "/agent/v1/connect", handle: a.streams.agentConnect, open: true},
		route{method: "GET", path: "/agent/v1/streams/{key}", handle: a.streams.stepStream, open: true},
		route{method: "GET", path: "/metrics", handle: a.metrics.serveMetrics, local: true},
		route{method: "GET", path: "/metrics/dcgm", handle: a.metrics.serveDCGM, local: true},
		route{method: "GET", path: "/debug/pprof/{what...}", handle: a.cluster.profile, lasts: download},
	))
}

func (a *API) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range a.routes {
		rt := &a.routes[i]
		count := a.metrics.route(rt)
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) { a.serve(rt, count, w, r) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, core.Errorf(core.NotFound, "there is no %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// serve answers one call: identity, handler, answer.
func (a *API) serve(rt *route, count *routeCount, rw http.ResponseWriter, r *http.Request) {
	var who *caller
	var err error
	w := &answer{ResponseWriter: rw}
	defer func() {
		if p := recover(); p != nil {
			a.recovered(w, r, who, p)
		}
	}()
	if r.ContentLength != 0 {
		// net/http asks its own body whether a rest was left unread: then it waits a moment before it closes the
		// connection, so that a peer that still sends gets the answer and not an error.
		req, body := r, r.Body
		defer func() { req.Body = body }()
		w.body = timedBody{body, w}
		r.Body = &w.body
	}
	defer w.held.release()
	if who, err = a.letIn(rt, w, r); err == nil && w.isStream {
		ctx, leave := a.open.open(r.Context(), who, a.adminByRecord(who.user), a.keyOf(who.Node))
		defer leave()
		w.ctx, r = ctx, r.WithContext(ctx)
	}
	who = a.begin(rt, r, who)
	if err == nil {
		err = a.allow(rt, r, who)
	}
	var out any
	if why := a.Engine.ReadOnly(); err == nil && why != "" && rt.method != "GET" {
		err = core.Errorf(core.Unavailable, "nothing can be recorded now: %s; try again", why)
	}
	if err == nil {
		out, err = rt.handle(w, r, who)
	}
	err = a.mask(who, a.end(rt, r, who, err))
	count.add(err)
	switch {
	case err != nil && !errors.Is(err, errAnswered):
		a.fail(w, r, err)
	case out != nil:
		writeJSON(w, http.StatusOK, out)
	}
}

// letIn finds out who calls and counts the call.
func (a *API) letIn(rt *route, w *answer, r *http.Request) (*caller, error) {
	w.long = rt.lasts != short
	if rt.open || rt.local && a.onLoopback(r) {
		if rt.native || rt.local { // agents show a certificate, which their handlers look at
			return nil, a.admitUnknown(r)
		}
		return nil, nil
	}
	who, err := a.identity.identify(r)
	if err != nil {
		if code := core.CodeOf(err); code == core.Unknown || code == core.Denied {
			if much := a.admitUnknown(r); much != nil {
				err = much
			}
		}
		return nil, err
	}
	a.Conns.Known(r.Context())
	follower := rt.lasts == download && isSet(r.URL.Query().Get("follow"))
	w.isStream = rt.lasts == streaming || follower
	return who, a.admit(w, r, who, follower)
}

// onLoopback tells whether the API can be reached from this host only, and the call came that way.
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

// errAnswered is returned by handlers that failed after their answer had begun; the caller sees a cut stream.
var errAnswered = errors.New("answer begun")
