package call

import (
	"errors"
	"net/http"

	"bireme.dev/bireme/internal/core"
)

// Handler answers a call of somebody. It returns the answer, or an error; nil, nil means that it has answered itself.
type Handler func(w http.ResponseWriter, r *http.Request, who *Caller) (any, error)

// Route is one row of the API.
type Route struct {
	Method, Path string
	Summary      string
	Handle       Handler
	Open         bool     // no identity is asked for
	Query        []string // names of query parameters
	Body         any      // zero value of what is sent; nil: nothing
	Reply        any      // zero value of the answer; nil: none; a string: a content type
	Native       bool     // under /api/v1; false: the agents' side, not in the document
	Right        Right    // what a caller's token must allow; see rights.go
	Lasts        lasting  // how long its answer takes
	Local        bool     // no identity is asked for where the API listens on loopback only
	Audit        Auditing // what the audit log calls it; see audit.go
	Reads        bool     // it changes nothing, though its method is not GET
	// Fail answers with an error in the words of a foreign protocol; nil: in those of /api/v1. Status is what /api/v1
	// answers.
	Fail func(w http.ResponseWriter, r *http.Request, status int, e *core.Error)
}

// lasting says how long an answer takes and what it counts as.
type lasting uint8

const (
	Short     lasting = iota
	Download          // as long as its reader takes; with follow=1 it is a stream that follows a log
	Streaming         // until its caller leaves
)

// ErrAnswered is returned by handlers that failed after their answer had begun; the caller sees a cut stream.
var ErrAnswered = errors.New("answer begun")

// Right is what a route asks of a caller's token. Callers without one (a local socket, a node's word) have every scope.
type Right struct {
	Scope core.Scope
	// within says how a token that is limited to one project is kept to it. The zero value refuses such tokens.
	Within within
}

// within is how a route keeps a token to its project.
type within int

const (
	Refused  within = iota // it is about more than jobs and runs
	Harmless               // it shows nothing of any project, or the key in its path is proof enough
	ByJob                  // the job in the path must be of the project
	ByQuery                // the query's project is the token's
	ByEngine               // the engine compares each job with the token's project
	ByPath                 // the project in the path is the token's
)

// Key is a route's name in the tables of rights and of the audit log.
func (rt *Route) Key() string {
	path := rt.Path
	if rt.Native {
		path = path[len(Prefix):]
	}
	return rt.Method + " " + path
}

// Auditing is what a route is in the audit log.
type Auditing struct {
	Action string
	Object string // with {names} of the path
	When   auditWhen
	Body   bool // what is sent is told: it holds no secrets
}

// auditWhen is which calls of a route are told.
type auditWhen int

const (
	Others auditWhen = iota // refusals, and what was done to another's things: one's own work is in events and history
	Always                  // all calls: acts of administrators, changes of policy, tokens
)

const (
	Prefix = "/api/v1"
	Octets = "application/octet-stream"
)
