package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
)

// Strictly reads one JSON value whose keys are all known: what was misspelt is not silently left out.
func Strictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// unknownKey words the fault of a key that is not known, with where it is and what was probably meant; nil if err is
// something else.
func unknownKey(err error, data []byte, v any) *core.Fault {
	name, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return nil
	}
	at := bytes.Index(data, []byte(name))
	name = strings.Trim(name, `"`)
	known := map[string]bool{}
	keysOf(reflect.TypeOf(v), known, map[reflect.Type]bool{})
	names := make([]string, 0, len(known))
	for k := range known {
		names = append(names, k)
	}
	slices.Sort(names)
	return &core.Fault{
		Path:    fmt.Sprintf("%s: %s", position(data, int64(at)+1), name),
		Message: "there is no such key" + nearest.Hint(name, names),
	}
}

// keysOf collects the keys that a type has in JSON, at any depth.
func keysOf(t reflect.Type, known map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name != "":
			known[name] = true
		case !f.Anonymous:
			known[f.Name] = true
		}
		keysOf(f.Type, known, seen)
	}
}
