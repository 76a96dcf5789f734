package mail

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// program writes a mail program that leaves its arguments, its ids and its environment in a file that anybody may
// write.
func program(t *testing.T) (path, out string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mail-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, out = filepath.Join(dir, "mail"), filepath.Join(dir, "out")
	script := "#!/bin/sh\n{ echo \"argc=$#\"; for a in \"$@\"; do echo \"arg=<$a>\"; done; echo uid=$(id -u) " +
		"gids=$(id -G); env; } >>" + out + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for p, mode := range map[string]os.FileMode{dir: 0o755, out: 0o666} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	return path, out
}

// The program gets three arguments, one line each, nothing of the server's environment, and none of its rights.
func TestSendIsConfined(t *testing.T) {
	t.Setenv("BIREME_SECRET_OF_THE_SERVER", "yes")
	path, out := program(t)
	s := New(func() Config { return Config{Program: path, Domain: "site.example", User: "nobody", Cluster: "c"} },
		slog.New(slog.DiscardHandler))
	l := message{to: "ann,bob@x.y", subject: "Name=a\nBcc: all@x.y\r\n\x1b[2J" + strings.Repeat("x", 5000)}
	if err := s.send(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		"argc=3\n", "arg=<-s>\n", "arg=<Name=a Bcc: all@x.y  ?[2Jxxx",
		"arg=<ann@site.example,bob@x.y>\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "BIREME_SECRET") || len(text) > 2000 {
		t.Errorf("the program saw:\n%s", text)
	}
	if os.Geteuid() == 0 && (strings.Contains(text, "uid=0 ") || !strings.Contains(text, "gids="+gid(t)+"\n")) {
		t.Errorf("the program ran with rights of the server's:\n%s", text)
	}
	for _, to := range []string{"|/bin/sh", "/tmp/file", "-oQ/tmp", "a\nb", "", "ann,|x"} {
		if err := s.send(context.Background(), message{to: to, subject: "x"}); err == nil {
			t.Errorf("a letter to %q was sent", to)
		}
	}
	if os.Geteuid() == 0 {
		s.cfg = func() Config { return Config{Program: path, User: "root"} }
		if err := s.send(context.Background(), message{to: "ann", subject: "x"}); err == nil {
			t.Error("the program ran as root")
		}
	}
}

func gid(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(line, ":"); f[0] == "nobody" {
			return f[3]
		}
	}
	t.Fatal("there is no user nobody")
	return ""
}

// One user's messages do not fill the hour of another's, and the last one says that no more come.
func TestRate(t *testing.T) {
	t.Parallel()
	s := New(func() Config { return Config{Program: "/bin/true", PerHour: 3} }, slog.New(slog.DiscardHandler))
	job := func(user core.UserName, id core.JobID) *core.Job {
		return &core.Job{ID: id, Spec: &core.Spec{Name: "n", User: user}}
	}
	for i := range 100 {
		s.enqueue(job("mallory", core.JobID(i)), "END", "subject "+strconv.Itoa(i))
	}
	s.enqueue(job("victim", 1000), "END", "theirs")
	var got []string
	for len(s.queue) > 0 {
		got = append(got, (<-s.queue).subject)
	}
	if len(got) != 5 || got[2] != "subject 2" || !strings.Contains(got[3], "limits.mail_per_hour is 3") ||
		got[4] != "theirs" {
		t.Fatalf("sent: %q", got)
	}
	if ok, _ := s.allow("mallory", 3, time.Now().Add(61*time.Minute)); !ok {
		t.Error("an hour later nothing is sent")
	}
}

// TestEnvironment: what the program is told of a job, as Slurm 22.05.8 tells it. Key: mail.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	j := &core.Job{
		ID: 28, State: core.Failed, Submit: 1e12, Eligible: 1e12, Start: 1e12 + 5e6, End: 1e12 + 68e6, Attempt: 1,
		Exit: core.Exit{Code: 3},
		Spec: &core.Spec{
			Name: "mj", User: "root", Project: "acc", IO: core.IO{WorkDir: "/tmp", Stdout: "slurm-%j.out"},
			Extra: &core.Extra{Comment: "cc"}, Shape: core.Shape{Tasks: 1, CPUsPerTask: 1},
		},
		Alloc: &core.Alloc{Partition: "main", Nodes: []core.NodeAlloc{{Node: "n001", CPUs: 1}}},
	}
	for kind, want := range map[string][]string{
		"BEGIN": {"SLURM_JOB_MAIL_TYPE=Began", "SLURM_JOB_QUEUED_TIME=00:00:05"},
		"FAIL": {
			"SLURM_JOB_MAIL_TYPE=Failed", "SLURM_JOB_RUN_TIME=00:01:03", "SLURM_JOB_EXIT_CODE=768",
			"SLURM_JOB_EXIT_CODE2=3:0", "SLURM_JOB_EXIT_CODE_MAX=3", "SLURM_JOB_DERIVED_EC=256", "SLURM_JOB_STATE=FAILED",
		},
		"TIME_LIMIT_50": {"SLURM_JOB_MAIL_TYPE=Reached 50% of time limit"},
		"END": {
			"SLURM_JOBID=28", "SLURM_JOB_ID=28", "SLURM_JOB_NAME=mj", "SLURM_JOB_ACCOUNT=acc", "SLURM_JOB_COMMENT=cc",
			"SLURM_JOB_CPUS_PER_NODE=1", "SLURM_JOB_UID=0", "SLURM_JOB_GID=0", "SLURM_JOB_GROUP=root",
			"SLURM_JOB_NODELIST=n001", "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_PARTITION=main", "SLURM_JOB_RESTART_COUNT=0",
			"SLURM_JOB_STDIN=/dev/null", "SLURM_JOB_USER=root", "SLURM_JOB_WORK_DIR=/tmp",
		},
	} {
		got := environment(j, kind, 0, core.Exit{Code: 1})
		if slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, "SLURM_JOB_GROUP=") }) {
			t.Error("a group is looked up while a commit is published")
		}
		got = append(got, groupOf(j.Spec.GID)...)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %s is not in %q", kind, w, got)
			}
		}
	}
}

// TestRequeueSubject: the subject of a requeue tells how long the job ran.
func TestRequeueSubject(t *testing.T) {
	t.Parallel()
	s := New(func() Config { return Config{Program: "/bin/true"} }, slog.New(slog.DiscardHandler))
	spec := &core.Spec{Name: "mj3", User: "ann", Extra: &core.Extra{MailTypes: "REQUEUE"}}
	start := core.At(time.Now().Add(-time.Hour))
	s.handleEvent(core.JobStarted, &core.Job{ID: 109, State: core.Running, Start: start, Spec: spec})
	s.handleEvent(core.JobRequeued, &core.Job{ID: 109, Spec: spec})
	l := <-s.queue
	if !strings.HasPrefix(l.subject, "Slurm Job_id=109 Name=mj3 Requeued, Run time 01:00:0") ||
		!slices.Contains(l.env, "SLURM_JOB_MAIL_TYPE=Requeued") || len(s.started) != 0 {
		t.Errorf("%q %q", l.subject, l.env)
	}
}
