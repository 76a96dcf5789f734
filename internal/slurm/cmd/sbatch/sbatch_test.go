package sbatch

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// files puts scripts into the command's directory.
func files(t *testing.T, w *cmd.World, list map[string]string) {
	t.Helper()
	for name, text := range list {
		if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"sleep.sh":     "#!/bin/bash\n#SBATCH --job-name=sleeper\n#SBATCH --time=10\nsleep 600\n",
		"noshebang.sh": "echo hi\n", "dos.sh": "#!/bin/bash\r\ntrue\r\n", "empty.sh": "",
		"bogus.sh": "#!/bin/bash\n#SBATCH --bogus\ntrue\n",
	}
	for name, tc := range map[string]struct {
		args   []string
		reason core.Error // the server's answer, if it refuses
	}{
		"sbatch-no-shebang":     {args: []string{"noshebang.sh"}},
		"sbatch-empty-script":   {args: []string{"empty.sh"}},
		"sbatch-dos-script":     {args: []string{"dos.sh"}},
		"sbatch-no-file":        {args: []string{"missing.sh"}},
		"sbatch-bad-directive":  {args: []string{"bogus.sh"}},
		"sbatch-bad-option":     {args: []string{"--nonsense", "sleep.sh"}},
		"sbatch-bad-time":       {args: []string{"-t", "xyz", "sleep.sh"}},
		"sbatch-bad-begin":      {args: []string{"--begin=yesterdayish", "sleep.sh"}},
		"sbatch-bad-mem-suffix": {args: []string{"--mem=1Q", "sleep.sh"}},
		"sbatch-bad-nodecount":  {args: []string{"-N", "abc", "sleep.sh"}},
		"sbatch-bad-mail":       {args: []string{"--mail-type=SOMETIMES", "sleep.sh"}},
		"sbatch-bad-array":      {args: []string{"--array=5-1", "sleep.sh"}},
		"sbatch-bad-partition": {
			[]string{"-p", "nope", "sleep.sh"},
			core.Error{Code: core.Invalid, Reason: "invalid_partition"},
		},
		"sbatch-bad-account": {[]string{"-A", "nope", "sleep.sh"}, core.Error{Code: core.Invalid, Reason: "invalid_account"}},
		"sbatch-bad-qos":     {[]string{"--qos=nope", "sleep.sh"}, core.Error{Code: core.Invalid, Reason: "invalid_qos"}},
		"sbatch-bad-mem": {
			[]string{"--mem=999999999", "sleep.sh"},
			core.Error{Code: core.Invalid, Reason: "memory_unsatisfiable"},
		},
		"sbatch-bad-gres": {[]string{"--gres=nope:1", "sleep.sh"}, core.Error{Code: core.Invalid, Reason: "invalid_gres"}},
		"sbatch-plain":    {args: []string{"sleep.sh"}},
		"sbatch-wrap":     {args: []string{"--wrap", "sleep 300"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			c := &slurmtest.Cluster{}
			if tc.reason.Code != "" {
				c.Refuse = &tc.reason
			}
			got := c.Start(t).Run(t, "sbatch", Run, tc.args, func(w *cmd.World) { files(t, w, scripts) })
			if strings.HasPrefix(want, "Submitted") {
				want = "Submitted batch job 1\n"
			}
			if d := cmp.Diff(want, got.Err+got.Out); d != "" || got.Code != code {
				t.Errorf("code %d, want %d (-want +got)\n%s", got.Code, code, d)
			}
			if (code != 0) != (len(c.Submits) == 0) {
				t.Errorf("%d jobs were submitted", len(c.Submits))
			}
		})
	}
}

func TestWhatIsDeniedIsTold(t *testing.T) {
	t.Parallel()
	c := &slurmtest.Cluster{Refuse: &core.Error{
		Code: core.Denied, Reason: "access_denied",
		Message: "user ann is disabled",
	}}
	got := c.Start(t).Run(t, "sbatch", Run, []string{"--wrap=true"})
	if want := "sbatch: error: user ann is disabled\nsbatch: error: Batch job submission failed: Access/permission " +
		"denied\n"; got.Err != want || got.Code != 1 {
		t.Errorf("got %d %q", got.Code, got.Err)
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	want, code := slurmtest.Golden(t, "down-sbatch")
	got := (*slurmtest.Cluster)(nil).Run(t, "sbatch", Run, []string{"--wrap", "true"})
	if got.Err != want || got.Code != code {
		t.Errorf("got %d %q, want %d %q", got.Code, got.Err, code, want)
	}
}

// submit runs sbatch and gives what was submitted.
func submit(t *testing.T, script string, env []string, args ...string) (client.Submit, slurmtest.Result) {
	t.Helper()
	c := (&slurmtest.Cluster{}).Start(t)
	got := c.Run(t, "sbatch", Run, args, func(w *cmd.World) {
		files(t, w, map[string]string{"job.sh": script})
		w.Environ = append(w.Environ, env...)
		w.In = strings.NewReader(script)
	})
	if len(c.Submits) != 1 {
		t.Fatalf("%d submissions: %+v", len(c.Submits), got)
	}
	return c.Submits[0], got
}

func TestDirectivesEnvironmentAndOptionsInThatOrder(t *testing.T) {
	t.Parallel()
	script := "#!/bin/sh\n#SBATCH -J fromscript -t 1 -p one # trailing\n\n#SBATCH --comment='two words' " +
		"--mail-user=a\\ b\n ##SBATCH -t 99\n #SBATCH -t 98\necho\n#SBATCH -t 97\n"
	s, _ := submit(t, script, []string{"SBATCH_TIMELIMIT=2", "SBATCH_PARTITION=two", "SBATCH_REQUEUE=no"}, "-p",
		"three", "job.sh", "-t", "x y")
	if s.Spec.Name != "fromscript" || s.Spec.TimeLimit != 120 || s.Spec.Partition.String() != "three" || !s.Spec.Requeue {
		t.Errorf("got %+v", s.Spec)
	}
	if e := s.Spec.More(); e.Comment != "two words" || e.MailUser != "a b" {
		t.Errorf("got %+v", e)
	}
	if d := cmp.Diff([]string{"-t", "x y"}, s.Spec.Args); d != "" {
		t.Error(d)
	}
	if s.Script != script || s.Key == "" {
		t.Errorf("script %q key %q", s.Script, s.Key)
	}
}

func TestNamesOutputsAndOrigin(t *testing.T) {
	t.Parallel()
	s, _ := submit(t, "#!/bin/sh\n", nil, "job.sh")
	if s.Spec.Name != "job.sh" || s.Spec.IO.Stdout != "slurm-%j.out" || filepath.Base(s.Spec.From.Command) !=
		"job.sh" || s.Spec.IO.WorkDir != s.Spec.From.Dir {
		t.Errorf("got %+v", s.Spec)
	}
	s, _ = submit(t, "", nil, "--wrap=true", "-a", "1-3%2", "-D", "sub")
	if s.Spec.Name != "wrap" || s.Spec.From.Command != "" || s.Spec.IO.Stdout != "slurm-%A_%a.out" ||
		s.Spec.Array != "1-3" || s.Spec.Throttle != 2 {
		t.Errorf("got %+v", s.Spec)
	}
	if s.Spec.IO.WorkDir != filepath.Join(s.Spec.From.Dir, "sub") || !strings.HasPrefix(s.Script, "#!/bin/sh\n") ||
		!strings.HasSuffix(s.Script, "\ntrue\n") {
		t.Errorf("got %+v %q", s.Spec.IO, s.Script)
	}
	s, got := submit(t, "#!/bin/sh\ntrue\n", nil, "--parsable")
	if s.Spec.Name != "sbatch" || got.Out != "1\n" {
		t.Errorf("from standard input: %q, %+v", s.Spec.Name, got)
	}
	if s.Spec.Extra != nil {
		t.Errorf("a plain job has an Extra: %+v", s.Spec.Extra)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	env := []string{"FOO=caller", "BAR=1", "SLURM_X=s", "SLURM_JWT=secret"}
	for value, want := range map[string]struct {
		has, hasNot []string
		login       bool
	}{
		"": {
			has:    []string{"FOO=caller", "PATH=/usr/bin:/bin", "SLURM_X=s"},
			hasNot: []string{"SLURM_JWT=secret"},
		},
		"ALL,FOO=x":       {has: []string{"FOO=x", "BAR=1", "SLURM_EXPORT_ENV=ALL,FOO=x"}, hasNot: []string{"FOO=caller"}},
		"NONE":            {has: []string{"SLURM_X=s"}, hasNot: []string{"FOO=caller", "PATH=/usr/bin:/bin"}, login: true},
		"NIL":             {has: []string{"SLURM_X=s"}, hasNot: []string{"FOO=caller"}},
		"FOO,NEW=y,UNSET": {has: []string{"FOO=caller", "NEW=y", "SLURM_X=s"}, hasNot: []string{"BAR=1"}, login: true},
	} {
		args := []string{"--wrap=true"}
		if value != "" {
			args = append(args, "--export="+value)
		}
		s, _ := submit(t, "", env, args...)
		for _, e := range want.has {
			if !slices.Contains(s.Env, e) {
				t.Errorf("--export=%s: %s is missing", value, e)
			}
		}
		for _, e := range want.hasNot {
			if slices.Contains(s.Env, e) {
				t.Errorf("--export=%s: %s is there", value, e)
			}
		}
		if s.Spec.More().LoginEnv != want.login {
			t.Errorf("--export=%s: login environment %v", value, !want.login)
		}
	}
}

func TestTooFewTasksLowerTheNodes(t *testing.T) {
	t.Parallel()
	s, got := submit(t, "", nil, "--wrap=true", "-N3", "-n2")
	if got.Err != "sbatch: Warning: can't run 2 processes on 3 nodes, setting nnodes to 2\n" ||
		s.Spec.Shape.NodesMin != 2 {
		t.Errorf("got %+v %+v", got, s.Spec.Shape)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--wrap=true", "x"}, "sbatch: error: Script arguments not permitted with --wrap option\n", 1},
		{[]string{"-n0", "--wrap=true"}, "sbatch: error: Invalid numeric value \"0\" for --ntasks.\n", 1},
		{
			[]string{"--mem=1", "--mem-per-cpu=1", "--wrap=true"},
			"sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n", 1,
		},
		{
			[]string{"-N", "5-2", "--wrap=true"},
			"sbatch: error: Maximum node count 2 is less than minimum node count 5\n", 255,
		},
		{[]string{"--container-id=x", "--wrap=true"}, "sbatch: error: --container-id is not supported\n", 1},
		{[]string{"q.sh"}, "sbatch: fatal: q.sh: line 2: Unmatched `\"` in [ \"abc]\n", 1},
		{[]string{"foo.sh"}, "sbatch: error: Invalid directive found in batch script: foo\n", 255},
		{[]string{"blank.sh"}, "sbatch: error: Batch script contains only whitespace!\n", 1},
	} {
		c := (&slurmtest.Cluster{}).Start(t)
		got := c.Run(t, "sbatch", Run, tc.args, func(w *cmd.World) {
			files(t, w, map[string]string{
				"q.sh": "#!/bin/sh\n#SBATCH \"abc\n", "foo.sh": "#!/bin/sh\n#SBATCH foo\n",
				"blank.sh": " \n",
			})
		})
		if got.Err != tc.want || got.Code != tc.code || len(c.Submits) != 0 {
			t.Errorf("%q: got %d %q, want %d %q", tc.args, got.Code, got.Err, tc.code, tc.want)
		}
	}
}

func TestNoCurrentDirectory(t *testing.T) {
	t.Parallel()
	c := (&slurmtest.Cluster{}).Start(t)
	got := c.Run(t, "sbatch", Run, []string{"--wrap=true"}, func(w *cmd.World) { w.Dir = "" })
	if got.Err != "sbatch: error: getcwd failed: No such file or directory\n" || got.Code != 1 || len(c.Submits) != 0 {
		t.Errorf("got %d %q and %d jobs", got.Code, got.Err, len(c.Submits))
	}
}

func TestWaitGivesTheJobsExitCode(t *testing.T) {
	t.Parallel()
	c := &slurmtest.Cluster{Jobs: []client.Job{
		slurmtest.Job(1, "wrap", "01:00:00", slurmtest.Running("01:00:01", slurmtest.On("n1", 1))),
	}}
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/watch" {
			return false
		}
		slurmtest.Ended("01:00:02", core.Failed, core.Exit{Code: 7})(&c.Jobs[0])
		w.Write([]byte("data: {\"seq\":1,\"kind\":\"job.started\",\"job\":9}\n\ndata: " +
			"{\"seq\":2,\"kind\":\"job.ended\",\"job\":1}\n\n"))
		return true
	}
	got := c.Start(t).Run(t, "sbatch", Run, []string{"-W", "--wrap", "exit 7"})
	if got.Out != "Submitted batch job 1\n" || got.Code != 7 {
		t.Errorf("got %+v", got)
	}
}
