//go:build e2e

package hostile

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// What --mail-user names is an address or is refused, whichever way it comes; the mail program runs without the
// server's rights and environment, and one user's jobs send no more than the site allows.
func TestMailIsNoWayIn(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "bt-mail-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, sent, owned := filepath.Join(dir, "mail"), filepath.Join(dir, "sent"), filepath.Join(dir, "owned")
	script := "#!/bin/sh\necho \"$# $SLURM_JOB_ID $SLURM_JOB_USER uid=$(id -u) gids=$(id -G) home=$HOME to=$3 " +
		"subject=$2\" >>" + sent + "\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sent, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, sent: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{
		Nodes: 1, CPUs: 8, Set: []string{"mail.program=" + program, "limits.mail_per_hour=5"},
	})
	m, v := c.As(mallory), visit(t, c, mallory)
	for _, to := range []string{
		"|touch " + owned, "/" + owned, "-oQ" + dir, "ann\nBcc: all@site.example",
		"a;touch " + owned, "$(touch " + owned + ")", ":include:/etc/shadow", "ann,|sh",
	} {
		r := m.Try("sbatch", "--mail-type=ALL", "--mail-user="+to, "--wrap", "true")
		if r.Code == 0 || !strings.Contains(r.Err, "mail_user") {
			t.Errorf("%q", r)
		}
	}
	held := m.Sbatch("-H", "--mail-type=ALL", "--mail-user=ann@site.example", "--wrap", "true")
	for _, body := range []string{
		`{"mail_user":"|sh"}`, `{"mail_user":"/tmp/x"}`, `{"mail_user":"a\nb"}`,
		`{"mail_types":"ALL;x"}`, `{"mail_types":"nonsense"}`,
	} {
		if code, text := v.call("PATCH", "/api/v1/jobs/"+held, body); code != 400 {
			t.Errorf("PATCH %s answers %d %s", body, code, text)
		}
	}
	if r := m.Try("scontrol", "update", "jobid="+held, "mailuser=|sh"); r.Code == 0 {
		t.Errorf("%v", r)
	}
	if code, text := v.call("POST", "/api/v1/jobs",
		`{"spec":{"name":"x","shape":{},"io":{"workdir":"/tmp"},"from":{},`+
			`"extra":{"mail_user":"-X","mail_types":"END"}},"script":"#!/bin/sh\n"}`); code != 400 {
		t.Errorf("POST answers %d %s", code, text)
	}

	id := m.Sbatch("--mail-type=END,ARRAY_TASKS", "--mail-user=ann@site.example", "--array=1-40", "-o", "/dev/null",
		"--wrap", "true")
	other := c.As(victim).Sbatch("--mail-type=END", "--mail-user=bob@site.example", "-d", "afterany:"+id, "-o",
		"/dev/null", "--wrap", "true")
	c.WaitState(other, core.Completed)
	read := func() []string {
		data, err := os.ReadFile(sent)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	c.Eventually("the victim's letter comes", func() (bool, string) {
		all := strings.Join(read(), "\n")
		return strings.Contains(all, "to=bob@site.example"), all
	})
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually("five letters and the one that says so", func() (bool, string) {
		all := strings.Join(read(), "\n")
		return strings.Count(all, "to=ann@") == 6 && strings.Count(all, "limits.mail_per_hour is 5") == 1, all
	})
	for _, line := range read() {
		if !strings.HasPrefix(line, "3 ") || !strings.Contains(line, " uid="+nobody.Uid+" gids="+nobody.Gid+" home=/ ") {
			t.Errorf("the mail program ran as: %s", line)
		}
	}
	if _, err := os.Stat(owned); err == nil {
		t.Error("a command of the attacker's ran")
	}
}
