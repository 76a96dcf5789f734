package state

import (
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// leaf is a field of a spec that a client could send.
type leaf struct {
	path string
	typ  reflect.Type
}

// leaves lists all fields of a struct, those of structs within it as a path.
func leaves(prefix string, t reflect.Type) (out []leaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			name = f.Name
		}
		path, ft := prefix+name, f.Type
		if path == "extra.het" { // the engine's as a whole
			out = append(out, leaf{path, ft})
			continue
		}
		if ft.Kind() == reflect.Pointer && ft.Elem().Kind() == reflect.Struct {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && ft.PkgPath() == reflect.TypeFor[core.Spec]().PkgPath() {
			out = append(out, leaves(path+".", ft)...)
			continue
		}
		out = append(out, leaf{path, f.Type})
	}
	return out
}

// classify adds the paths of a table by what they are.
func classify[T any](t *testing.T, tab *fieldTable[T], into map[string]string) {
	t.Helper()
	add := func(path, kind string) {
		if was, twice := into[path]; twice {
			t.Errorf("%s is in two tables: %s and %s", path, was, kind)
		}
		into[path] = kind
	}
	for _, f := range tab.texts {
		add(f.path, "text")
	}
	for _, f := range tab.numbers {
		add(f.path, "number")
	}
	for _, f := range tab.lists {
		add(f.path, "list")
	}
	for _, f := range tab.engine {
		add(f.path, "engine")
	}
	for _, p := range tab.flags {
		add(p, "flag")
	}
	for _, p := range tab.assigned {
		add(p, "assigned")
	}
	for p := range tab.checkedBy {
		add(p, "elsewhere")
	}
}

func classified(t *testing.T) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	classify(t, &specTable, kinds)
	classify(t, &shapeMoreTable, kinds)
	classify(t, &extraTable, kinds)
	classify(t, &signalTable, kinds)
	classify(t, &gpuTable, kinds)
	classify(t, &containerTable, kinds)
	return kinds
}

// Whoever adds a field to what a job can ask for says here who sets it and how large it may be.
func TestEveryFieldIsClassified(t *testing.T) {
	t.Parallel()
	kinds := classified(t)
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
			want["elsewhere"], want["engine"] = true, true
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

// fieldAt finds the field of a path in a spec, making what is between.
func fieldAt(spec *core.Spec, path string) reflect.Value {
	v := reflect.ValueOf(spec).Elem()
	for part := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		for i := range v.NumField() {
			if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name == part {
				v = v.Field(i)
				break
			}
		}
	}
	return v
}

// The tables must hold for the engine itself: each field is filled with what no client may send, and the whole of
// admission refuses it, at submission and in a component.
func TestHostileFieldsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	n := coretest.Node("n1").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	alice := core.Identity{User: "alice", UID: 1000}
	if _, err := w.do(&Submit{By: alice, Spec: hers(&core.Spec{})}); err != nil {
		t.Fatalf("without anything hostile: %v", err)
	}
	tried := 0
	for path, kind := range classified(t) {
		for _, spec := range hostileSpecs(t, path, kind) {
			tried++
			for what, in := range map[string]Input{
				"submitted":    &Submit{By: alice, Spec: hers(spec)},
				"in component": &Submit{By: alice, Spec: hers(&core.Spec{}), Components: []*core.Spec{hers(spec)}},
				"tried":        &Try{Submit{By: alice, Spec: hers(spec)}},
			} {
				if _, err := w.do(in); err == nil {
					t.Errorf("%s (%s) %s: %v was taken", path, kind, what, fieldAt(spec, path))
				} else if core.CodeOf(err) == core.Internal {
					t.Errorf("%s %s: %v", path, what, err)
				}
			}
		}
	}
	if tried < 80 {
		t.Errorf("only %d were tried", tried)
	}
}

// hers is a submission of alice's.
func hers(s *core.Spec) *core.Spec {
	c := *s
	c.User, c.UID, c.GID = "alice", 1000, 1000
	if s.Extra != nil {
		x := *s.Extra
		c.Extra = &x
	}
	return &c
}

func hostileSpecs(t *testing.T, path, kind string) (out []*core.Spec) {
	t.Helper()
	with := func(set func(reflect.Value)) {
		spec := &core.Spec{}
		set(fieldAt(spec, path))
		out = append(out, spec)
	}
	switch kind {
	case "text":
		with(func(v reflect.Value) { v.SetString(strings.Repeat("x", maxLine+1)) })
	case "list":
		with(func(v reflect.Value) {
			if v.Kind() == reflect.Map {
				v.Set(reflect.MakeMap(v.Type()))
				for i := range 5000 {
					v.SetMapIndex(reflect.ValueOf(strings.Repeat("x", 1+i%1000)+string(rune('a'+i/1000))),
						reflect.Zero(v.Type().Elem()))
				}
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), 5000, 5000))
		})
	case "engine":
		with(func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
			default:
				v.SetInt(1)
			}
		})
	case "number", "elsewhere":
		with(func(v reflect.Value) { extreme(v, false) })
		with(func(v reflect.Value) { extreme(v, true) })
		switch path {
		case "from.sid", "array_limit": // the greatest means something
			out = out[:1]
		}
	}
	return out
}

// extreme sets the least or the greatest number of a type.
func extreme(v reflect.Value, most bool) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	bits := v.Type().Bits()
	switch {
	case v.CanUint():
		v.SetUint(1<<bits - 1)
	case most:
		v.SetInt(1<<(bits-1) - 1)
	default:
		v.SetInt(-1 << (bits - 1))
	}
}
