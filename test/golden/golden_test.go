//go:build e2e

package golden

import (
	"bufio"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/slurm/slurmtest"
	"bireme.dev/bireme/test/cluster"
)

// TestReplay types the commands once and compares each with its recording.
func TestReplay(t *testing.T) {
	conf, owner := writeConf(t)
	c := cluster.Start(t, cluster.Options{Args: []string{"--slurm-conf", conf}})
	out := os.Getenv("GOLDEN_OUT") // kept, to look at
	if out == "" {
		out = t.TempDir()
	}
	script, err := filepath.Abs("testdata/play.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.Root().In(c.Work).Command(t.Context(), "/bin/bash", script, out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("play.sh: %v\n%s", err, text)
	} else if len(text) > 0 {
		t.Logf("play.sh: %s", text)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	waived, open := readWaived(t), readOpen(t)
	played, err := filepath.Glob(filepath.Join(out, "*.rc"))
	if err != nil || len(played) == 0 {
		t.Fatalf("nothing was played: %v", err)
	}
	for _, rc := range played {
		name := strings.TrimSuffix(filepath.Base(rc), ".rc")
		t.Run(name, func(t *testing.T) {
			want, code := slurmtest.Golden(t, name)
			got := read(t, filepath.Join(out, name+".txt"))
			r := reader{names: [][2]string{{c.Work, "/tmp/golden"}, {host, "vm"}, {owner, "slurm(64030)"}}}
			diff := r.alike(want, got, waived[name].and(waived["*"]))
			if left := strings.TrimSpace(read(t, rc)); left != "-" && left != strconv.Itoa(code) {
				diff = append(diff, "left with "+left+", recorded "+strconv.Itoa(code))
			}
			switch {
			case len(diff) > 0 && open[name] == "":
				t.Errorf("%s", strings.Join(diff, "\n"))
			case len(diff) == 0 && open[name] != "":
				t.Errorf("it is as recorded now: take it out of testdata/open.txt")
			}
		})
	}
}

// writeConf copies the recorder's slurm.conf. Its SlurmUser was an account of the recorder's packages; here it is one
// that every machine has, and owner is how `scontrol show config` shows it.
func writeConf(t *testing.T) (file, owner string) {
	t.Helper()
	const recorded, here = "SlurmUser=slurm\n", "daemon"
	u, err := user.Lookup(here)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/conf")); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "slurm.conf")
	text := read(t, file)
	if !strings.Contains(text, recorded) {
		t.Fatalf("%s does not say %q", file, recorded)
	}
	text = strings.Replace(text, recorded, "SlurmUser="+here+"\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, here + "(" + u.Uid + ")"
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// readWaived reads lines of NAME,… WHAT REASON, where WHAT is /REGEXP/, s/REGEXP/TEXT/, "order" or "once".
func readWaived(t *testing.T) map[string]rules {
	out := map[string]rules{}
	each(t, "testdata/waived.txt", func(line string) {
		names, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		var add rules
		what, why, ok := strings.Cut(rest, " ")
		switch {
		case what == "order":
			add.any = true
		case what == "once":
			add.once = true
		case strings.HasPrefix(rest, "s/"):
			var expr, with string
			expr, rest, _ = strings.Cut(rest[2:], "/")
			with, why, ok = strings.Cut(rest, "/ ")
			add.edit = []edit{{regexp.MustCompile(expr), with}}
		default:
			var expr string
			expr, why, ok = strings.Cut(strings.TrimPrefix(rest, "/"), "/ ")
			add.drop = []*regexp.Regexp{regexp.MustCompile(expr)}
		}
		if !ok || strings.TrimSpace(why) == "" {
			t.Fatalf("waived.txt: %q does not give its reason", line)
		}
		for name := range strings.SplitSeq(names, ",") {
			out[name] = out[name].and(add)
		}
	})
	return out
}

// readOpen reads lines of NAME WHAT IS MISSING.
func readOpen(t *testing.T) map[string]string {
	out := map[string]string{}
	each(t, "testdata/open.txt", func(line string) {
		name, why, _ := strings.Cut(line, " ")
		if out[name] = strings.TrimSpace(why); out[name] == "" {
			t.Fatalf("open.txt: %q does not say what is missing", line)
		}
	})
	return out
}

func each(t *testing.T, file string, do func(string)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if line := strings.TrimSpace(in.Text()); line != "" && !strings.HasPrefix(line, "#") {
			do(line)
		}
	}
}

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		println("test/golden: needs root: the recordings are root's and another user's")
		os.Exit(1)
	}
	if _, err := exec.LookPath("runuser"); err != nil {
		println("test/golden:", err.Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}
