package client

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// What the client sends is what encoding/json would: for every request, with members there and missing.
func TestMarshalEqualsEncodingJSON(t *testing.T) {
	t.Parallel()
	empty := ""
	for _, v := range []any{
		nil, 7, "a\nb",
		[]string{},
		[]string(nil),
		map[string]int{"b": 1, "a": 2},
		1.5, []byte("x"),
		struct{ A any }{[]int{1}},
		&Submit{}, &Submit{Env: []string{}, Components: []core.Spec{{}, {Script: core.Hash{1}}}},
		struct {
			core.Origin
			B *string `json:",omitempty"`
			C int     `json:"c,string"`
			D int     `json:"-"`
			E string
		}{B: &empty, C: 3, D: 4, E: "é<"},
	} {
		same(t, v)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Submit](), reflect.TypeFor[Update](), reflect.TypeFor[Cancel](), reflect.TypeFor[NewStep](),
		reflect.TypeFor[Release](),
		reflect.TypeFor[UpdateNode](), reflect.TypeFor[UpdateUser](), reflect.TypeFor[PutMember](),
		reflect.TypeFor[FleetSpec](),
		reflect.TypeFor[PartitionChange](), reflect.TypeFor[NewToken](), reflect.TypeFor[Join](),
		reflect.TypeFor[ApplyPolicy](),
		reflect.TypeFor[Reconfigure](), reflect.TypeFor[NewReservation](), reflect.TypeFor[core.QOS](),
		reflect.TypeFor[core.Job](),
	} {
		for range 50 {
			v := reflect.New(typ)
			fill(r, v.Elem(), 0)
			same(t, v.Interface())
		}
	}
}

func same(t *testing.T, v any) {
	t.Helper()
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := jsontext.Marshal(v); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%T: %v\n got %s\nwant %s", v, err, got, want)
	}
}

// fill puts something into about half of the members.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if r.IntN(2) == 0 && depth > 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(20))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.String:
		v.SetString([]string{"a", "x\ty", `"`, "<é>", "\xff", "plain words"}[r.IntN(6)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth+1)
		}
	}
}

// What sbatch sends.
func BenchmarkMarshalSubmit(b *testing.B) {
	in := &Submit{
		Spec: core.Spec{
			Name: "bench", Partition: core.ListPartitions("main"), TimeLimit: 3600,
			IO: core.IO{WorkDir: "/home/ann", Stdout: "slurm-%j.out"},
		},
		Script: "#!/bin/sh\n" + strings.Repeat("echo \"hello world\" > /dev/null\n", 66), Key: NewKey(),
	}
	for range 60 {
		in.Env = append(in.Env, "VARIABLE="+strings.Repeat("x", 88))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsontext.Marshal(in); err != nil {
			b.Fatal(err)
		}
	}
}
