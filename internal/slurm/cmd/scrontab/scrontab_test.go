package scrontab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

const sample = `# backups
SITE="here and there"
#SCRON -p long --time=30
#SCRON -o backup-%j.out
15 3 * * 1-5 /usr/bin/backup --all

@hourly   check disk
# the end
`

// installed is the jobs that a table makes.
func installed(t *testing.T, c *slurmtest.Cluster, text string) []client.Submit {
	t.Helper()
	got := c.Run(t, "scrontab", Run, []string{"-"}, func(w *cmd.World) { w.In = strings.NewReader(text) })
	if got.Code != 0 || got.Out+got.Err != "" {
		t.Fatalf("%+v", got)
	}
	return c.Submits
}

func TestEntriesBecomeJobs(t *testing.T) {
	t.Parallel()
	c := (&slurmtest.Cluster{}).Start(t)
	jobs := installed(t, c, sample)
	if len(jobs) != 2 {
		t.Fatalf("%d jobs", len(jobs))
	}
	one, two := &jobs[0], &jobs[1]
	if s := &one.Spec; s.Name != "backup" || s.Partition.String() != "long" || s.TimeLimit != 1800 ||
		s.IO.Stdout != "backup-%j.out" || s.IO.WorkDir != "/root" ||
		s.Schedule() != "15 3 * * 1-5" || !strings.HasSuffix(one.Script, "\n/usr/bin/backup --all\n") ||
		!slices.Contains(one.Env, "SITE=here and there") {
		t.Errorf("the first: %+v %+v %q %q", s, s.Extra, one.Script, one.Env)
	}
	if s := &two.Spec; s.Name != "check" || !s.Partition.IsZero() || s.IO.Stdout != "/dev/null" ||
		s.Schedule() != "@hourly" || !strings.HasSuffix(two.Script, "\ncheck disk\n") {
		t.Errorf("the second: %+v %q", s, two.Script)
	}
}

// live makes jobs of what was submitted, as the server would list them, in another order.
func live(subs []client.Submit) (out []client.Job) {
	for i := range subs {
		s := subs[i].Spec
		s.User = "root"
		out = append([]client.Job{{Job: core.Job{ID: core.JobID(i + 1), Spec: &s}}}, out...)
	}
	return append(out, client.Job{Job: core.Job{ID: 99, Spec: &core.Spec{Name: "other", User: "root"}}})
}

func TestListEditReplaceRemove(t *testing.T) {
	t.Parallel()
	who := client.Whoami{User: "root"}
	subs := installed(t, (&slurmtest.Cluster{Who: who}).Start(t), sample)
	c := (&slurmtest.Cluster{Who: who, Jobs: live(subs)}).Start(t)
	if got := c.Run(t, "scrontab", Run, []string{"-l"}); got.Out != sample || got.Code != 0 {
		t.Errorf("listed %+v", got)
	}
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/check disk/check memory/' \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := c.Run(t, "scrontab", Run, []string{"-e"}, func(w *cmd.World) {
		w.Environ = append(w.Environ, "EDITOR="+editor)
	})
	if got.Code != 0 || len(c.Submits) != 2 || !strings.Contains(c.Submits[1].Script, "check memory") {
		t.Errorf("edited: %+v, %d jobs", got, len(c.Submits))
	}
	if len(c.Cancels) != 1 || !slices.Equal(c.Cancels[0].IDs, []string{"1", "2"}) {
		t.Errorf("the old ones: %+v", c.Cancels)
	}
	if got := c.Run(t, "scrontab", Run, []string{"-r"}); got.Code != 0 || len(c.Cancels) != 2 || len(c.Submits) != 2 {
		t.Errorf("removed: %+v %+v", got, c.Cancels)
	}
}

func TestBadTables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"* * * * *\n": "scrontab: error: line 1: want five fields or @word, and a command: * " +
			"* * * *\n",
		"# x\n61 * * * * true\n":           "scrontab: error: line 2: ",
		"@sometimes true\n":                "scrontab: error: line 1: ",
		"#SCRON --nonsense\n@daily true\n": "scrontab: error: line 1: unrecognized option '--nonsense'\n",
		"#SCRON --array=1-3\n@daily true\n": "scrontab: error: line 2: --array, --wait and --test-only have no " +
			"meaning here\n",
		"#\n#SCRON --mem=much\n@daily true\n": "scrontab: error: line 2: Invalid --mem specification\n",
	} {
		c := (&slurmtest.Cluster{}).Start(t)
		got := c.Run(t, "scrontab", Run, []string{"-"}, func(w *cmd.World) { w.In = strings.NewReader(text) })
		if got.Code == 0 || !strings.HasPrefix(got.Err, want) || len(c.Submits) != 0 {
			t.Errorf("%q: %+v and %d jobs", text, got, len(c.Submits))
		}
	}
	c := (&slurmtest.Cluster{Refuse: core.Errorf(core.Invalid, "no such").Because("invalid_partition")}).Start(t)
	got := c.Run(t, "scrontab", Run, []string{"-"}, func(w *cmd.World) { w.In = strings.NewReader("\n@daily true\n") })
	if got.Err != "scrontab: error: line 2: Invalid partition name specified\n" || len(c.Cancels) != 0 {
		t.Errorf("%+v %+v", got, c.Cancels)
	}
}
