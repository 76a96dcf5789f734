package mail

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
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
