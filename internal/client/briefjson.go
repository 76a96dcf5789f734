package client

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unsafe"

	"bireme.dev/bireme/internal/core"
)

// The listing behind squeue may hold 50,000 jobs. encoding/json reads it at some 100 MB/s by reflection; this reader and
// writer know the one flat shape and are several times faster. briefjson_test.go holds them to encoding/json's meaning.

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// AppendBrief appends b as JSON, the same that encoding/json writes.
func AppendBrief(dst []byte, b *Brief) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.number("id", int64(b.ID), true)
	w.number("base", int64(b.Base), false)
	w.number("task", int64(b.Task), false)
	w.text("tasks", b.Tasks, false)
	w.number("het", int64(b.Het), false)
	w.number("het_offset", int64(b.HetOffset), false)
	w.text("name", b.Name, true)
	w.text("user", string(b.User), true)
	w.number("uid", int64(b.UID), false)
	w.text("project", string(b.Project), false)
	w.text("part", string(b.Partition), true)
	w.text("qos", string(b.QOS), false)
	w.text("state", b.State.String(), true)
	w.number("flags", int64(b.Flags), false)
	w.text("reason", string(b.Reason), false)
	w.number("prio", int64(b.Priority), false)
	w.number("submit", int64(b.Submit), true)
	w.number("start", int64(b.Start), false)
	w.yes("estimate", b.Estimate)
	w.number("end", int64(b.End), false)
	w.number("elapsed", int64(b.Elapsed), false)
	w.number("limit", int64(b.Limit), false)
	w.number("nodes", int64(b.Nodes), true)
	w.number("cpus", int64(b.CPUs), true)
	w.text("nodelist", b.NodeList, false)
	w.text("planned", b.Planned, false)
	w.text("run", b.Run, false)
	return append(w.dst, '}')
}

// objectWriter appends the members of one object; zero values are left out unless always.
type objectWriter struct {
	dst  []byte
	more bool
}

func (w *objectWriter) key(name string) {
	if w.more {
		w.dst = append(w.dst, ',')
	}
	w.more = true
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
}

func (w *objectWriter) number(name string, n int64, always bool) {
	if n != 0 || always {
		w.key(name)
		w.dst = strconv.AppendInt(w.dst, n, 10)
	}
}

func (w *objectWriter) yes(name string, v bool) {
	if v {
		w.key(name)
		w.dst = append(w.dst, "true"...)
	}
}

func (w *objectWriter) text(name, s string, always bool) {
	if s == "" && !always {
		return
	}
	w.key(name)
	w.dst = appendText(w.dst, s)
}

// DecodeBriefs reads {"jobs":[...],"seq":N,"now":N,"more":true}. Strings of the result point into data, which must not change.
func DecodeBriefs(data []byte) (*BriefList, error) {
	p := briefParser{data: data}
	list := &BriefList{Jobs: make([]Brief, 0, bytes.Count(data, []byte(`{"id":`)))}
	ok := p.object(func(key []byte) bool {
		switch string(key) {
		case "jobs":
			return p.array(func() bool {
				list.Jobs = append(list.Jobs, Brief{})
				return p.brief(&list.Jobs[len(list.Jobs)-1])
			})
		case "seq":
			return p.integer(&list.Seq)
		case "now":
			return p.integer((*int64)(&list.Now))
		case "more":
			return p.boolean(&list.More)
		case "next":
			return p.integer((*int64)(&list.Next))
		}
		return p.skip()
	})
	if !ok {
		return nil, core.Errorf(core.Internal, "the list of jobs cannot be read: malformed at byte %d of %d", p.pos, len(data))
	}
	return list, nil
}

func (p *briefParser) brief(b *Brief) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return p.integer((*int64)(&b.ID))
		case "base":
			return p.integer((*int64)(&b.Base))
		case "task":
			return p.int32(&b.Task)
		case "tasks":
			return p.text(&b.Tasks)
		case "het":
			return p.integer((*int64)(&b.Het))
		case "het_offset":
			return p.int32(&b.HetOffset)
		case "name":
			return p.text(&b.Name)
		case "user":
			return p.text((*string)(&b.User))
		case "uid":
			return p.uint32(&b.UID)
		case "project":
			return p.text((*string)(&b.Project))
		case "part":
			return p.text((*string)(&b.Partition))
		case "qos":
			return p.text((*string)(&b.QOS))
		case "state":
			var s string
			return p.text(&s) && b.State.UnmarshalText([]byte(s)) == nil
		case "flags":
			var n int64
			ok := p.integer(&n)
			b.Flags = core.JobFlag(n)
			return ok
		case "reason":
			return p.text((*string)(&b.Reason))
		case "prio":
			return p.uint32(&b.Priority)
		case "submit":
			return p.integer((*int64)(&b.Submit))
		case "start":
			return p.integer((*int64)(&b.Start))
		case "end":
			return p.integer((*int64)(&b.End))
		case "elapsed":
			return p.integer((*int64)(&b.Elapsed))
		case "limit":
			return p.integer((*int64)(&b.Limit))
		case "nodes":
			return p.int32(&b.Nodes)
		case "cpus":
			return p.int32(&b.CPUs)
		case "nodelist":
			return p.text(&b.NodeList)
		case "planned":
			return p.text(&b.Planned)
		case "estimate":
			return p.boolean(&b.Estimate)
		case "run":
			return p.text(&b.Run)
		}
		return p.skip()
	})
}

// briefParser walks JSON once, without building anything. Its methods tell whether what they want was there.
type briefParser struct {
	data []byte
	pos  int
}

func (p *briefParser) blank() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *briefParser) take(c byte) bool {
	p.blank()
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *briefParser) object(member func(key []byte) bool) bool {
	if !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	for {
		key, plain := p.quoted()
		if key == nil || !plain || !p.take(':') {
			return false
		}
		p.blank()
		if !member(key) {
			return false
		}
		if !p.take(',') {
			return p.take('}')
		}
	}
}

func (p *briefParser) array(element func() bool) bool {
	if p.null() {
		return true
	}
	if !p.take('[') {
		return false
	}
	if p.take(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !p.take(',') {
			return p.take(']')
		}
	}
}

func (p *briefParser) null() bool {
	p.blank()
	if bytes.HasPrefix(p.data[p.pos:], []byte("null")) {
		p.pos += 4
		return true
	}
	return false
}

func (p *briefParser) boolean(out *bool) bool {
	p.blank()
	for _, word := range []string{"true", "false"} {
		if bytes.HasPrefix(p.data[p.pos:], []byte(word)) {
			p.pos += len(word)
			*out = word == "true"
			return true
		}
	}
	return false
}

// quoted takes a string and gives what is between its quotes; plain tells that nothing in it is escaped.
func (p *briefParser) quoted() (raw []byte, plain bool) {
	if !p.take('"') {
		return nil, false
	}
	start, plain := p.pos, true
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return p.data[start : p.pos-1 : p.pos-1], plain
		case c == '\\':
			plain = false
			p.pos += 2
		case c < ' ':
			return nil, false
		default:
			p.pos++
		}
	}
	return nil, false
}

func (p *briefParser) text(out *string) bool {
	start := p.pos
	raw, plain := p.quoted()
	switch {
	case raw == nil:
		return false
	case len(raw) == 0:
		*out = ""
		return true
	case plain:
		*out = unsafe.String(&raw[0], len(raw)) // data outlives the list and is never written
		return true
	}
	p.blank()
	return json.Unmarshal(bytes.TrimSpace(p.data[start:p.pos]), out) == nil
}

func (p *briefParser) integer(out *int64) bool {
	p.blank()
	neg := p.pos < len(p.data) && p.data[p.pos] == '-'
	if neg {
		p.pos++
	}
	start := p.pos
	var n int64
	for p.pos < len(p.data) && '0' <= p.data[p.pos] && p.data[p.pos] <= '9' {
		n = n*10 + int64(p.data[p.pos]-'0')
		p.pos++
	}
	if neg {
		n = -n
	}
	*out = n
	return p.pos > start && p.pos-start < 20
}

func (p *briefParser) int32(out *int32) bool {
	var n int64
	ok := p.integer(&n)
	*out = int32(n)
	return ok && int64(*out) == n
}

func (p *briefParser) uint32(out *uint32) bool {
	var n int64
	ok := p.integer(&n)
	*out = uint32(n)
	return ok && int64(*out) == n
}

// skip passes over a value of a member this client does not know: a newer server may say more.
func (p *briefParser) skip() bool {
	dec := json.NewDecoder(bytes.NewReader(p.data[p.pos:]))
	var raw json.RawMessage
	if dec.Decode(&raw) != nil {
		return false
	}
	p.pos += int(dec.InputOffset())
	return true
}
