package state

import (
	"encoding"
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

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
	kinds, _ := speccheck.FieldKinds()
	tried := 0
	for path, kind := range kinds {
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
		with(func(v reflect.Value) {
			long := strings.Repeat("x", speccheck.MaxLine+1)
			if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
				_ = u.UnmarshalText([]byte(long))
				return
			}
			v.SetString(long)
		})
	case "list":
		with(func(v reflect.Value) {
			if v.Kind() == reflect.Struct || v.Kind() == reflect.Pointer { // kept options
				if v.Kind() == reflect.Pointer {
					v.Set(reflect.New(v.Type().Elem()))
					v = v.Elem()
				}
				v = v.FieldByName("Slurm")
			}
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
