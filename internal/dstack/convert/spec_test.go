package convert

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// recorded is a plan of the stock server: what a client sent, and what it got back.
type recorded struct {
	Sent, Plan, Effective json.RawMessage
	Jobs                  []json.RawMessage
}

func plans(t *testing.T) map[string]recorded {
	t.Helper()
	data, err := os.ReadFile("testdata/plans.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]recorded{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, raw json.RawMessage) *Spec {
	t.Helper()
	var in wire.RunSpec
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	s, faults := Read(&in, "body", "run_spec")
	if len(faults) > 0 {
		t.Fatalf("%+v", faults)
	}
	return s
}

// tree is JSON as values to compare; keys with null are left out, as clients read both alike.
func tree(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return withoutNulls(out)
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x == nil {
				delete(v, k)
			} else {
				v[k] = withoutNulls(x)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, w := tree(t, got), tree(t, want)
	if !reflect.DeepEqual(g, w) {
		a, _ := json.MarshalIndent(g, "", " ")
		b, _ := json.MarshalIndent(w, "", " ")
		t.Errorf("%s: got\n%s\nwant\n%s", what, a, b)
	}
}

// TestPlansAsRecorded: descriptions come back unharmed, and defaults and jobs are those that the stock server makes.
func TestPlansAsRecorded(t *testing.T) {
	t.Parallel()
	for name, rec := range plans(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := read(t, rec.Sent)
			same(t, "run_spec", s.Completed(), rec.Plan)
			eff, err := s.Effective(Defaults{SSHKeyPub: "ssh-rsa KEY"})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "effective_run_spec", eff, rec.Effective)
			raw, err := eff.JSON()
			if err != nil {
				t.Fatal(err)
			}
			again, err := Stored(raw)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "stored", again, rec.Effective)
			jobs := eff.JobSpecs(eff.Name(), "", Images{})
			if len(jobs) != len(rec.Jobs) {
				t.Fatalf("%d jobs, want %d", len(jobs), len(rec.Jobs))
			}
			for i, j := range jobs {
				var want map[string]any
				if err := json.Unmarshal(rec.Jobs[i], &want); err != nil {
					t.Fatal(err)
				}
				got := tree(t, j).(map[string]any)
				for _, key := range []string{"home_dir", "commands"} { // ours differ for dev environments
					if s.Configuration.DevEnvironment != nil || key == "home_dir" {
						delete(want, key)
						delete(got, key)
					}
				}
				if s.Name() == "" { // without a name a job has none
					delete(want, "job_name")
					delete(got, "job_name")
				}
				same(t, "job_spec", got, want)
			}
		})
	}
}

// Others see of a run neither the values of its variables nor its commands, those of groups included.
func TestPublicHidesCommands(t *testing.T) {
	t.Parallel()
	c, err := config.Read([]byte("type: task\nname: t\nenv: [KEY=s3cret]\ngroups:\n" +
		"- {name: a, nodes: 1, commands: [curl s3cret]}\n- {name: b, nodes: 1, commands: [curl s3cret]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Spec{Configuration: *c}
	data, err := s.Public().JSON()
	if err != nil || strings.Contains(string(data), "s3cret") || !strings.Contains(string(data), "KEY") {
		t.Errorf("%v: %s", err, data)
	}
	if whole, err := s.JSON(); err != nil || strings.Count(string(whole), "s3cret") != 3 {
		t.Errorf("the description itself has changed: %v: %s", err, whole)
	}
}

// However many nodes a run asks for, what is told of them fits in memory, and nobody gets more than there may be.
func TestNodesAreBounded(t *testing.T) {
	t.Parallel()
	const most = "2147483647"
	long := "[" + strings.Repeat("a", 100_000) + "]"
	for name, text := range map[string]string{
		"nodes":  "nodes: " + most + "\ncommands: " + long,
		"groups": "groups:\n" + strings.Repeat("- {nodes: "+most+", commands: "+long+"}\n", 3),
	} {
		c, err := config.Read([]byte("type: task\nname: t\n" + text + "\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := &Spec{Configuration: *c}
		if n := len(s.JobSpecs("t", "", Images{})); n < 1 || n > maxTold/100_000 {
			t.Errorf("%s: told of %d", name, n)
		}
		if _, err := s.Submit(Options{Name: "t"}); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a stock client's configuration asks for and no run gets is refused, not ignored.
func TestAccessToTheServerIsRefused(t *testing.T) {
	t.Parallel()
	c, err := config.Read([]byte("type: task\nname: run\ndstack: true\ncommands: [dstack ps]\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Spec{Configuration: *c}).Effective(Defaults{})
	if err == nil || !strings.Contains(err.Error(), "dstack: true") {
		t.Errorf("it was taken: %v", err)
	}
}
