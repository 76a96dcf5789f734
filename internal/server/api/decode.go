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
	"unicode/utf8"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
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
	if holdsNUL(b.Bytes()) {
		return errNUL()
	}
	return unmarshal(b.Bytes(), v)
}

// holdsNUL tells whether a text in JSON has a NUL byte in it. What has cannot be given to a program, and a job's prolog that
// could not be told its name would count as failed, and its node as broken.
func holdsNUL(data []byte) bool {
	escape := []byte(`\u0000`)
	for {
		at := bytes.Index(data, escape)
		if at < 0 {
			return false
		}
		before := len(data[:at]) - len(bytes.TrimRight(data[:at], `\`))
		if before%2 == 0 { // else that backslash is itself one that is written
			return true
		}
		data = data[at+len(escape):]
	}
}

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

// decodeSubmit reads a submission. Script and environment are most of its bytes and are copied once, straight into what
// will be stored; the rest goes through encoding/json. Anything unusual is left to encoding/json altogether, which then
// also words the error.
func decodeSubmit(data []byte) (*submission, error) {
	if err := checkValues(data); err != nil {
		return nil, err
	}
	s := &submission{nul: holdsNUL(data)}
	if p := (parser{data: data}); p.submit(s) {
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

// parser reads the outer object of a submission.
type parser struct {
	data []byte
	pos  int
}

func (p *parser) blank() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) take(c byte) bool {
	p.blank()
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// submit reads the whole text; false means that encoding/json should look at it.
func (p *parser) submit(s *submission) bool {
	if !p.take('{') {
		return false
	}
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return false
		}
		key, ok := p.text(nil)
		if !ok || !p.take(':') || !p.member(s, key) {
			return false
		}
	}
	p.blank()
	return p.pos == len(p.data)
}

func (p *parser) member(s *submission, key []byte) (ok bool) {
	p.blank()
	switch string(key) {
	case "script":
		s.script, ok = p.text(make([]byte, 0, 4096))
		return ok
	case "env":
		return p.environment(s)
	case "key":
		return p.textInto(&s.Key)
	case "run":
		return p.textInto(&s.Run)
	case "spec":
		start := p.pos
		ok = p.skip()
		s.specSize = p.pos - start
		return ok && s.specSize <= maxSpec && strictly(p.data[start:p.pos], &s.Spec) == nil
	case "config":
		return p.textInto(&s.Config)
	case "strict":
		return p.boolean(&s.Strict)
	case "retry":
		return p.boolean(&s.Retry)
	}
	return false // a name we do not know, or one in capitals
}

func (p *parser) textInto(out *string) bool {
	b, ok := p.text(nil)
	*out = string(b)
	return ok
}

func (p *parser) boolean(out *bool) bool {
	rest := p.data[p.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		*out = true
		p.pos += 4
	case bytes.HasPrefix(rest, []byte("false")):
		*out = false
		p.pos += 5
	default:
		return false
	}
	return true
}

func (p *parser) environment(s *submission) bool {
	if !p.take('[') {
		return false // null, or wrong
	}
	s.env = make([]byte, 0, min(len(p.data), 16<<10))
	for first := true; !p.take(']'); first = false {
		if !first && !p.take(',') {
			return false
		}
		var ok bool
		if s.env, ok = p.text(s.env); !ok {
			return false
		}
		s.env = append(s.env, 0)
	}
	return true
}

// text reads a string and appends it to dst; with a nil dst and nothing escaped it gives a part of the data itself.
func (p *parser) text(dst []byte) ([]byte, bool) {
	p.blank()
	if p.pos >= len(p.data) || p.data[p.pos] != '"' {
		return nil, false
	}
	p.pos++
	alias := dst == nil
	for {
		rest := p.data[p.pos:]
		n := plain(rest)
		if n == len(rest) {
			return nil, false
		}
		if rest[n] == '"' {
			p.pos += n + 1
			if alias {
				return rest[:n:n], true
			}
			return append(dst, rest[:n]...), true
		}
		if rest[n] != '\\' {
			return nil, false // control characters and broken UTF-8 are encoding/json's to judge
		}
		dst = append(dst, rest[:n]...)
		alias = false
		p.pos += n
		var ok bool
		if dst, ok = p.escape(dst); !ok {
			return nil, false
		}
	}
}

// plain counts the bytes that stand for themselves.
func plain(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"' || c == '\\' || c < ' ':
			return i
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size <= 1 {
				return i
			}
			i += size - 1
		}
	}
	return len(b)
}

// escape reads one escape sequence.
func (p *parser) escape(dst []byte) ([]byte, bool) {
	if p.pos+1 >= len(p.data) {
		return nil, false
	}
	c := p.data[p.pos+1]
	p.pos += 2
	switch c {
	case 'n':
		return append(dst, '\n'), true
	case 't':
		return append(dst, '\t'), true
	case '"', '\\', '/':
		return append(dst, c), true
	case 'r':
		return append(dst, '\r'), true
	case 'b':
		return append(dst, '\b'), true
	case 'f':
		return append(dst, '\f'), true
	case 'u':
		return p.unicode(dst)
	}
	return nil, false
}

// unicode reads the digits of \uXXXX. Surrogates and NUL are rare and left to encoding/json.
func (p *parser) unicode(dst []byte) ([]byte, bool) {
	if p.pos+4 > len(p.data) {
		return nil, false
	}
	var r rune
	for _, c := range p.data[p.pos : p.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return nil, false
		}
	}
	if r == 0 || 0xD800 <= r && r < 0xE000 {
		return nil, false
	}
	p.pos += 4
	return utf8.AppendRune(dst, r), true
}

// skip passes over one value without looking into it.
func (p *parser) skip() bool {
	p.blank()
	depth := 0
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case '"':
			if _, ok := p.text(nil); !ok {
				return false
			}
		case '{', '[':
			depth++
			p.pos++
			continue
		case '}', ']':
			depth--
			p.pos++
			if depth < 0 {
				return false
			}
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return false
			}
			p.pos++
			continue
		default:
			for p.pos < len(p.data) && !bytes.ContainsRune([]byte(",:]} \n\t\r"), rune(p.data[p.pos])) {
				p.pos++
			}
		}
		if depth == 0 {
			return true
		}
	}
	return false
}
