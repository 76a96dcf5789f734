package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
)

// Load reads path (empty: defaults alone) and lays overrides ("timers.fence=5m") over it. Every fault is in the error's
// Faults, in the order of the file; the Config is returned even then, as far as it could be read.
func Load(path string, overrides ...string) (*Config, error) {
	var text []byte
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, core.Errorf(core.NotFound, "cannot read the settings: %v", err)
		}
	}
	return Parse(path, text, overrides...)
}

// Parse is Load for text that came from file.
func Parse(file string, text []byte, overrides ...string) (*Config, error) {
	return ParseOver(Default(), file, text, overrides...)
}

// ParseOver is Parse over other settings than the defaults; it takes them over.
func ParseOver(c *Config, file string, text []byte, overrides ...string) (*Config, error) {
	c.origins = map[string]string{}
	d := &decoder{file: file, origins: c.origins, lines: map[string]int{}}
	d.yaml(text, c)
	for _, o := range overrides {
		d.override(o, c)
	}
	d.check(c)
	if len(d.faults) == 0 {
		return c, nil
	}
	what := "the settings"
	if file != "" {
		what = file
	}
	e := core.Errorf(core.Invalid, "%s: %s", what, plural(len(d.faults), "error"))
	e.Faults = d.faults
	return c, e
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

type decoder struct {
	file    string
	origins map[string]string
	lines   map[string]int
	faults  []core.Fault
}

func (d *decoder) fault(path string, line int, format string, args ...any) {
	p := path
	if line > 0 {
		p = fmt.Sprintf("line %d", line)
		if path != "" {
			p += ": " + path
		}
	}
	d.faults = append(d.faults, core.Fault{Path: p, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) yaml(source []byte, c *Config) {
	dec := yaml.NewDecoder(bytes.NewReader(source))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			text := strings.TrimPrefix(err.Error(), "yaml: ")
			where, what, ok := strings.Cut(text, ": ")
			if !ok || !strings.HasPrefix(where, "line ") { // the parser leaves out the first line, and that of a bad character
				where, what = fmt.Sprintf("line %d", badCharacter(source)), text
			}
			d.fault(where, 0, "%s", what)
		}
		return
	}
	if len(doc.Content) == 1 && doc.Content[0].Tag != "!!null" {
		d.value("", doc.Content[0], reflect.ValueOf(c).Elem())
	}
}

// badCharacter is the line of the first character that YAML does not allow, or 1.
func badCharacter(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 || r != '\t' && r != '\n' && r != '\r' && r != 0x85 && unicode.IsControl(r) {
			return 1 + bytes.Count(text[:at], []byte("\n"))
		}
		at += size
	}
	return 1
}

// value reads n into v and notes every fault below it.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			d.fault(path, n.Line, "expected a single value")
			return
		}
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.fault(path, n.Line, "%v", err)
			return
		}
		d.note(path, n.Line)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(path, n, v)
	case reflect.Slice:
		d.sequence(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fault(path, n.Line, "expected a group of settings (key: value)")
		return
	}
	seen := map[string]int{}
	d.lines[path] = n.Line
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		sub := join(path, key.Value)
		if at, twice := seen[key.Value]; twice {
			d.fault(sub, key.Line, "is set twice, first at line %d", at)
			continue
		}
		seen[key.Value] = key.Line
		f, ok := field(v, key.Value)
		if !ok {
			d.fault(sub, key.Line, "unknown setting%s", suggest(v, key.Value))
			continue
		}
		if val.Tag == "!!null" {
			continue // "key:" with nothing behind it keeps the default
		}
		d.value(sub, val, f)
	}
}

func (d *decoder) sequence(path string, n *yaml.Node, v reflect.Value) {
	items := n.Content
	if n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String {
		items = []*yaml.Node{n} // one word where a list of words is wanted
	} else if n.Kind != yaml.SequenceNode {
		d.fault(path, n.Line, "expected a list")
		return
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.value(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	v.Set(list)
	d.note(path, n.Line)
}

func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fault(path, n.Line, "expected a single value")
		return
	}
	if err := set(v, n.Value); err != nil {
		d.fault(path, n.Line, "%v", err)
		return
	}
	d.note(path, n.Line)
}

func (d *decoder) note(path string, line int) {
	d.lines[path] = line
	if line > 0 {
		d.origins[path] = fmt.Sprintf("%s:%d", d.file, line)
	}
}

// override lays one "path=value" over c.
func (d *decoder) override(text string, c *Config) {
	path, value, ok := strings.Cut(text, "=")
	if !ok {
		d.fault(text, 0, "expected SETTING=VALUE")
		return
	}
	v := reflect.ValueOf(c).Elem()
	for key := range strings.SplitSeq(path, ".") {
		f, ok := field(v, key)
		if !ok {
			d.fault(path, 0, "unknown setting%s", suggest(v, key))
			return
		}
		v = f
	}
	var err error
	switch u, isText := v.Addr().Interface().(encoding.TextUnmarshaler); {
	case isText:
		err = u.UnmarshalText([]byte(value))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		v.Set(reflect.ValueOf(strings.Split(value, ",")))
	case v.Kind() == reflect.Struct, v.Kind() == reflect.Slice:
		err = errors.New("only single values can be overridden")
	default:
		err = set(v, value)
	}
	if err != nil {
		d.fault(path, 0, "%v", err)
		return
	}
	d.origins[path] = "override"
}

func set(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		switch strings.ToLower(text) {
		case "yes", "true", "on":
			v.SetBool(true)
		case "no", "false", "off":
			v.SetBool(false)
		default:
			return fmt.Errorf("%q is neither yes nor no", text)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number in the allowed range", text)
		}
		v.SetInt(n)
	default:
		return fmt.Errorf("settings of kind %s are not read", v.Kind())
	}
	return nil
}

func field(v reflect.Value, key string) (reflect.Value, bool) {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	if key == "-" { // marks what is no setting
		return reflect.Value{}, false
	}
	for i := range v.NumField() {
		if t := v.Type().Field(i); t.IsExported() && t.Tag.Get("yaml") == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// suggest names the setting that was probably meant.
func suggest(v reflect.Value, key string) string {
	if v.Kind() != reflect.Struct {
		return ""
	}
	names := make([]string, v.NumField())
	for i := range names {
		names[i] = v.Type().Field(i).Tag.Get("yaml")
	}
	return nearest.Hint(key, names)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
