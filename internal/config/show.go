package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core/secretarg"
)

// Show writes the effective settings as YAML that Load reads back; each line says where its value came from.
func (c *Config) Show(w io.Writer) error {
	p := &printer{origins: c.origins}
	p.group("", 0, reflect.ValueOf(c).Elem(), false)
	_, err := io.WriteString(w, p.b.String())
	return err
}

type printer struct {
	b       strings.Builder
	origins map[string]string
	bare    bool // without where values came from
}

func (p *printer) line(indent int, dash bool, path, text string, value bool) {
	lead := strings.Repeat("  ", indent)
	if dash {
		lead = lead[:len(lead)-2] + "- "
	}
	p.b.WriteString(lead + text)
	if value && !p.bare {
		from := p.origins[path]
		if from == "" {
			from = "default"
		}
		fmt.Fprintf(&p.b, "%*s # %s", max(0, 44-len(lead)-len(text)), "", from)
	}
	p.b.WriteByte('\n')
}

// group writes the fields of a struct; dash puts a list's dash before the first.
func (p *printer) group(path string, indent int, v reflect.Value, dash bool) {
	for i := range v.NumField() {
		t := v.Type().Field(i)
		key := t.Tag.Get("yaml")
		if key == "" || key == "-" { // no setting
			continue
		}
		sub, f := join(path, key), v.Field(i)
		inList := strings.Contains(path, "[")
		if inList && f.IsZero() && key != "name" && key != "names" {
			continue // an entry of a list shows what it says
		}
		p.field(sub, key, indent, f, dash)
		dash = false
	}
}

func (p *printer) field(path, key string, indent int, f reflect.Value, dash bool) {
	if text, ok := scalarText(f); ok {
		p.line(indent, dash, path, key+": "+text, true)
		return
	}
	switch f.Kind() {
	case reflect.Struct:
		p.line(indent, dash, path, key+":", false)
		p.group(path, indent+1, f, false)
	case reflect.Slice:
		if f.Len() == 0 || f.Type().Elem().Kind() == reflect.String {
			words := make([]string, f.Len())
			for i := range words {
				words[i] = quote(f.Index(i).String())
			}
			p.line(indent, dash, path, key+": ["+strings.Join(words, ", ")+"]", true)
			return
		}
		p.line(indent, dash, path, key+":", true)
		for i := range f.Len() {
			p.group(fmt.Sprintf("%s[%d]", path, i), indent+2, f.Index(i), true)
		}
	}
}

func scalarText(f reflect.Value) (string, bool) {
	if m, ok := f.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		return string(b), err == nil
	}
	switch f.Kind() {
	case reflect.String:
		return quote(masked(f.String())), true
	case reflect.Bool:
		if f.Bool() {
			return "yes", true
		}
		return "no", true
	case reflect.Int, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(f.Int(), 10), true
	}
	return "", false
}

// masked is a setting without the password of a URL in it: what is shown ends up in logs and tickets.
func masked(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return secretarg.Mask([]string{s})[0]
}

// quote writes a word as YAML reads it back as the same string.
func quote(s string) string {
	plain := s != "" && strings.Trim(s, " ") == s && !strings.ContainsAny(s, "#:{}[],&*!|>'\"%@`\n\t\\") &&
		!strings.ContainsAny(s[:1], "-?=")
	if plain {
		return s
	}
	return strconv.Quote(s)
}
