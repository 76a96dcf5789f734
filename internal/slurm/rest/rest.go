package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// API answers calls. Its client acts for whoever the context of a call says.
type API struct {
	Client *client.Client
	Now    func() time.Time
	Group  func(gid uint32) string // its name; "": none
	// Changed is when jobs or nodes last changed; nil: it is not known.
	Changed func(what string) time.Time
}

// Call is one call of a client.
type Call struct {
	Context  context.Context
	Version  schema.Version
	Path     func(name string) string // the value of a {name} of the path
	Query    url.Values
	Body     any // decoded; nil: none
	User     string
	Endpoint *Endpoint

	api      *API
	warnings []schema.Note
	cluster  *client.Cluster
	broken   error // why a listing that is made while it is written is not whole
}

// Reply is an answer before it is written.
type Reply struct {
	Status   int
	Document schema.Document
	call     *Call // nil: the document is whole
}

// Failed gives the answer to give in place of one that turned out not to be whole while it was written; nil: it is
// whole.
func (r *Reply) Failed() *Reply {
	if r.call == nil || r.call.broken == nil {
		return nil
	}
	out := &Reply{Document: schema.Document{Version: r.Document.Version, Meta: r.Document.Meta}}
	out.fail(r.call, r.call.broken)
	out.Document.Body = schema.New(r.call.Endpoint.Reply)
	return out
}

// fail makes it the answer to an error.
func (r *Reply) fail(c *Call, err error) {
	r.Status = StatusOf(err)
	r.Document.Errors = ProblemsOf(err, c.Endpoint.Path)
}

// Endpoint is a line of the API's table.
type Endpoint struct {
	Method string
	Path   string // below the version: "/slurm/{version}/jobs"
	// From and To are the versions that have it; 0: all.
	From, To schema.Version
	Summary  string
	Query    []string
	Body     string // the object that is sent; empty: nothing
	Reply    string // the object of the answer
	Slash    bool   // the documented path ends with a slash; both forms are served
	handle   func(c *Call) (*schema.Record, error)
}

// In reports whether a version has the endpoint.
func (e *Endpoint) In(v schema.Version) bool {
	return (e.From == 0 || v >= e.From) && (e.To == 0 || v <= e.To)
}

// Database reports whether it is one of the accounting's.
func (e *Endpoint) Database() bool { return strings.HasPrefix(e.Path, "/slurmdb/") }

// Do answers a call of an endpoint.
func (a *API) Do(c *Call) *Reply {
	c.api = a
	out := &Reply{Status: http.StatusOK, call: c}
	body, err := (*schema.Record)(nil), c.checkQuery()
	if err == nil {
		body, err = c.Endpoint.handle(c)
	}
	if err != nil {
		out.fail(c, err)
		if body == nil {
			body = schema.New(c.Endpoint.Reply)
		}
	}
	out.Document.Version, out.Document.Body, out.Document.Warnings = c.Version, body, c.warnings
	out.Document.Meta = MetaOf(c.Endpoint.Database(), c.User)
	if info, err := c.info(); err == nil {
		out.Document.Meta.Release, out.Document.Meta.Cluster = info.SlurmVersion, info.Name
	}
	return out
}

// MetaOf is the head of an answer to a user.
func MetaOf(database bool, user string) schema.Meta {
	m := schema.Meta{
		Plugin: "openapi/slurmctld", PluginName: "Slurm OpenAPI slurmctld", Accounting: "accounting_storage/slurmdbd",
		User: user,
	}
	if database {
		m.Plugin, m.PluginName = "openapi/slurmdbd", "Slurm OpenAPI slurmdbd"
	}
	return m
}

// StatusOf is the HTTP status of an error. Slurm has 500 for everything that its controller refuses; here that is a
// fault of the caller with a status of its own.
func StatusOf(err error) int {
	switch core.CodeOf(err) {
	case core.Invalid:
		return http.StatusBadRequest
	case core.Unknown:
		return http.StatusUnauthorized
	case core.Denied:
		return http.StatusForbidden
	case core.NotFound, core.Gone:
		return http.StatusNotFound
	case core.Conflict:
		return http.StatusConflict
	case core.TooLarge:
		return http.StatusRequestEntityTooLarge
	case core.Exhausted:
		return http.StatusTooManyRequests
	case core.Unavailable:
		return http.StatusServiceUnavailable
	case core.Internal: // and errors that have no code
	}
	var p *problem
	if errors.As(err, &p) {
		return p.status
	}
	var c *slurm.Complaint
	if errors.As(err, &c) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// problem is an error with a number of Slurm's and a status.
type problem struct {
	status int
	list   []schema.Problem
}

func (p *problem) Error() string { return p.list[0].Error + ": " + p.list[0].Description }

// fail makes an error of one of Slurm's numbers, with its words and what is wrong.
func fail(status, number int, words, description string) error {
	return &problem{status, []schema.Problem{{Number: number, Error: words, Description: description}}}
}

// ProblemsOf is an error as answers tell it.
func ProblemsOf(err error, source string) []schema.Problem {
	var p *problem
	if errors.As(err, &p) {
		for i := range p.list {
			if p.list[i].Source == "" {
				p.list[i].Source = source
			}
		}
		return p.list
	}
	var c *slurm.Complaint
	if errors.As(err, &c) { // an option that a field stands for
		lines := make([]string, 0, len(c.Lines))
		for _, line := range c.Lines {
			lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "sbatch: "), "error: "))
		}
		return []schema.Problem{{
			Number: errno.Unspecified, Error: lines[len(lines)-1],
			Description: strings.TrimSuffix(strings.Join(lines, "; ")+"; "+c.Hint, "; "), Source: source,
		}}
	}
	return []schema.Problem{{
		Number: errno.Number(err), Error: slurm.ErrorText(err), Description: err.Error(), Source: source,
	}}
}

// info is the cluster, asked for once a call.
func (c *Call) info() (*client.Cluster, error) {
	if c.cluster == nil {
		info, err := c.api.Client.Cluster(c.Context)
		if err != nil {
			return nil, err
		}
		c.cluster = info
	}
	return c.cluster, nil
}

func (c *Call) records() (*report.RecordOptions, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	return &report.RecordOptions{Cluster: info.Name, Group: c.api.Group}, nil
}

// read reads the body as the endpoint's object. Unknown keys are warnings, as slurmrestd's.
func (c *Call) read() (schema.Input, error) {
	if c.Body == nil {
		return nil, fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing", "the request has no body")
	}
	in, warnings, faults := schema.Of(c.Endpoint.Body).Read(c.Body, c.Version)
	c.warnings = append(c.warnings, warnings...)
	if len(faults) == 0 {
		return in, nil
	}
	p := &problem{status: http.StatusBadRequest}
	for _, f := range faults {
		p.list = append(p.list, schema.Problem{
			Number: errno.Parsing, Error: "Failure during parsing", Description: f.Text, Source: f.Path,
		})
	}
	return nil, p
}

// checkQuery looks for parameters that the endpoint does not know. Of a listing they are warnings, as slurmrestd's.
// Anything else is refused: without a condition that was meant it would reach more than it should.
func (c *Call) checkQuery() error {
	for _, name := range slices.Sorted(maps.Keys(c.Query)) {
		switch text := fmt.Sprintf("unknown parameter %.80q", name); {
		case slices.Contains(c.Endpoint.Query, name):
		case c.Endpoint.Method != get:
			return fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing", text)
		case len(c.warnings) < maxWarnings:
			c.warnings = append(c.warnings, schema.Note{Path: c.Endpoint.Path, Text: "Ignoring " + text})
		}
	}
	return nil
}

// maxWarnings bounds how many parameters an answer warns of.
const maxWarnings = 100

// refuseUnknown refuses what is only warned of elsewhere: in a request that chooses what it acts on, a field that is
// not understood may be a condition.
func (c *Call) refuseUnknown() error {
	if len(c.warnings) == 0 {
		return nil
	}
	w := c.warnings[0]
	return &problem{http.StatusBadRequest, []schema.Problem{{
		Number: errno.Parsing, Error: "Failure during parsing", Source: w.Path,
		Description: strings.TrimPrefix(w.Text, "Ignoring "),
	}}}
}

// hosts expands host lists, which may have been split at the commas within them.
func hosts(name string, list []string) ([]string, error) {
	text := strings.Join(list, ",")
	names, err := cmd.Hosts(text)
	if err != nil || len(names) == 0 && text != "" {
		return nil, fail(http.StatusBadRequest, 2018, "Invalid node name specified", name+": "+strconv.Quote(text))
	}
	return names, nil
}

// unused warns of fields that were given and have no effect here.
func (c *Call) unused(path string, names ...string) {
	for _, n := range names {
		c.warnings = append(c.warnings, schema.Note{Path: path, Text: "field " + n + " has no effect here"})
	}
}

// unchanged refuses a listing that has not changed since the caller's last one, where update_time asks for that.
func (c *Call) unchanged(what string) error {
	text := c.Query.Get("update_time")
	if text == "" {
		return nil
	}
	since, ok := parseTime(text)
	if !ok {
		return fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing",
			"update_time: expected seconds since 1970, found "+text)
	}
	if c.api.Changed == nil || since.IsZero() {
		return nil
	}
	if last := c.api.Changed(what); !last.IsZero() && !last.After(since) {
		return fail(http.StatusNotModified, errno.Unchanged, "Data has not changed since time specified", what)
	}
	return nil
}

// parseTime reads seconds since 1970; 0 is no time.
func parseTime(text string) (time.Time, bool) {
	n, err := schema.ParseNumber(text)
	if err != nil || n.IsInfinite() {
		return time.Time{}, false
	}
	if n.Whole() == 0 {
		return time.Time{}, true
	}
	return time.Unix(n.Whole(), 0), true
}

// lastUpdate is what a listing says of when it was true.
func (c *Call) lastUpdate() schema.Number { return schema.Int(c.api.Now().Unix()) }
