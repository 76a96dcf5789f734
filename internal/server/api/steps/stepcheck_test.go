package steps

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/steplayout"
)

// stepElsewhere are fields of a step that need no bound, or have theirs elsewhere, and why.
var stepElsewhere = map[string]string{
	"argv": "checkPrograms", "env": "the size of the body; it is not kept", "time_limit": "checkStep", "rows": "any",
	"cols":  "any",
	"label": "flag", "pty": "flag", "owns_job": "flag", "exact": "flag", "overlap": "flag", "overcommit": "flag",
	"no_gres":      "flag",
	"preserve_env": "flag",
	"direct":       "checkStep", "container": "speccheck.Container", "programs": "checkPrograms", "het": "newStep",
}

// Whoever adds a field to a step says how large it may be.
func TestEveryStepFieldIsClassified(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name := range stepElsewhere {
		known[name] = true
	}
	for _, f := range stepTexts {
		known[f.name] = true
	}
	for _, f := range stepNumbers {
		known[f.name] = true
	}
	for _, f := range stepGres {
		known[f.name] = true
	}
	for i := range reflect.TypeFor[client.NewStep]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[client.NewStep]().Field(i).Tag.Get("json"), ",")
		if !known[name] {
			t.Errorf("step %s: how large may it be? Say so in stepcheck.go", name)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("step %s is no field any more", name)
	}
}

// A step whose fields are random and hostile is refused or laid out, and what is laid out lies on nodes of its job.
func TestHostileStepsArePlacedOrRefused(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(12, 11))
	texts := []string{
		"", " ", ",", ", ,\t", "a", "a,b", "[", "]", "a[1-99999999]", "a[0-9][0-9][0-9][0-9][0-9][0-9]",
		"x", "a,a,a,a", strings.Repeat("a,", 3000),
		"b[1", "-1", "plane=0", "plane=-1", "plane=99999999999", "arbitrary", "cyclic", "block,pack", "\x1b[2J",
		strings.Repeat("z", 40000),
	}
	numbers := []int64{0, 1, 2, 3, 8, -1, -1 << 31, 1<<31 - 1, 1<<63 - 1, -1 << 63, 65536, 1 << 20}
	gpu := []core.GresAlloc{{Name: "gpu", Units: []int32{0, 1}}}
	j := &core.Job{ID: 1, Alloc: &core.Alloc{Nodes: []core.NodeAlloc{
		{Node: "a", CPUs: 4, Cores: []int32{0, 1, 2, 3}, Mem: core.GiB, Gres: gpu},
		{Node: "b", CPUs: 2, Mem: core.GiB},
		{Node: "c", CPUs: 1},
	}}}
	laid := 0
	for range 20_000 {
		var ask client.NewStep
		v := reflect.ValueOf(&ask).Elem()
		for i := range v.NumField() {
			if rng.IntN(4) > 0 && v.Type().Field(i).Name != "Argv" {
				continue
			}
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(texts[rng.IntN(len(texts))])
			case reflect.Bool:
				f.SetBool(rng.IntN(2) == 0)
			case reflect.Int32, reflect.Int64:
				n := numbers[rng.IntN(len(numbers))]
				if f.Kind() == reflect.Int32 {
					n = int64(int32(n))
				}
				f.SetInt(n)
			case reflect.Slice:
				if f.Type() == reflect.TypeFor[[]core.Gres]() {
					f.Set(reflect.ValueOf([]core.Gres{{
						Name:  []string{"gpu", "", "x"}[rng.IntN(3)],
						Count: numbers[rng.IntN(len(numbers))],
					}}))
				}
			}
		}
		if err := checkStep(&ask); err != nil {
			continue
		}
		var st *core.Step
		request, err := stepRequest(&ask, 512)
		if err == nil {
			st, err = steplayout.Place(j, nil, "", request)
		}
		if err != nil {
			if core.CodeOf(err) == core.Internal {
				t.Fatalf("%+v: %v", ask, err)
			}
			continue
		}
		laid++
		ranks := ranksOf(request, ask.Distribution, st)
		if len(st.Nodes) == 0 || len(st.Nodes) != len(ranks) || len(st.Nodes) != len(st.Tasks) {
			t.Fatalf("%+v is laid out as %+v with ranks %v", ask, st, ranks)
		}
		for i := range st.Holds {
			if h := &st.Holds[i]; h.CPUs < 0 || h.Mem < 0 {
				t.Fatalf("%+v holds %+v", ask, h)
			}
		}
	}
	if laid < 100 {
		t.Errorf("only %d were laid out", laid)
	}
}
