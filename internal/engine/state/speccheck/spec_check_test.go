package speccheck

import (
	"encoding"
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// leaf is a field of a spec that a client could send.
type leaf struct {
	path string
	typ  reflect.Type
}

// parsedText is what the types have that are sent as texts.
var parsedText = reflect.TypeFor[encoding.TextUnmarshaler]()

// leaves lists all fields of a struct, those of structs within it as a path.
func leaves(prefix string, t reflect.Type) (out []leaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			name = f.Name
		}
		path, ft := prefix+name, f.Type
		if path == "extra.het" || path == "extra.options" { // as a whole: the engine's, and a list of texts
			out = append(out, leaf{path, ft})
			continue
		}
		if ft.Kind() == reflect.Pointer && ft.Elem().Kind() == reflect.Struct {
			ft = ft.Elem()
		}
		if reflect.PointerTo(ft).Implements(parsedText) {
			if ft.Kind() == reflect.Struct {
				ft = reflect.TypeFor[string]()
			}
			out = append(out, leaf{path, ft})
			continue
		}
		if ft.Kind() == reflect.Struct && ft.PkgPath() == reflect.TypeFor[core.Spec]().PkgPath() {
			out = append(out, leaves(path+".", ft)...)
			continue
		}
		out = append(out, leaf{path, f.Type})
	}
	return out
}

// Whoever adds a field to what a job can ask for says here who sets it and how large it may be.
func TestEveryFieldIsClassified(t *testing.T) {
	t.Parallel()
	kinds, twice := FieldKinds()
	for _, path := range twice {
		t.Errorf("%s is in two tables", path)
	}
	for _, l := range leaves("", reflect.TypeFor[core.Spec]()) {
		kind, ok := kinds[l.path]
		if !ok {
			t.Errorf("%s (%s) is in no table of spec_tables.go: "+
				"who may set it, how long may it be, from where to where does it go?", l.path, l.typ)
			continue
		}
		delete(kinds, l.path)
		want := map[string]bool{}
		switch l.typ.Kind() {
		case reflect.String:
			want["text"] = true
		case reflect.Bool:
			want["flag"], want["engine"] = true, true
		case reflect.Slice, reflect.Map:
			want["list"] = true
		case reflect.Pointer:
			want["elsewhere"], want["engine"], want["list"] = true, true, true
		case reflect.Array:
		default:
			want["number"], want["elsewhere"], want["engine"] = true, true, true
		}
		if !want[kind] && kind != "assigned" {
			t.Errorf("%s is %s and classified as %q", l.path, l.typ, kind)
		}
	}
	for path, kind := range kinds {
		t.Errorf("%s (%s) is no field of a spec any more", path, kind)
	}
}
