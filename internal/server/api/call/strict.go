package call

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	at := locate(data, reflect.TypeOf(v))
	if at < 0 {
		at = int64(bytes.Index(data, []byte(name)))
	}
	name = strings.Trim(name, `"`)
	known := keysOf(reflect.TypeOf(v))
	names := slices.Sorted(maps.Keys(known))
	hint := nearest.Hint(name, names)
	if i := slices.IndexFunc(names, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		hint = fmt.Sprintf(" here: %s is a key of %s", names[i], cmp.Or(known[names[i]], "the request itself"))
	}
	return &core.Fault{
		Path:    fmt.Sprintf("%s: %s", position(data, at+1), name),
		Message: "there is no such key" + hint,
	}
}

// keysOf collects the keys that a type has in JSON, at any depth, and where each belongs: the path of the object that
// has it, the nearest to the root if several have; "" is the root.
func keysOf(root reflect.Type) map[string]string {
	type place struct {
		t    reflect.Type
		path string
	}
	known, seen := map[string]string{}, map[reflect.Type]bool{}
	for queue := []place{{root, ""}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		at.t, at.path = elementOf(at.t, at.path)
		if at.t.Kind() != reflect.Struct || seen[at.t] {
			continue
		}
		seen[at.t] = true
		for i := range at.t.NumField() {
			f := at.t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			if name == "" && f.Anonymous { // its keys are those of the struct it is in
				queue = append(queue, place{f.Type, at.path})
				continue
			}
			name = cmp.Or(name, f.Name)
			if _, ok := known[name]; !ok {
				known[name] = at.path
			}
			queue = append(queue, place{f.Type, strings.TrimPrefix(at.path+"."+name, ".")})
		}
	}
	return known
}

// elementOf returns the type of what pointers, lists and maps lead to, and its path.
func elementOf(t reflect.Type, path string) (elem reflect.Type, elemPath string) {
	for {
		switch t.Kind() {
		case reflect.Slice:
			path += "[]"
		case reflect.Map:
			path += "{}"
		case reflect.Pointer:
		default:
			return t, path
		}
		t = t.Elem()
	}
}
