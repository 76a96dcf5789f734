//go:build e2e

package hostile

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// evil is what a terminal acts on: it clears the screen, sets the title, writes a line of its own, in the old and the
// 8-bit form, and turns the direction of text.
const evil = "a\x1b[2J\x1b]0;owned\x07\r\nFAKE ROW\u009b31m\u202etxt.exe\u2066"

// tame reports whether nothing in a text makes a terminal do anything but show it.
func tame(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == unicode.ReplacementChar ||
			unicode.Is(unicode.Bidi_Control, r))
	}) < 0
}

// Names, comments and the like with control characters are refused, whichever way they come; what may hold them, such
// as paths, is shown without by every command.
func TestTerminalsAreLeftAlone(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4})
	m, v := c.As(mallory), visit(t, c, mallory)
	for _, option := range []string{
		"--job-name=", "--comment=", "--wckey=", "--constraint=", "--account=",
		"--partition=", "--licenses=",
	} {
		for _, text := range []string{evil, "x\x1bx", "x\nx", "x\u009bx", "x\u202ex", "x\x7fx"} {
			if r := m.Try("sbatch", option+text, "--wrap", "true"); r.Code == 0 || !tame(r.Err) {
				t.Errorf("%q", r)
			}
		}
	}
	own := m.Sbatch("-H", "-J", "übung 訓練", "--wrap", "true")
	for _, field := range []string{"name", "comment", "wckey", "mail_user", "partition"} {
		body, err := json.Marshal(map[string]string{field: evil})
		if err != nil {
			t.Fatal(err)
		}
		if code, text := v.call("PATCH", "/api/v1/jobs/"+own, string(body)); code != http.StatusBadRequest {
			t.Errorf("PATCH %s answers %d %s", body, code, text)
		}
	}
	for _, body := range []string{
		`{"spec":{"name":"a\u001b[2J","shape":{},"io":{"workdir":"/tmp"},"from":{}},"script":"#!/bin/sh\n"}`,
		`{"spec":{"name":"a\u202e","shape":{},"io":{"workdir":"/tmp"},"from":{}},"script":"#!/bin/sh\n"}`,
		`{"spec":{"name":"a","shape":{},"io":{"workdir":"/tmp"},"from":{},` +
			`"extra":{"comment":"\u009b31m"}},"script":"#!/bin/sh\n"}`,
	} {
		if code, text := v.call("POST", "/api/v1/jobs", body); code != http.StatusBadRequest ||
			!strings.Contains(text, "control characters") {
			t.Errorf("POST %s answers %d %s", body, code, text)
		}
	}

	dir := filepath.Join(c.Work, strings.ReplaceAll(evil, "/", "_"))
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "job"+evil)
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	id := m.Sbatch("-J", "x", "-D", dir, "-o", filepath.Join(dir, "out"), "-t", "10", script)
	c.WaitState(id, core.Running)
	bad := m.Sbatch("-o", filepath.Join(dir, "no", evil, "such"), "-t", "1", "--wrap", "true") // its end tells of the path
	c.WaitState(bad, core.Failed, core.Completed)
	c.Root().Run("scontrol", "update", "nodename=n1", "state=drain", "reason=x"+evil)
	see := c.As(victim)
	lines := append(listings(id), []string{"scontrol", "show", "job", bad}, []string{"bireme", "why", bad},
		[]string{"squeue", "-h", "-o", "%i %j %Z %o %k %R"},
		[]string{"sacct", "-a", "-P", "-o", "jobid,jobname,workdir,submitline"}, []string{"sinfo", "-R"},
		[]string{"scancel", evil}, []string{"squeue", "-j", evil}, []string{"squeue", "-u", evil},
		[]string{"bireme", "why", evil}, []string{"bireme", "stop", "-y", evil},
		[]string{"scontrol", "show", "job", evil}, []string{"scontrol", "show", "node", evil},
		[]string{"sacctmgr", "show", "user", evil}, []string{"bireme", "nodes", "n1"})
	for _, who := range []*cluster.Person{see, c.Root()} {
		for _, line := range lines {
			if r := who.Try(line[0], line[1:]...); !tame(r.Out) || !tame(r.Err) {
				t.Errorf("%s: %q", who.Name, r)
			}
		}
	}
	if out := see.Run("squeue", "-h", "-j", own, "-o", "%j"); out != "übung 訓練\n" {
		t.Errorf("a name in other scripts is shown as %q", out)
	}
	if out := see.Run("squeue", "-h", "-j", id, "-o", "%i|%Z|"); strings.Count(out, "\n") != 1 {
		t.Errorf("a path makes rows of its own: %q", out)
	}
}
