package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// maxBody bounds bodies of calls other than submissions.
const maxBody = 8 << 20

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is the largest buffer that goes back to the pool.
const maxKept = 256 << 10

// announced bounds the memory that a body gets before its bytes have come: the buffer grows with those beyond it.
const announced = 64 << 10

// readBody reads at most limit bytes into a pooled buffer; give it back with putBody.
func readBody(r *http.Request, limit int64) (*bytes.Buffer, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if t, ok := r.Body.(*timedBody); ok {
		size := r.ContentLength
		if size < 0 {
			size = limit
		}
		if err := t.w.held.reserve(size); err != nil {
			return nil, err
		}
		awaitBody(t.w.ResponseWriter, r, limit)
	}
	b := bodies.Get().(*bytes.Buffer)
	b.Reset()
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, announced)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		putBody(b)
		return nil, &core.Error{Code: core.Invalid, Message: "the request could not be read to its end", Err: err}
	case n > limit:
		putBody(b)
		return nil, tooLarge(limit)
	}
	return b, nil
}

func putBody(b *bytes.Buffer) {
	if b.Cap() <= maxKept {
		bodies.Put(b)
	}
}

func tooLarge(limit int64) error {
	return core.Errorf(core.TooLarge, "the request is larger than the %d bytes this server takes", limit).Because("request_too_large")
}

// decode reads a JSON body into v.
func decode(r *http.Request, v any) error {
	b, err := readBody(r, maxBody)
	if err != nil {
		return err
	}
	defer putBody(b)
	if jsontext.HasNUL(b.Bytes()) {
		return errNUL()
	}
	return unmarshal(b.Bytes(), v)
}

// errNUL refuses a text that holds a NUL character: it cannot be given to a program, and a job's prolog that could
// not be told its name would count as failed, and its node as broken.
func errNUL() error {
	return core.Errorf(core.Invalid, "a text of the request holds a NUL byte").Because("bad_json")
}

// unmarshal reads JSON and words its faults with line and column.
func unmarshal(data []byte, v any) error {
	err := strictly(data, v)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	e := core.Errorf(core.Invalid, "the request is not the JSON expected here").Because("bad_json")
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		e.Message = "the request has no body; JSON is expected"
	case errors.As(err, &syntax):
		e.Faults = []core.Fault{{Path: position(data, syntax.Offset), Message: syntax.Error()}}
	case errors.As(err, &kind):
		path := position(data, kind.Offset)
		if kind.Field != "" {
			path += ": " + kind.Field
		}
		e.Faults = []core.Fault{{Path: path, Message: fmt.Sprintf("a JSON %s does not fit here", kind.Value)}}
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Faults = []core.Fault{{Path: position(data, int64(len(data))), Message: "unexpected end of JSON input"}}
	default:
		e.Faults = []core.Fault{{Path: "line 1", Message: err.Error()}}
		if f := unknownKey(err, data, v); f != nil {
			e.Faults[0] = *f
		}
	}
	if len(e.Faults) > 0 {
		e.Message += ": " + e.Faults[0].Path + ": " + e.Faults[0].Message
	}
	return e
}

func position(data []byte, offset int64) string {
	before := data[:max(0, min(offset, int64(len(data))))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Sprintf("line %d, column %d", line, max(1, column))
}

// submission is a client.Submit whose script and environment are bytes of their own, ready to be hashed and stored.
type submission struct {
	client.Submit
	script   []byte
	env      []byte // KEY=VALUE, each ended by NUL
	specSize int    // bytes of its JSON
	nul      bool   // some text holds a NUL byte
}

// decodeSubmit reads a submission. Script and environment are most of its bytes and are copied once, straight into
// what will be stored; the spec goes through encoding/json. So does everything as soon as one thing is unusual or
// wrong: then encoding/json also words the error.
func decodeSubmit(data []byte) (*submission, error) {
	if err := checkValues(data); err != nil {
		return nil, err
	}
	s := &submission{nul: jsontext.HasNUL(data)}
	if s.decode(data) {
		return s, nil
	}
	if s.specSize > maxSpec {
		return nil, specTooLarge(s.specSize)
	}
	s = &submission{nul: s.nul}
	if err := unmarshal(data, &s.Submit); err != nil {
		return nil, err
	}
	s.script = []byte(s.Script)
	for _, e := range s.Env {
		if strings.IndexByte(e, 0) >= 0 {
			name, _, _ := strings.Cut(e, "=")
			return nil, core.Errorf(core.Invalid, "env: the variable %q holds a NUL byte", name).Because("bad_environment")
		}
		s.env = append(append(s.env, e...), 0)
	}
	s.Script, s.Env = "", nil
	spec, err := json.Marshal(&s.Spec)
	s.specSize = len(spec)
	return s, err
}

// decode reads the whole text; false means that encoding/json should look at it.
func (s *submission) decode(data []byte) bool {
	r := jsontext.NewReader(data)
	for key := range r.Members() {
		if !s.member(&r, key) {
			return false
		}
	}
	r.End()
	return r.Err() == nil
}

func (s *submission) member(r *jsontext.Reader, key []byte) bool {
	switch string(key) {
	case "script":
		s.script = r.AppendText(make([]byte, 0, 4096))
	case "env":
		return s.environment(r)
	case "key":
		s.Key = string(r.Text())
	case "run":
		s.Run = string(r.Text())
	case "spec":
		r.Peek()
		from := r.Offset()
		r.Skip()
		spec := r.Raw(from)
		s.specSize = len(spec)
		return r.Err() == nil && len(spec) <= maxSpec && strictly(spec, &s.Spec) == nil
	case "config":
		s.Config = string(r.Text())
	case "strict":
		s.Strict = r.Bool()
	case "retry":
		s.Retry = r.Bool()
	default: // a name we do not know, or one in capitals
		return false
	}
	return true
}

// environment reads the variables, each of which may not hold what ends it.
func (s *submission) environment(r *jsontext.Reader) bool {
	if s.nul || r.Peek() != '[' { // NUL, null, or wrong
		return false
	}
	s.env = make([]byte, 0, min(len(r.Rest()), 16<<10))
	for range r.Elements() {
		s.env = append(r.AppendText(s.env), 0)
	}
	return true
}
