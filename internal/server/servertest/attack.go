package servertest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Attack is a call that an ordinary user makes to do harm.
type Attack struct {
	Method, Path string
	Body         string
}

// Attacks makes calls from a seed: bodies of submissions, changes, steps, trials and reservations, right except for a
// few fields, which have values that no command of ours sends. It walks the types of the API, so that a field that is
// added is attacked too.
type Attacks struct {
	rng     *rand.Rand
	victims []core.JobID // jobs of others, to be named and forged
	texts   []string
	kinds   []attackKind
}

type attackKind struct {
	method, path string // with %d for a job
	body         func() map[string]any
	leaves       []attackLeaf
	weight       int
}

// attackLeaf is a field of a body.
type attackLeaf struct {
	path []string
	typ  reflect.Type
}

// NewAttacks makes the calls of a seed.
func NewAttacks(seed uint64, victims []core.JobID) *Attacks {
	a := &Attacks{rng: rand.New(rand.NewPCG(seed, 12)), victims: victims, texts: hostileTexts(1)}
	for _, id := range victims[:min(len(victims), 4)] {
		a.texts = append(a.texts, hostileTexts(id)...)
	}
	add := func(weight int, method, path string, body any, base func() map[string]any) {
		a.kinds = append(a.kinds, attackKind{method, path, base, leavesOf(nil, reflect.TypeOf(body), 0), weight})
	}
	submission := func() map[string]any {
		return map[string]any{"script": "#!/bin/sh\n:\n", "spec": map[string]any{
			"name": "x", "shape": map[string]any{"tasks": 1}, "io": map[string]any{}, "from": map[string]any{},
		}}
	}
	none := func() map[string]any { return map[string]any{} }
	add(12, "POST", "/api/v1/jobs", client.Submit{}, submission)
	add(2, "POST", "/api/v1/jobs/try", client.Submit{}, submission)
	add(4, "PATCH", "/api/v1/jobs/%d", client.Update{}, none)
	add(2, "POST", "/api/v1/jobs/%d/steps", client.NewStep{}, func() map[string]any {
		return map[string]any{"name": "s", "argv": []string{"true"}}
	})
	add(1, "POST", "/api/v1/jobs/%d/release", client.Release{}, none)
	add(1, "POST", "/api/v1/reservations", client.NewReservation{}, none)
	return a
}

// leavesOf lists the fields of a body; lists of structs by their first entry and as a whole.
func leavesOf(at []string, t reflect.Type, depth int) (out []attackLeaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, leavesOf(at, f.Type, depth)...)
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		path := append(append([]string(nil), at...), name)
		out = append(out, attackLeaf{path, f.Type})
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case ft.Kind() == reflect.Struct && depth < 4:
			out = append(out, leavesOf(path, ft, depth+1)...)
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct && depth < 2:
			out = append(out, leavesOf(append(path, "0"), ft.Elem(), depth+1)...)
		}
	}
	return out
}

// Next makes a call; own are jobs of the attacker's.
func (a *Attacks) Next(own []core.JobID) Attack {
	total := 0
	for i := range a.kinds {
		total += a.kinds[i].weight
	}
	n := a.rng.IntN(total)
	k := 0
	for ; n >= a.kinds[k].weight; k++ {
		n -= a.kinds[k].weight
	}
	kind := &a.kinds[k]
	out := Attack{Method: kind.method, Path: kind.path}
	if strings.Contains(out.Path, "%d") {
		out.Path = fmt.Sprintf(out.Path, a.job(own))
	}
	body := kind.body()
	for range 1 + a.rng.IntN(4) {
		l := &kind.leaves[a.rng.IntN(len(kind.leaves))]
		put(body, l.path, a.value(l.typ, 0))
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	out.Body = a.spoil(string(data))
	return out
}

func (a *Attacks) job(own []core.JobID) core.JobID {
	list := own
	if len(own) == 0 || a.rng.IntN(3) == 0 {
		list = a.victims
	}
	if len(list) == 0 {
		return 1
	}
	return list[a.rng.IntN(len(list))]
}

// spoil leaves most bodies as they are; some are no JSON any more, or say a thing twice.
func (a *Attacks) spoil(text string) string {
	switch a.rng.IntN(40) {
	case 0:
		return text[:a.rng.IntN(len(text)+1)]
	case 1:
		return strings.Repeat("[", 1+a.rng.IntN(20_000)) + text
	case 2:
		return strings.Replace(text, ":1", ":1e400", 1)
	case 3:
		return strings.Replace(text, `"spec"`, `"SPEC"`, 1)
	case 4:
		return strings.Replace(text, "{", `{"surprise":{"a":[1,2,{"b":null}]},`, 1)
	case 5:
		return strings.TrimSuffix(text, "}") + `,"spec":{"uid":0,"gid":0,"user":"root"}}`
	}
	return text
}

// put sets a value in a tree of maps.
func put(body map[string]any, path []string, v any) {
	for i, name := range path[:len(path)-1] {
		if i+1 < len(path) && path[i+1] == "0" {
			list, _ := body[name].([]any)
			if len(list) == 0 {
				list = []any{map[string]any{}}
				body[name] = list
			}
			m, ok := list[0].(map[string]any)
			if !ok {
				return
			}
			if len(path) > i+2 {
				put(m, path[i+2:], v)
			}
			return
		}
		next, ok := body[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			body[name] = next
		}
		body = next
	}
	body[path[len(path)-1]] = v
}

var hostileNumbers = []int64{
	0, 1, 2, 3, 5, 64, 1000, -1, -2, math.MinInt32, math.MaxInt32, math.MaxInt32 - 1, math.MinInt64, math.MaxInt64,
	1 << 24, 1<<24 + 1, 1 << 20, 1 << 30,
	1 << 40, 1 << 50, 1<<62 - 1, 1 << 62, 255, 65535, 65536, -65536, 4_000_000,
}

// hostileTexts are words of the grammars that the API knows, broken ones, and what a terminal or a shell would obey.
func hostileTexts(victim core.JobID) []string {
	return []string{
		"", " ", ",", ", ,\t", "x", "n1", "idle", "n1,idle", "n[1-2]", "n[", "n[1-99999999]",
		"a[0-9][0-9][0-9][0-9][0-9][0-9]", strings.Repeat("n1,", 4000),
		"fast", "fast&", "(((((", "[a*2&b*3]", strings.Repeat("(", 60), strings.Repeat("a&", 2000) + "a", "!a", "a*99999999",
		"0-3", "1-4000000", "0-4000000:2,1-4000000:3", "5-1", "1,,2", "0-99999%5",
		fmt.Sprint("afterok:", victim), fmt.Sprint("after:", victim, "+99999999"),
		fmt.Sprint("afterany:", victim, "?afternotok:", victim), "singleton", "afterok:99999999999",
		strings.Repeat("1:", 3000) + "1", "matlab:2", "matlab:99999999999", "a,b|c", "1@30", "0", "-1",
		"99999999999999999999", "1e400", "NaN", "Infinity", "null", "0x10",
		"root", "../../etc/passwd", "/etc/shadow", "/dev/full", "/proc/self/mem", "%j%u%%%", strings.Repeat(
			"%1000000000j", 5), "|/bin/sh", "-oProxyCommand=x", "$(reboot)", "`id`", "'; DROP TABLE jobs; --",
		"\x1b[2J\x1b]0;owned\x07", "\r\nX-Injected: 1", "\u202egnp.exe", "\u0000", "\uffff\ufffe", "\xff\xfe", "Ω≈ç√",
		"arbitrary", "cyclic:block,pack", "plane=0", "plane=99999999999", "gpu:a100:2", "container", "process",
		"main", "main,main,main", "nosuch", strings.Repeat("main,", 800), "normal", "default", "0 0 31 2 *",
		"* * * * *", "@reboot", strings.Repeat("z", 5000), strings.Repeat("z", 70_000), "yes",
	}
}

func (a *Attacks) text() string { return a.texts[a.rng.IntN(len(a.texts))] }

// value makes one of a type, or of another.
func (a *Attacks) value(t reflect.Type, depth int) any {
	if a.rng.IntN(25) == 0 { // nothing that fits
		return []any{
			nil, "x", -1, 1.5, true,
			[]any{},
			map[string]any{},
			[]any{[]any{[]any{map[string]any{"a": nil}}}},
		}[a.rng.IntN(8)]
	}
	switch t.Kind() {
	case reflect.Pointer:
		return a.value(t.Elem(), depth)
	case reflect.String, reflect.Array:
		return a.text()
	case reflect.Bool:
		return a.rng.IntN(4) > 0
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := hostileNumbers[a.rng.IntN(len(hostileNumbers))]
		if t.Bits() == 32 && a.rng.IntN(8) > 0 {
			n = int64(int32(n))
		}
		return n
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := uint64(hostileNumbers[a.rng.IntN(len(hostileNumbers))])
		if t.Bits() < 64 && a.rng.IntN(8) > 0 {
			n &= 1<<t.Bits() - 1
		}
		return n
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return a.text()
		}
		count := []int{0, 1, 1, 2, 3, 70, 300}[a.rng.IntN(7)]
		if depth > 0 {
			count = min(count, 2)
		}
		out := make([]any, 0, count)
		for range count {
			out = append(out, a.value(t.Elem(), depth+1))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for range []int{0, 1, 3, 200}[a.rng.IntN(4)] {
			out[a.text()+fmt.Sprint(a.rng.IntN(100))] = a.value(t.Elem(), depth+1)
		}
		return out
	case reflect.Struct:
		return a.object(t, depth)
	}
	return nil
}

func (a *Attacks) object(t reflect.Type, depth int) any {
	out := map[string]any{}
	if depth > 3 {
		return out
	}
	for _, l := range leavesOf(nil, t, 4) {
		if a.rng.IntN(3) == 0 {
			out[l.path[0]] = a.value(l.typ, depth+1)
		}
	}
	if t == reflect.TypeFor[core.HetRef]() && len(a.victims) > 0 { // a component of somebody else's job
		out["lead"] = a.victims[a.rng.IntN(len(a.victims))]
	}
	return out
}
