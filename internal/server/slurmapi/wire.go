package slurmapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/rest"
	"bireme.dev/bireme/internal/slurm/schema"
)

// inside makes calls to the native routes within this process.
type inside struct{ native http.Handler }

// outerKey is where a call has the request that it is made for.
type outerKey struct{}

func withOuter(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, outerKey{}, r)
}

// RoundTrip implements http.RoundTripper.
func (t *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if outer, ok := r.Context().Value(outerKey{}).(*http.Request); ok {
		r.RemoteAddr = outer.RemoteAddr // for the audit log
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	t.native.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), Header: w.header,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// read reads and decodes the body of a call that has one.
func (a *API) read(e *rest.Endpoint, r *http.Request) (any, error) {
	if e.Body == "" {
		return nil, nil
	}
	jobs := &a.Settings().Jobs
	// Escaping may double a script; the limits themselves are checked on what it says.
	b, err := call.ReadBody(r, 2*int64(jobs.MaxScript)+2*int64(jobs.MaxEnv)+1<<20)
	if err != nil {
		return nil, err
	}
	defer call.PutBody(b)
	data := b.Bytes()
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	switch kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case strings.HasSuffix(kind, "yaml"):
		return readYAML(data)
	case r.Header.Get("Content-Type") != "" && (err != nil || !strings.HasSuffix(kind, "json")):
		return nil, core.Errorf(core.Invalid, "Content-Type: %.80q is neither application/json nor application/yaml",
			r.Header.Get("Content-Type")).Because(reasonMIME)
	}
	if err := call.CheckValues(data); err != nil {
		return nil, err
	}
	if jsontext.HasNUL(data) {
		return nil, call.ErrNUL()
	}
	return readJSON(data)
}

const reasonMIME = "unknown_mime_type"

func readJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc any
	err := dec.Decode(&doc)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one JSON value")
		}
	}
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the request is not JSON: %v", err).Because("bad_json")
	}
	return doc, nil
}

// maxYAML is how many bytes may begin a value of a YAML document: each value takes some hundred bytes while it is read.
const maxYAML = 1 << 16

// readYAML reads YAML by way of JSON, so that both have the same values. Aliases are not taken: a few bytes of them
// stand for any amount.
func readYAML(data []byte) (any, error) {
	marks := 0
	for _, c := range []byte("\n\r,[{:-?&*") {
		marks += bytes.Count(data, []byte{c})
	}
	if marks > maxYAML {
		return nil, core.Errorf(core.TooLarge, "the request has too many lines and values for YAML; send JSON").
			Because("request_too_large")
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, core.Errorf(core.Invalid, "the request is not YAML: %v", err).Because("bad_json")
	}
	if hasAlias(&node) {
		return nil, core.Errorf(core.Invalid, "the request has YAML aliases, which are not taken").Because("bad_json")
	}
	var doc any
	if err := node.Decode(&doc); err != nil {
		return nil, core.Errorf(core.Invalid, "the request is not YAML: %v", err).Because("bad_json")
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the request has YAML that JSON has no form for").Because("bad_json")
	}
	if jsontext.HasNUL(text) {
		return nil, call.ErrNUL()
	}
	if err := call.CheckValues(text); err != nil {
		return nil, err
	}
	return readJSON(text)
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// write writes an answer in the form that the caller accepts.
func (a *API) write(w http.ResponseWriter, r *http.Request, reply *rest.Reply) {
	if reply.Status == http.StatusNotModified {
		w.WriteHeader(reply.Status)
		return
	}
	begun := false
	kind := "application/json"
	sink := func(piece []byte) {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(reply.Status)
		}
		if _, err := w.Write(piece); err != nil {
			panic(http.ErrAbortHandler) // the caller has left: nobody wants the rest
		}
	}
	var rest []byte
	if wantsYAML(r) {
		kind = "application/yaml"
		y := &schema.YAML{Sink: sink}
		reply.Document.Write(y)
		rest = y.Out
	} else {
		j := &schema.JSON{Sink: sink}
		reply.Document.Write(j)
		rest = append(j.Out, '\n')
	}
	switch failed := reply.Failed(); {
	case failed != nil && begun:
		panic(http.ErrAbortHandler) // half a listing must not look like a whole one
	case failed != nil:
		a.write(w, r, failed)
	case begun:
		sink(rest)
	default:
		send(w, reply.Status, kind, rest)
	}
}

func send(w http.ResponseWriter, status int, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the caller may have left
}

// wantsYAML reports whether the caller accepts YAML and not JSON.
func wantsYAML(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "yaml") && !strings.Contains(accept, "json")
}

// fail answers with an error that came before a handler: who calls is not known, or a limit is reached.
func (a *API) fail(w http.ResponseWriter, r *http.Request, status int, e *core.Error) {
	p := schema.Problem{
		Number: errno.Number(e), Error: slurm.ErrorText(e), Description: e.Message, Source: r.URL.Path,
	}
	switch {
	case e.Code == core.Unknown:
		p.Error = "Protocol authentication error"
	case e.Reason == reasonMIME:
		status, p.Number, p.Error = http.StatusUnsupportedMediaType, errno.MIME,
			"MIME type is unknown to any loaded plugins"
	case p.Number == errno.Parsing:
		p.Error = "Failure during parsing"
	}
	a.refuse(w, r, status, p)
}

// refuse answers with a problem, in the version that the path names, or the newest.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, status int, p schema.Problem) {
	v, ok := versionOf(r)
	if !ok {
		v = schema.Newest
	}
	set := a.Settings()
	reply := &rest.Reply{Status: status, Document: schema.Document{
		Version: v, Meta: rest.MetaOf(strings.HasPrefix(r.URL.Path, "/slurmdb/"), ""), Errors: []schema.Problem{p},
	}}
	reply.Document.Meta.Release, reply.Document.Meta.Cluster = set.SlurmVersion, set.Cluster
	a.write(w, r, reply)
}

// NoRoute answers a call of a path, a version or a method that there is not.
func (a *API) NoRoute(w http.ResponseWriter, r *http.Request) {
	methods := a.methodsOf(r.URL.Path)
	if len(methods) > 0 && !slices.Contains(methods, r.Method) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		a.refuse(w, r, http.StatusMethodNotAllowed, schema.Problem{
			Number: errno.Path, Error: "Unable to resolve path", Source: r.URL.Path,
			Description: r.Method + " is not a method of this path; " + strings.Join(methods, ", ") + " are",
		})
		return
	}
	a.refuse(w, r, http.StatusNotFound, schema.Problem{
		Number: errno.Path, Error: "Unable to resolve path", Source: r.URL.Path,
		Description: "there is no " + r.Method + " " + r.URL.Path + "; versions are " + versionList(),
	})
}

// methodsOf are the methods of a path in the version that it names; none: there is no such path.
func (a *API) methodsOf(path string) (methods []string) {
	have := strings.Split(strings.Trim(path, "/"), "/")
	if len(have) < 2 {
		return nil
	}
	v, flags, ok := schema.Parse(have[1])
	if !ok || v == schema.Recorded || len(flags) > 0 {
		return nil
	}
	for i := range a.endpoints {
		e := &a.endpoints[i]
		want := strings.Split(strings.Trim(e.Path, "/"), "/")
		if len(want) != len(have) || !e.In(v) {
			continue
		}
		same := true
		for k := range want {
			same = same && (strings.HasPrefix(want[k], "{") || want[k] == have[k])
		}
		if same {
			methods = append(methods, e.Method)
		}
	}
	return methods
}

func versionList() string {
	var words []string
	for _, v := range schema.REST() {
		words = append(words, v.String())
	}
	return strings.Join(words, ", ")
}
