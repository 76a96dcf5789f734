package policyfile

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

// TestGolden reads a policy as people write it; Format gives it in its one form, which reads as the same.
func TestGolden(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile("testdata/written.yml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/formatted.yml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("written.yml", in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Format(&f.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("want (-), got (+):\n%s", diff)
	}
	again, err := Parse("formatted.yml", got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Policy, again.Policy); diff != "" {
		t.Fatalf("what is written reads as something else:\n%s", diff)
	}
	q := f.Policy.QOS[0]
	if *q.Limits.MaxWall != 2*24*60 || q.Grace != 120 || q.Limits.GrpTRES.Count("mem") != 2<<20 ||
		q.Flags != core.DenyOnLimit|core.NoDecay {
		t.Errorf("high is %+v", q)
	}
	p := f.Policy.Projects[1]
	if p.Name != "optics" || p.Parent != "physics" || p.Assoc.Limits.GrpTRESMins.Count("gres/gpu") != 500*60 {
		t.Errorf("optics is %+v", p)
	}
}

// TestNothingIsLeftOut: whatever an entry may say is written and read again, so that get and apply change nothing.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	var q core.QOS
	var p core.Project
	var m core.Member
	filled(t, reflect.ValueOf(&q).Elem())
	filled(t, reflect.ValueOf(&m).Elem())
	filled(t, reflect.ValueOf(&p).Elem())
	q.ID, p.ID, m.ID = 0, 0, 0 // the server's own
	p.Members, p.Parent = []core.Member{m}, ""
	q.Created, p.Created = 0, 0                    // the server's own
	p.Owner, p.Public, p.Templates = "", false, "" // no policy
	want := core.Policy{QOS: []core.QOS{q}, Projects: []core.Project{p}}
	data, err := Format(&want)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("all.yml", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, f.Policy); diff != "" {
		t.Fatalf("said (-), written and read (+):\n%s", diff)
	}
}

// filled sets every field to something.
func filled(t *testing.T, v reflect.Value) {
	t.Helper()
	switch to := v.Addr().Interface().(type) {
	case *core.TRES:
		*to = core.TRES{{Name: "cpu", Count: 120}, {Name: "gres/gpu", Count: 60}}
		return
	case *core.QOSFlag:
		*to = core.NoDecay
		return
	case *core.PreemptMode:
		*to = core.PreemptCancel
		return
	case *core.Role:
		*to = core.RoleManager
		return
	case *[]core.Member:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			filled(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(t, v.Index(0))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("some")
	case reflect.Int32, reflect.Int64:
		v.SetInt(180)
	case reflect.Uint32:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("what is a %s?", v.Type())
	}
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	f, err := Parse("p.yml", []byte("qos: {a: {max_jobs: -1, max_submit: unlimited, max_wall: -1}}\nprojects: {b: "+
		"{max_jobs: none, shares: parent}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if l := f.Policy.QOS[0].Limits; l.MaxJobs != nil || l.MaxSubmit != nil || l.MaxWall != nil {
		t.Errorf("limits of QOS a: %+v", l)
	}
	if b := f.Policy.Projects[0]; b.Assoc.Limits.MaxJobs != nil || b.Shares != core.SharesParent {
		t.Errorf("project b: %+v", b)
	}
	if out, err := Format(&f.Policy); err != nil || !strings.Contains(string(out), "shares: parent") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"an unknown key": {
			"qos:\n  high:\n    priorty: 3\n",
			`p.yml, line 3, column 5: qos.high: there is no key "priorty"; did you mean priority?`,
		},
		"an unknown section": {
			"project:\n  x: {}\n",
			`p.yml, line 1, column 1: there is no key "project"; did you mean projects?`,
		},
		"an unknown limit": {
			"projects: {a: {members: {ann: {max_job: 3}}}}\n",
			`p.yml, line 1, column 32: projects.a.members.ann: there is no key "max_job"; did you mean max_jobs?`,
		},
		"a number that is none": {
			"qos:\n  a:\n    max_jobs: many\n",
			`p.yml, line 3, column 15: qos.a.max_jobs: "many" is not a whole number from 0 to 9223372036854775807`,
		},
		"a time that is none": {
			"qos: {a: {max_wall: soon}}",
			`"soon" is not a duration; expected a value such as 90 (minutes), 2-00:00:00, 36h or 2d`,
		},
		"a resource that is not": {"qos: {a: {grp_tres: {cups: 3}}}", `"cups" is not a resource`},
		"a flag that is none":    {"qos: {a: {flags: [NoDecy]}}", `unknown flag "NoDecy"; did you mean NoDecay?`},
		"hours that are none":    {"projects: {a: {gpu_hours: lots}}", `"lots" is not a number of hours`},
		"no shares": {
			"projects:\n  a:\n    shares: 0\n",
			`p.yml, line 3, column 13: projects.a.shares: shares must be 1 or more, or parent; the default is 1`,
		},
		"shares below none": {
			"projects: {a: {members: {ann: {shares: -1}}}}",
			`projects.a.members.ann.shares: "-1" is not a whole number from 0 to 2147483647`,
		},
		"jobs below none": {"qos: {a: {max_jobs: -2}}", `qos.a.max_jobs: "-2" is not a whole number from 0`},
		"two budgets": {
			"projects: {a: {gpu_hours: 5, grp_tres_mins: gres/gpu=3}}",
			`gres/gpu is limited twice, in gpu_hours and in grp_tres_mins`,
		},
		"a key twice": {"qos: {a: {}, a: {}}", `line 1, column 14: qos: a is given twice`},
		"a project twice": {
			"projects:\n  a:\n    projects: {b: {}}\n  b: {}\n",
			`line 4, column 3: projects.b: it is given twice, first at line 3, column 16`,
		},
		"two parents":           {"projects: {a: {projects: {b: {parent: c}}}}", `projects.b: it lies below a, and says c`},
		"a list for a mapping":  {"qos: [a, b]", `qos: expected key: value pairs`},
		"a mapping for a value": {"qos: {a: {priority: {x: 1}}}", `qos.a.priority: expected a single value`},
		"two documents":         {"qos: {}\n---\nqos: {}\n", `a policy is one document`},
		"no YAML":               {"qos: {", `line 1`},
		"a default of its own":  {"defaults: {projct: x}", `there is no key "projct"; did you mean project?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("p.yml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || core.CodeOf(err) != core.Invalid {
				t.Fatalf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestPlace: what the server finds is told with the file's lines.
func TestPlace(t *testing.T) {
	t.Parallel()
	f, err := Parse("p.yml", []byte("qos:\n  high: {preempt: [low]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := core.Errorf(core.Invalid, "x").Because("invalid_qos")
	e.Faults = []core.Fault{{Path: "qos.high", Message: "no low"}, {Path: "projects.gone", Message: "in use"}}
	got := f.Place(e)
	if want := "p.yml, line 2, column 3: no low\np.yml: in use"; got.Error() != want ||
		core.ReasonOf(got) != "invalid_qos" {
		t.Errorf("got %q", got)
	}
	plain := errors.New("away")
	if f.Place(plain) != plain { //nolint:errorlint // it must be the very same
		t.Error("other errors are left alone")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/written.yml", "testdata/formatted.yml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("projects: &a {b: {projects: *a}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("p.yml", data)
		if err != nil {
			return
		}
		text, err := Format(&p.Policy)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again.yml", text)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		twice, err := Format(&again.Policy)
		if err != nil || string(twice) != string(text) {
			t.Fatalf("%s\nreads as\n%s\n%v", text, twice, err)
		}
	})
}
