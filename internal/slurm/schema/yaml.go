package schema

import (
	"strconv"
	"strings"
)

// YAML writes YAML in block style.
type YAML struct {
	Out   []byte
	Sink  Sink // as of JSON
	stack []yamlLevel
	value bool // a key has been written, its value follows
	dash  bool // a dash has been written, its item follows on the same line
}

type yamlLevel struct {
	array bool
	begun bool // it has an item
}

func (y *YAML) depth() int { return max(0, len(y.stack)-1) }

// begin goes to where the next value begins.
func (y *YAML) begin() {
	if y.value || len(y.stack) == 0 {
		return
	}
	top := &y.stack[len(y.stack)-1]
	if top.array {
		y.line()
		y.Out = append(y.Out, '-', ' ')
		y.dash = true
	}
	top.begun = true
}

// line begins a line, unless one begins with a dash already.
func (y *YAML) line() {
	if y.dash {
		y.dash = false
		return
	}
	if len(y.Out) > 0 && y.Out[len(y.Out)-1] != '\n' {
		y.Out = append(y.Out, '\n')
	}
	for range y.depth() {
		y.Out = append(y.Out, "  "...)
	}
}

// BeginObject implements Writer, as the other methods do.
func (y *YAML) BeginObject() { y.open(false) }
func (y *YAML) BeginArray()  { y.open(true) }
func (y *YAML) EndObject()   { y.close("{}") }
func (y *YAML) EndArray()    { y.close("[]") }

func (y *YAML) open(array bool) {
	y.begin()
	y.value = false
	y.stack = append(y.stack, yamlLevel{array: array})
}

func (y *YAML) close(empty string) {
	top := y.stack[len(y.stack)-1]
	y.stack = y.stack[:len(y.stack)-1]
	if !top.begun {
		y.scalar(empty)
	}
	y.Out = y.Sink.take(y.Out) // it ends with its line
}

func (y *YAML) Key(name string) {
	y.stack[len(y.stack)-1].begun = true
	y.line()
	y.Out = append(append(y.Out, name...), ':')
	y.value = true
}

// scalar writes a text behind a key or a dash.
func (y *YAML) scalar(text string) {
	if !y.dash && len(y.Out) > 0 && y.Out[len(y.Out)-1] == ':' {
		y.Out = append(y.Out, ' ')
	}
	y.Out = append(append(y.Out, text...), '\n')
	y.value, y.dash = false, false
}

func (y *YAML) put(text string) {
	y.begin()
	y.scalar(text)
}

func (y *YAML) String(s string) {
	if plainYAML(s) {
		y.put(s)
		return
	}
	y.put(string(appendString(nil, s))) // a JSON string is one of YAML
}

// plainYAML reports whether a text stands without quotes: it begins with a letter and is no word of YAML's.
func plainYAML(s string) bool {
	if s == "" || !(s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z' || s[0] == '/') {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_-./+@=", c) >= 0:
		default:
			return false
		}
	}
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return false
	}
	return true
}

func (y *YAML) Int(n int64)     { y.put(strconv.FormatInt(n, 10)) }
func (y *YAML) Float(f float64) { y.put(string(appendFloat(nil, f))) }
func (y *YAML) Bool(b bool)     { y.put(strconv.FormatBool(b)) }
func (y *YAML) Null()           { y.put("null") }
