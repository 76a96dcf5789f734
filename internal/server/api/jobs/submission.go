package jobs

import (
	"encoding/json"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/server/api/call"
)

// submission is a client.Submit whose script and environment are bytes of their own, ready to be hashed and stored.
type submission struct {
	client.Submit
	script   []byte
	env      []byte // KEY=VALUE, each ended by NUL
	specSize int    // bytes of its JSON
	nul      bool   // some text holds a NUL byte

	failUnfit bool   // see Foreign
	tried     string // likewise
	told      string // what the site's plug-ins have to say to the submitter, lines
}

// decodeSubmit reads a submission. Script and environment are most of its bytes and are copied once, straight into
// what will be stored; the spec goes through encoding/json. So does everything as soon as one thing is unusual or
// wrong: then encoding/json also words the error.
func decodeSubmit(data []byte) (*submission, error) {
	if err := call.CheckValues(data); err != nil {
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
	if err := call.Unmarshal(data, &s.Submit); err != nil {
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
		return r.Err() == nil && len(spec) <= maxSpec && call.Strictly(spec, &s.Spec) == nil
	case "config":
		s.Config = string(r.Text())
	case "run_spec":
		s.RunSpec = r.Bool()
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

// specTooLarge words the refusal of a job's description.
func specTooLarge(size int) error {
	return core.Errorf(core.TooLarge, "the job's description has %d bytes; the limit is %d", size, maxSpec).
		Because("request_too_large")
}
