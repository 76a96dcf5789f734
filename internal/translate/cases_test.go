package translate

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/slurm"
)

var rewrite = flag.Bool("rewrite", false, "write the results into testdata; then read the diff")

var now = time.Unix(1_800_000_000, 0).UTC()

// caller is the environment of the one who submits.
func caller(name string) (string, bool) {
	v, ok := map[string]string{"HF_TOKEN": "hunter2"}[name]
	return v, ok
}

// sbatch does what the command does with a script. The script of the submission is its commands alone.
func sbatch(t *testing.T, text string) *client.Submit {
	t.Helper()
	src := []byte(text)
	if bad := slurm.CheckScript(src); bad != nil {
		t.Fatalf("%q in\n%s", bad, text)
	}
	var all []*slurm.Request
	probe := slurm.NewRequest(slurm.Sbatch, now, "/home/ann")
	parts, err := probe.ScriptParts("x", src)
	if err != nil {
		t.Fatal(err)
	}
	for k := range parts {
		r := slurm.NewRequest(slurm.Sbatch, now, "/home/ann")
		if k > 0 {
			if err := r.Inherit(all[0]); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.ScriptPart("x", src, k); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if _, err := r.Finish(); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, r)
	}
	env := all[0].JobEnviron([]string{"HF_TOKEN=hunter2", "OTHER=1"}, slurm.Process{Umask: 0o022})
	env = slices.DeleteFunc(env, func(e string) bool { return e == "SLURM_EXPORT_ENV=ALL" }) // which is the default
	first, _, body := splitScript(src)
	out := &client.Submit{Spec: all[0].Spec, Script: "#!" + first + "\n" + body, Env: env}
	for _, r := range all[1:] {
		out.Components = append(out.Components, r.Spec)
	}
	return out
}

// apply does what the native command does with a configuration, in a project that runs processes.
func apply(t *testing.T, text string) *client.Submit {
	t.Helper()
	c, err := config.Read([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := c.Complete(config.Options{Lookup: caller}); err != nil {
		t.Fatal(err)
	}
	convert.Modest(c)
	sub, err := (&convert.Spec{Configuration: *c}).Submit(convert.Options{
		Name: c.Name(), Runtime: core.RuntimeProcess, Now: now, Project: core.ProjectName(c.Additions.Account),
		Job: func(string) (string, error) { return "7", nil },
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return sub
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCases converts each in of testdata/*.txtar to out and that to back. Both are as recorded, and what is submitted
// is the same before and after.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := string(ar.Files[0].Data)
			script := ar.Files[0].Name == "in.sbatch"
			there, back, submit := Script, Configuration, sbatch
			if !script {
				there, back, submit = Configuration, Script, apply
			}
			out, err := there([]byte(in), Options{Name: "in", Dir: "/home/ann", Now: now})
			if err != nil {
				t.Fatal(err)
			}
			got := []txtar.File{ar.Files[0], {Name: "out", Data: []byte(out.Output)}}
			if name != "dev" {
				again, err := back([]byte(out.Output), Options{Name: "out", Dir: "/home/ann", Now: now})
				if err != nil {
					t.Fatalf("%v in\n%s", err, out.Output)
				}
				got = append(got, txtar.File{Name: "back", Data: []byte(again.Output)})
				if diff := cmp.Diff(asJSON(t, submit(t, in)), asJSON(t, submit(t, again.Output))); diff != "" {
					t.Errorf("there and back is not the same submission:\n%s\nout:\n%s\nback:\n%s", diff, out.Output, again.Output)
				}
				if script {
					same(t, submit(t, in), apply(t, out.Output))
					stock(t, in, out.Output)
				} else {
					same(t, sbatch(t, out.Output), submit(t, in))
				}
			}
			ar.Files = got
			if *rewrite {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want, err := txtar.ParseFile(file); err != nil {
				t.Fatal(err)
			} else if diff := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(ar))); diff != "" {
				t.Errorf("not as recorded:\n%s", diff)
			}
		})
	}
}

// same compares what a script and a configuration submit, as far as both front ends say it in the same words: nodes and
// what is taken of each, limits, places, conditions.
func same(t *testing.T, script, task *client.Submit) {
	t.Helper()
	if len(script.Components)+len(task.Components) > 0 {
		return
	}
	type common struct {
		Nodes                                 int32
		CPUs, Memory, GPUs, Disk              int64
		Limit                                 core.Seconds
		Partition, Project, QOS               string
		Array, Constraint, Switches           string
		Dependency, Reservation, NodeList     string
		Begin, Deadline                       core.Time
		Requeue, Contained, Single, Unlimited bool
		Throttle                              int32
	}
	of := func(s *core.Spec) common {
		x, nodes := s.More(), max(1, s.Shape.NodesMin)
		if each := s.Shape.TasksPerNode; s.Shape.NodesMin == 0 && each > 0 {
			nodes = max(1, (s.Shape.Tasks+each-1)/each)
		}
		per := s.Shape.TasksPerNode
		if per == 0 {
			per = (max(1, s.Shape.Tasks) + nodes - 1) / nodes
		}
		c := common{
			Nodes: nodes, CPUs: int64(per * s.Shape.CPUsPerTask), Memory: int64(s.Shape.MemPerNode), Disk: int64(x.TmpDisk),
			Limit: s.TimeLimit, Partition: s.Partition.String(), Project: string(s.Project), QOS: string(s.QOS), Array: s.Array,
			Constraint: x.Constraint.String(), Switches: x.Switches.String(), Dependency: x.Dependency.String(),
			Reservation: x.Reservation,
			Begin:       s.Begin, Deadline: x.Deadline, Requeue: s.Requeue, Throttle: s.Throttle,
		}
		if c.Memory == 0 {
			c.Memory = int64(s.Shape.MemPerCPU) * c.CPUs
		}
		for _, g := range s.Shape.Total() {
			c.GPUs += (g.Count + int64(nodes) - 1) / int64(nodes)
		}
		return c
	}
	want, got := of(&script.Spec), of(&task.Spec)
	want.Constraint, got.Constraint = "", "" // of fleets
	if strings.HasPrefix(got.Dependency, "afterok:7") {
		got.Dependency = "" // a run's, which a script cannot name
	}
	want.Dependency, got.Dependency = needs(t, want.Dependency), needs(t, got.Dependency)
	if want.Limit != got.Limit {
		want.Limit -= want.Limit % 60
		got.Limit = (got.Limit + 59) / 60 * 60
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("script and configuration do not ask for the same:\n%s", diff)
	}
}

// needs is a dependency as it is read.
func needs(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	n, err := grammar.ParseDependency(text)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, n)
}

// stock: with tags for additions the submission is the same, and no key is one that a stock client refuses.
func stock(t *testing.T, in, plain string) {
	t.Helper()
	out, err := Script([]byte(in), Options{Name: "in", Dir: "/home/ann", Now: now, Stock: true})
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`(?m)^(` + strings.Join(config.AdditionKeys(), "|") + `):`)
	if key := own.FindString(out.Output); key != "" {
		t.Errorf("a stock client refuses %s", key)
	}
	if diff := cmp.Diff(asJSON(t, apply(t, plain)), asJSON(t, apply(t, out.Output))); diff != "" {
		t.Errorf("tags ask for something else:\n%s", diff)
	}
}
