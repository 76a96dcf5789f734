//go:build e2e

package hostile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/cluster"
)

// Secrets of the victim, each found by its own text.
const (
	envSecret    = "MARK-env-5b1f0c9e"
	exportSecret = "MARK-export-77ab3d10"
	plainSecret  = "MARK-plain-e1d2c3b4" // of a variable whose name says nothing
	imageSecret  = "MARK-registry-0f1e2d3c"
	applySecret  = "MARK-apply-c0ffee42"
	scriptSecret = "MARK-script-90d1a2b3"
	fleetSecret  = "MARK-fleet-1a2b3c4d"
)

// forms are how a secret could lie somewhere.
func forms(secrets ...string) map[string][]byte {
	out := map[string][]byte{}
	for _, s := range secrets {
		out[s] = []byte(s)
		out[s+" in hexadecimal"] = []byte(hex.EncodeToString([]byte(s)))
		for shift := range 3 { // base64 of it wherever it stands in what is encoded
			text := base64.StdEncoding.EncodeToString([]byte("xyz"[:shift] + s))
			out[fmt.Sprintf("%s in base64 (%d)", s, shift)] = []byte(text[4 : len(text)-4])
		}
	}
	return out
}

// scan looks through all files below a directory.
func scan(t *testing.T, dir string, secrets map[string][]byte) (found []string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // it may be gone meanwhile
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // it may be gone meanwhile
		}
		seen++
		for name, text := range secrets {
			if bytes.Contains(data, text) {
				found = append(found, path+" holds "+name)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("looking through %s: %d files, %v", dir, seen, err)
	}
	return found
}

// peek is what mallory can learn from /proc of everybody's processes.
const peek = `for p in /proc/[0-9]*; do tr '\0' '\n' <$p/cmdline; tr '\0' '\n' <$p/environ; cat $p/comm $p/status; ` +
	`done 2>/dev/null; ps auxwwe; true`

func secretKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// stores are those that secrets must stay hidden in, with the directory that a thief would carry away.
func stores(t *testing.T) map[string][2]string {
	out := map[string][2]string{"sqlite": {"", ""}}
	if text := os.Getenv("TEST_POSTGRES_URL"); text != "" {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Join(u.Query().Get("host"), "data"); u.Query().Get("host") != "" {
			if _, err := os.Stat(dir); err == nil {
				out["postgres"] = [2]string{text, dir}
			}
		}
	}
	return out
}

// TestSecretsStayHidden: while the victim's jobs run with secrets in every place a user can put one, another user looks
// at every process and record that can be seen, and a thief at everything on the server's disk.
func TestSecretsStayHidden(t *testing.T) {
	for name, at := range stores(t) {
		t.Run(name, func(t *testing.T) { hidden(t, at[0], at[1]) })
	}
}

func hidden(t *testing.T, store, data string) {
	c := cluster.Start(t, cluster.Options{Store: store, Nodes: 1, CPUs: 8})
	v, m := c.As(victim), c.As(mallory)
	key := secretKey(t)
	keyLine := strings.Split(key, "\n")[1]
	all := forms(envSecret, exportSecret, plainSecret, imageSecret, applySecret, scriptSecret, fleetSecret)
	all["the fleet's key"] = []byte(keyLine)

	out := filepath.Join(c.Work, "out")
	script := "#!/bin/sh\necho ${#HF_TOKEN} started; sleep 300 # " + scriptSecret + "\n"
	batch := strings.TrimSpace(v.With("HF_TOKEN="+envSecret).TryIn(script, "sbatch", "--parsable", "-o", out).Out)
	c.WaitFile(out, "started")
	srunOut := filepath.Join(c.Work, "srun-out")
	srun := v.Command(t.Context(), filepath.Join(c.Links, "srun"), "--export=ALL,DB_PASSWORD="+exportSecret+
		",FOO="+plainSecret, "-o", srunOut, "sh", "-c", "echo ${#DB_PASSWORD} started; sleep 300")
	if err := srun.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = srun.Process.Kill(), srun.Wait() }()
	c.WaitFile(srunOut, "started")
	yaml := filepath.Join(c.Work, "run.dstack.yml")
	if err := os.WriteFile(yaml,
		[]byte("type: task\nname: held\nenv: [API_KEY]\ncommands: ['echo ${#API_KEY} started; sleep 300']\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	apply := v.Command(t.Context(), c.Program("bireme"), "apply", "-y", "-f", yaml, "-e", "API_KEY="+applySecret)
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = apply.Process.Kill(), apply.Wait() }()
	c.Eventually("the run writes", func() (bool, string) {
		r := v.Try("bireme", "logs", "held")
		return strings.Contains(r.Out, "started"), r.String()
	})
	// No node here runs containers; the password is stored, shown and logged all the same, or is not.
	image := filepath.Join(c.Work, "image.dstack.yml")
	if err := os.WriteFile(image, []byte("type: task\nname: image\nimage: example.test/a:1\nenv: [PW]\n"+
		"registry_auth: {username: me, password: \"${{ env.PW }}\"}\ncommands: [sleep 300]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	v.Try("bireme", "apply", "-y", "-d", "-f", image, "-e", "PW="+imageSecret)
	root := c.Client(0)
	spec := &client.FleetSpec{
		Keys: map[string]string{"k": key}, Env: []string{"AGENT_TOKEN=" + fleetSecret},
		Hosts: []client.FleetHostSpec{{SSHLogin: client.SSHLogin{Hostname: "127.0.0.1", Port: 1, User: "root", Key: "k"}}},
	}
	if _, err := root.PutFleet(t.Context(), "lab", spec); err != nil {
		t.Fatal(err)
	}

	look := func(what, text string) {
		t.Helper()
		for name, secret := range all {
			if strings.Contains(text, string(secret)) {
				t.Errorf("%s shows %s", what, name)
			}
		}
	}
	seen := m.Run("/bin/sh", "-c", peek)
	if !strings.Contains(seen, "srun") || !strings.Contains(seen, "apply") {
		t.Fatal("mallory sees no srun and no apply: the look proves nothing")
	}
	look("/proc and ps", seen)
	for _, line := range [][]string{
		{"squeue", "--all", "--Format=ALL"},
		{"squeue", "--json"},
		{"scontrol", "show", "job", batch},
		{"scontrol", "-d", "show", "job"},
		{"sacct", "-a", "--json"},
		{"sacct", "-a", "-P", "-o", "ALL"},
		{"bireme", "events", "--after", "0"},
		{"bireme", "ps", "-a"},
		{"bireme", "why", batch},
		{"bireme", "fleet", "list"},
		{"bireme", "audit", "--json"},
	} {
		r := m.Try(line[0], line[1:]...)
		look(strings.Join(line, " "), r.Out+r.Err)
		r = c.Root().Try(line[0], line[1:]...)
		look(strings.Join(line, " ")+" (root)", r.Out+r.Err)
	}
	if sacct := v.Run("sacct", "-P", "-o", "submitline"); !strings.Contains(sacct, "DB_PASSWORD=***,FOO=***") {
		t.Errorf("the victim's own submit line is %q", sacct)
	}

	folders := []string{c.Dir}
	if data != "" {
		folders = append(folders, data)
	}
	disk := func(when string) {
		t.Helper()
		for _, dir := range folders {
			for _, f := range scan(t, dir, all) {
				// A script is next to its job for its interpreter to read, until the next job has that place.
				if path, ours := strings.CutSuffix(f, " holds "+scriptSecret); ours && strings.Contains(path, "/keeper/spool/") {
					if r := m.Try("/bin/cat", path); r.Code == 0 {
						t.Errorf("%s: mallory reads %s", when, path)
					}
					continue
				}
				t.Errorf("%s: %s", when, f)
			}
		}
	}
	disk("while jobs run")
	v.Run("scancel", "-u", victim)
	c.WaitEnd(batch)
	if err := apply.Process.Signal(syscall.SIGKILL); err != nil {
		t.Log(err)
	}
	v.Try("bireme", "stop", "-y", "held")
	c.Eventually("nothing of them runs", func() (bool, string) {
		left := v.Run("squeue", "-h", "-u", victim)
		return left == "", left
	})
	disk("after the jobs")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	disk("after the server")
}

// TestRotationSurvivesKills: the server is killed again and again while it seals everything with another key; nothing
// is lost, the old key goes, and nobody but an administrator may ask for it.
func TestRotationSurvivesKills(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	m, root := c.As(mallory), c.Root()
	var jobs []string
	for i := range 40 {
		script := fmt.Sprintf("#!/bin/sh\n# job %d %s\n", i, strings.Repeat("x", 40<<10))
		jobs = append(jobs, strings.TrimSpace(m.TryIn(script, "sbatch", "--parsable", "--hold", "-o", "/dev/null").Out))
	}
	for _, what := range []string{"status", "rotate"} {
		if r := m.Try(c.Program("biremed"), "seal", what, "--dir", c.Dir); r.Code == 0 ||
			!strings.Contains(r.Err, "only an administrator") {
			t.Fatalf("mallory: %v", r)
		}
	}
	for n := range 3 {
		rotate := root.Command(t.Context(), c.Program("biremed"), "seal", "rotate", "--dir", c.Dir)
		if err := rotate.Start(); err != nil {
			t.Fatal(err)
		}
		if n == 1 { // also the command itself
			_ = rotate.Process.Kill()
		}
		c.KillServer()
		_ = rotate.Wait()
		if err := c.Up(); err != nil {
			t.Fatal(err)
		}
	}
	text := root.Run(c.Program("biremed"), "seal", "rotate", "--dir", c.Dir)
	if !strings.Contains(text, "and so is everything else") {
		t.Fatalf("rotate says %q", text)
	}
	ring, err := os.ReadFile(filepath.Join(c.Dir, "seal.key"))
	if err != nil || strings.Count(string(ring), "\n") != 2 || strings.Contains(string(ring), "\n1 ") {
		t.Fatalf("the ring has %d lines, %v", strings.Count(string(ring), "\n"), err)
	}
	for i, id := range jobs {
		file := filepath.Join(c.Work, "script-"+id)
		m.Run("scontrol", "write", "batch_script", id, file)
		b, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(b), fmt.Sprintf("# job %d x", i)) {
			t.Fatalf("the script of job %s: %v, %.60q", id, err, b)
		}
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	text = root.Run(c.Program("biremed"), "seal", "rotate", "--dir", c.Dir)
	if !strings.Contains(text, "the only one in") {
		t.Fatalf("without a server it says %q", text)
	}
}
