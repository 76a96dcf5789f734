package ssh

import (
	"archive/tar"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	plain := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	s, err := ParseKey(plain)
	if err != nil || !strings.HasPrefix(Fingerprint(s.PublicKey()), "SHA256:") {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"locked":  {pem.EncodeToMemory(locked), "has a passphrase"},
		"public":  {ssh.MarshalAuthorizedKey(s.PublicKey()), "this is a public key"},
		"nothing": {nil, "not a private key"},
		"cut":     {plain[:40], "not a private key"},
	} {
		if _, err := ParseKey(tc.text); core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// TestScriptsPassShells: what a script is given arrives unharmed through the login shell, sh and its own quotes.
func TestScriptsPassShells(t *testing.T) {
	t.Parallel()
	value := "it's \"$HOME\" `id` \\ \n two"
	out, err := exec.Command(
		"sh", "-c", asRoot(vars(map[string]string{"b": "x", "a": value})+`printf '%s|%s' "$a" "$b"`)).Output()
	if err != nil || string(out) != value+"|x" {
		t.Fatalf("got %q, %v", out, err)
	}
	for name, script := range map[string]string{
		"probe": probeScript, "upload": uploadScript, "start": startScript,
		"remove": removeScript, "log": logScript,
	} {
		if out, err := exec.Command("sh", "-n", "-c", prelude+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// TestHostsWords: a host is quoted by its last line, without what would steer a terminal and without end.
func TestHostsWords(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"": "", "one\n two \n\n": "two", "\x1b[2Jno\tspace\xff\r\n": "[2Jno space?",
		strings.Repeat("ä", 200): strings.Repeat("ä", 150) + "…",
	} {
		if got := lastLine(said); got != want {
			t.Errorf("%q is told as %q, want %q", said, got, want)
		}
	}
}

func TestAgentCommand(t *testing.T) {
	t.Parallel()
	a := &Agent{Node: "lab-0", Base: "/b", Programs: "s", Args: []string{"--server", "h:1,unix:/x", "--addr", "a b"}}
	if got := string(a.command()); got != "exec /b/bin/s/biremed agent --replace --dir /b/lab-0 --server h:1,unix:/x "+
		"--addr 'a b'\n" {
		t.Fatalf("got %q", got)
	}
	f := &Facts{Running: true, Command: Sum(a.command())}
	if !a.Same(f) {
		t.Error("it runs as it should")
	}
	if a.Key = []byte("new"); a.Same(f) {
		t.Error("a new key wants a start")
	}
}

// TestPrograms: a host gets every program there is but bireme-slurm, for which bireme does; an agent that lacks one
// finds out when a job needs it.
func TestPrograms(t *testing.T) {
	t.Parallel()
	list, err := os.ReadDir("../../../cmd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() != "bireme-slurm" && !slices.Contains(programs, e.Name()) {
			t.Errorf("%s is not among %v", e.Name(), programs)
		}
	}
}

// TestBundles: programs are packed once, with sums that name their content; what is not there is told.
func TestBundles(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	b := &Bundles{From: dir, Cache: cache}
	if _, err := b.For(runtime.GOARCH); core.CodeOf(err) != core.NotFound {
		t.Fatalf("got %v", err)
	}
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("program "+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// of an earlier version, and one that was cut off
	for _, old := range []string{"0123456789abcdef.tar.gz", ".bundle-77"} {
		if err := errors.Join(os.MkdirAll(cache, 0o755), os.WriteFile(filepath.Join(cache, old), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	x, err := b.For(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(left) != 1 || left[0] != x.file {
		t.Errorf("the cache has %q: %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, ".*")); err != nil || len(left) != 0 {
		t.Errorf("the cache has %q: %v", left, err)
	}
	if again, err := (&Bundles{From: dir, Cache: cache}).For(runtime.GOARCH); err != nil || again.Sum != x.Sum {
		t.Fatalf("packed again as %v, %v", again, err)
	}
	if _, err := b.For("riscv64"); core.CodeOf(err) != core.NotFound ||
		!strings.Contains(err.Error(), "no agent for riscv64 machines") {
		t.Fatalf("got %v", err)
	}
	f, err := x.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(data)
	}
	for _, name := range programs {
		if found[name] != "program "+name || !strings.Contains(found["sums"], Sum([]byte(found[name]))+"  "+name+"\n") {
			t.Errorf("%s: %q, sums %q", name, found[name], found["sums"])
		}
	}
}

// TestUnit: systemd has nothing to say against the unit, where it can be asked.
func TestUnit(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintf(unitText, "/var/lib/bireme/fleet/lab-0", "lab-0")
	for _, want := range []string{
		"ExecStart=/bin/sh /var/lib/bireme/fleet/lab-0/command\n", "Restart=always\n", // it comes back
		"StartLimitIntervalSec=0\n", // however often
		"KillMode=process\n",        // the keeper and jobs stay when it ends
		"Delegate=yes\n", "TasksMax=infinity\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %q:\n%s", want, text)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here to look at the unit")
	}
	file := filepath.Join(t.TempDir(), "bireme-agent-lab-0.service")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestProbeClears: what uploads left that were cut off is gone after the next look at the host, and one that continues
// is let be.
func TestProbeClears(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	cut, old, going := ".sum.999999999", ".sum."+strconv.Itoa(os.Getppid()), ".sum."+strconv.Itoa(os.Getpid())
	for _, d := range []string{cut, old, going, "sum"} {
		if err := os.MkdirAll(filepath.Join(base, "bin", d, "programs"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(base, "bin", old), past, past); err != nil {
		t.Fatal(err)
	}
	script := vars(map[string]string{"base": base, "dir": filepath.Join(base, "n1"), "sum": "sum", "systemd": ""}) +
		"loop() { false; }\n" + probeScript
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list, err := os.ReadDir(filepath.Join(base, "bin"))
	if err != nil || len(list) != 2 || list[0].Name() != going || list[1].Name() != "sum" {
		t.Errorf("left: %v %v", list, err)
	}
}
