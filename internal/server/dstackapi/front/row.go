package front

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/dstack/wire/input"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// Call is one call of a client.
type Call struct {
	*call.Caller // of public routes: one without a user
	W            http.ResponseWriter
	R            *http.Request
	Version      wire.Version
	Snap         *state.Snapshot
	Project      *core.Project // nil where the path has none
	Role         core.Role     // the caller's in Project
}

// Context ends with the call.
func (c *Call) Context() context.Context { return c.R.Context() }

// Token is the secret that the call came with.
func (c *Call) Token() string {
	_, secret, _ := strings.Cut(c.R.Header.Get("Authorization"), " ")
	return secret
}

// Handler answers a call: with a value that becomes the JSON of the answer (nil: null), or an error.
type Handler func(c *Call) (any, error)

// Row is a line of the table of routes.
type Row struct {
	Method string // empty: POST
	Path   string // {project} is the project's name
	Level  Level
	Scope  core.Scope // what a token must allow; empty: read
	// Everywhere lets tokens in that are limited to a project, where the path has none: the handler keeps to the project.
	Everywhere bool
	Action     string // in the audit log; empty: the call changes nothing
	Object     string // " with {names} of the path
	Quiet      bool   // of an Action: only refusals are told, as of one's own jobs
	Long       bool   // an upload or a download that takes as long as its peer does
	Handle     Handler
}

// Frame makes routes of rows.
type Frame struct{ *call.Base }

// Route makes the route of a row.
func (f *Frame) Route(row Row) call.Route {
	rt := call.Route{
		Method: row.Method, Path: row.Path, Open: row.Level == Public, Fail: Fail, Reads: row.Action == "",
		Audit: call.Auditing{Action: row.Action, Object: row.Object, When: call.Always},
		Handle: func(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
			return f.serve(&row, w, r, who)
		},
	}
	if rt.Method == "" {
		rt.Method = http.MethodPost
	}
	if row.Long {
		rt.Lasts = call.Download
	}
	if row.Action == "" || row.Quiet {
		rt.Audit.When = call.Others
	}
	if rt.Open {
		return rt
	}
	rt.Right.Scope = row.Scope
	if row.Scope == "" {
		rt.Right.Scope = core.ScopeRead
	}
	switch {
	case strings.Contains(row.Path, "{project}"):
		rt.Right.Within = call.ByPath
	case row.Everywhere:
		rt.Right.Within = call.Harmless
	}
	return rt
}

// nativePrefix is where native commands make the same calls: agents pass on what is below /api/v1.
const nativePrefix = call.Prefix + "/dstack"

// NativeRoute makes the route of a row for native commands. Its errors are those of the native API.
func (f *Frame) NativeRoute(row Row) call.Route {
	rt := f.Route(row)
	rt.Path, rt.Fail = nativePrefix+strings.TrimPrefix(row.Path, "/api"), nil
	return rt
}

func (f *Frame) serve(row *Row, w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	snap, err := f.Snapshot()
	if err != nil {
		return nil, err
	}
	c := &Call{Caller: who, W: w, R: r, Snap: snap}
	if who == nil {
		c.Caller = &call.Caller{}
	}
	if c.Version, err = wire.ParseVersion(r.Header.Get("X-API-VERSION")); err != nil {
		return nil, core.Errorf(core.Invalid, "%v", err).Because(reasonVersion)
	}
	if c.Version.Incompatible() {
		return nil, Errorf("The client/CLI version (%s) is incompatible with the server version (%s).", c.Version,
			wire.Speaks)
	}
	if err := c.admit(row.Level); err != nil {
		return nil, err
	}
	out, err := row.Handle(c)
	if out == nil && err == nil {
		out = nothing{}
	}
	return out, err
}

// nothing is the answer of calls that have nothing to say.
type nothing struct{}

func (nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// NoBody makes a handler of one that reads no body. What a client sends is passed over.
func NoBody(h func(c *Call) (any, error)) Handler { return h }

// Body makes a handler of one that needs a body.
func Body[B any](h func(c *Call, in *B) (any, error)) Handler {
	return func(c *Call) (any, error) { return readBody(c, h, false) }
}

// OptionalBody makes a handler of one whose body may be absent: it is then read as {}.
func OptionalBody[B any](h func(c *Call, in *B) (any, error)) Handler {
	return func(c *Call) (any, error) { return readBody(c, h, true) }
}

func readBody[B any](c *Call, h func(c *Call, in *B) (any, error), optional bool) (any, error) {
	b, err := call.ReadBody(c.R, call.MaxBody)
	if err != nil {
		return nil, err
	}
	defer call.PutBody(b)
	data := b.Bytes()
	if len(data) == 0 && optional {
		data = []byte("{}")
	}
	if err := call.CheckValues(data); err != nil {
		return nil, err
	}
	if jsontext.HasNUL(data) {
		return nil, call.ErrNUL()
	}
	in := new(B)
	faults, unknown := input.Read(data, in)
	if len(unknown) > 0 && (c.Version.Newer() || c.Version.IsNewest()) {
		return nil, errUnknownKey(c.Version, unknown)
	}
	if faults = append(faults, unknown...); len(faults) > 0 {
		return nil, ErrInvalid(faults)
	}
	return h(c, in)
}

// errUnknownKey refuses what a newer client asks for and this server does not know, with both versions.
func errUnknownKey(v wire.Version, unknown wire.Invalid) error {
	path := make([]string, 0, len(unknown[0].Loc))
	for _, part := range unknown[0].Loc[1:] {
		path = append(path, fmt.Sprint(part))
	}
	return Errorf("The server speaks the API of dstack %s and does not know %q, which the client (version %s) sends: "+
		"leave it out, or use a client of version %s", wire.Speaks, strings.Join(path, "."), v, wire.Speaks)
}
