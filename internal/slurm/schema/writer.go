package schema

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Writer receives a document piece by piece.
type Writer interface {
	BeginObject()
	Key(name string)
	EndObject()
	BeginArray()
	EndArray()
	String(s string)
	Int(n int64)
	Float(f float64)
	Bool(b bool)
	Null()
}

// Sink takes what a Writer has finished, piece by piece, so that a long document is never there as a whole. What is
// left at the end is in Out.
type Sink func(piece []byte)

const pieceSize = 64 << 10

func (s Sink) take(out []byte) []byte {
	if s == nil || len(out) < pieceSize {
		return out
	}
	s(out)
	return out[:0]
}

// JSON writes JSON: compact, or indented as Slurm's commands do.
type JSON struct {
	Indent bool
	Out    []byte
	Sink   Sink // nil: all of it stays in Out
	depth  int
	inside bool // something was written at this depth
	value  bool // a key has been written, its value follows
}

// begin goes to where the next value begins.
func (j *JSON) begin() {
	if j.value {
		j.value = false
		return
	}
	if j.inside {
		j.Out = append(j.Out, ',')
	}
	j.newline()
	j.inside = true
}

func (j *JSON) newline() {
	if j.Indent && j.depth > 0 {
		j.Out = append(j.Out, '\n')
		for range j.depth {
			j.Out = append(j.Out, "  "...)
		}
	}
}

func (j *JSON) open(c byte) {
	j.begin()
	j.Out = append(j.Out, c)
	j.depth++
	j.inside = false
}

func (j *JSON) close(c byte) {
	j.depth--
	if j.Indent {
		j.Out = append(j.Out, '\n')
		for range j.depth {
			j.Out = append(j.Out, "  "...)
		}
	}
	j.Out = append(j.Out, c)
	j.inside = true
	j.Out = j.Sink.take(j.Out)
}

// BeginObject implements Writer, as the other methods do.
func (j *JSON) BeginObject() { j.open('{') }
func (j *JSON) EndObject()   { j.close('}') }
func (j *JSON) BeginArray()  { j.open('[') }
func (j *JSON) EndArray()    { j.close(']') }

func (j *JSON) Key(name string) {
	j.begin()
	j.Out = append(append(append(j.Out, '"'), name...), '"', ':')
	if j.Indent {
		j.Out = append(j.Out, ' ')
	}
	j.value = true
}

func (j *JSON) String(s string) {
	j.begin()
	j.Out = appendString(j.Out, s)
}

func (j *JSON) Int(n int64) {
	j.begin()
	j.Out = strconv.AppendInt(j.Out, n, 10)
}

func (j *JSON) Float(f float64) {
	j.begin()
	j.Out = appendFloat(j.Out, f)
}

func (j *JSON) Bool(b bool) {
	j.begin()
	j.Out = strconv.AppendBool(j.Out, b)
}

func (j *JSON) Null() {
	j.begin()
	j.Out = append(j.Out, "null"...)
}

// appendFloat writes a number that is read as one with a fraction; JSON has no words for what is none.
func appendFloat(out []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	at := len(out)
	out = strconv.AppendFloat(out, f, 'g', -1, 64)
	if !strings.ContainsAny(string(out[at:]), ".e") {
		out = append(out, ".0"...)
	}
	return out
}

// appendString writes a string: most have nothing to escape.
func appendString(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string has no error
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}
