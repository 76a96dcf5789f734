package server_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// Mail goes through the site's program, with Slurm's subjects, to whom the job names or to its owner.
func TestMail(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "mail-") // below t.TempDir only its owner may look, and the program runs as nobody
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	pipe, program := filepath.Join(dir, "pipe"), filepath.Join(dir, "mail")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nread nothing && exit 1\necho \"$SLURM_JOB_MAIL_TYPE $1 $2 $3\" >" + pipe + "\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	in := bufio.NewReader(f)
	next := func() string {
		t.Helper()
		f.SetReadDeadline(time.Now().Add(servertest.Timeout))
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("no mail came: %v", err)
		}
		return strings.TrimSpace(line)
	}
	s := servertest.Start(t, "mail.program="+program, "mail.domain=site.example")
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	submit := func(types, user string, change func(*client.Submit)) core.JobID {
		return s.Submit(func(in *client.Submit) {
			in.Spec.Name = "deep"
			in.Spec.Extra = &core.Extra{MailTypes: types, MailUser: user}
			if change != nil {
				change(in)
			}
		})
	}
	want := func(text string) {
		t.Helper()
		if got := next(); got != text {
			t.Errorf("got  %q\nwant %q", got, text)
		}
	}

	id := submit("ALL", "ann@elsewhere", nil)
	key := n.AwaitLaunch(id, 1, wire.BatchStep)
	want("Began -s Slurm Job_id=1 Name=deep Began, Queued time 00:00:00 ann@elsewhere")
	n.End(key, nil)
	want("Ended -s Slurm Job_id=1 Name=deep Ended, Run time 00:00:00, COMPLETED, ExitCode 0 ann@elsewhere")

	id = submit("FAIL", "bob", nil)
	n.End(n.AwaitLaunch(id, 1, wire.BatchStep), func(x *wire.Exited) { x.ExitCode = 3 })
	want("Failed -s Slurm Job_id=2 Name=deep Failed, Run time 00:00:00, FAILED, ExitCode 3 bob@site.example")

	id = submit("BEGIN,END", "bob", func(in *client.Submit) { in.Spec.Array = "1-2" })
	one := n.AwaitLaunch(id+1, 1, wire.BatchStep)
	want("Began -s Slurm Array Summary Job_id=3_* (3) Name=deep Began, Queued time 00:00:00 bob@site.example")
	two := n.AwaitLaunch(id, 1, wire.BatchStep)
	n.End(one, func(x *wire.Exited) { x.ExitCode = 1 })
	n.End(two, nil)
	want("Ended -s Slurm Array Summary Job_id=3_* (3) Name=deep Ended, Mixed, ExitCode [0-1] bob@site.example")

	id = submit("END,ARRAY_TASKS", "bob", func(in *client.Submit) { in.Spec.Array = "7" })
	n.End(n.AwaitLaunch(id, 1, wire.BatchStep), nil)
	want("Ended -s Slurm Array Task Job_id=5_7 (5) Name=deep Ended, Run time 00:00:00, COMPLETED, ExitCode 0 " +
		"bob@site.example")

	failed := submit("NONE", "", nil)
	waits := submit("ALL", "ann", func(in *client.Submit) { in.Spec.Extra.Dependency = coretest.Dependency("afterok:6") })
	n.End(n.AwaitLaunch(failed, 1, wire.BatchStep), func(x *wire.Exited) { x.ExitCode = 1 })
	want("Invalid dependency -s Slurm Job_id=7 Name=deep Invalid dependency ann@site.example")
	_ = waits
}
