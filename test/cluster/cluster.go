package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
)

// T is what a cluster needs of a test.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// Options say what cluster to start.
type Options struct {
	Nodes  int    // 0: the machine itself; more: emulated nodes
	CPUs   int    // of each emulated node
	Memory string // of each node
	Gres   string
	Store  string   // empty: SQLite in the cluster's directory
	Set    []string // settings, KEY=VALUE; laid over the timers of tests
	Args   []string // more arguments of standalone
	Tools  string   // a directory of programs that its daemons find before the machine's own
}

// timers are those of every test cluster: what is minutes in a machine room is milliseconds here.
var timers = []string{
	"timers.heartbeat=100ms", "timers.silent_after=1s", "timers.kill_wait=500ms", "timers.unkillable_after=5s",
	"timers.grace=500ms", "timers.lease=2s",
}

// Cluster is a standalone cluster under test.
type Cluster struct {
	Layout
	T     T
	Links string // the commands by their Slurm names
	Work  string // anybody may write here
	Env   []string
	opt   Options
	bin   string
}

// Layout is where a cluster keeps its files; it finds the processes, logs and leftovers of the cluster.
type Layout struct {
	Base  string // everything below here is removed at the end
	Dir   string // the --dir of standalone
	trees *trees
}

// trees are the cgroup directories that the keepers of a cluster have had.
type trees struct {
	mu   sync.Mutex
	seen map[string]bool
}

// For returns the same cluster for a subtest. Settings and starts stay with the test that made it.
func (c *Cluster) For(t T) *Cluster {
	d := *c
	d.T = t
	return &d
}

// Bin is the directory with the built programs.
func Bin() (string, error) {
	bin := os.Getenv("BIREME_BIN")
	if bin == "" {
		return "", errors.New("BIREME_BIN names no folder with the built programs: run `make test`, or `make build` " +
			"and set it")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"bireme", "biremed", "bireme-step"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", fmt.Errorf("BIREME_BIN: %w: run `make build`", err)
		}
	}
	return bin, nil
}

// New prepares a directory for a cluster without starting one.
func New(t T, opt Options) *Cluster {
	t.Helper()
	bin, err := Bin()
	if err != nil {
		t.Fatalf("%v", err)
	}
	base, err := os.MkdirTemp("/tmp", "bt-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	c := &Cluster{
		Layout: Layout{Base: base, Dir: filepath.Join(base, "d"), trees: &trees{seen: map[string]bool{}}},
		T:      t, Links: filepath.Join(base, "links"), Work: filepath.Join(base, "work"), opt: opt, bin: bin,
	}
	err = errors.Join(os.Chmod(base, 0o755), os.Mkdir(c.Work, 0o777), os.Chmod(c.Work, 0o777|os.ModeSticky))
	if err != nil {
		t.Fatalf("%v", err)
	}
	if out, err := exec.Command(filepath.Join(bin, "bireme"), "links", c.Links).CombinedOutput(); err != nil {
		t.Fatalf("bireme links: %v: %s", err, out)
	}
	t.Cleanup(c.Close)
	return c
}

// Start starts a cluster and returns when it is ready.
func Start(t T, opt Options) *Cluster {
	t.Helper()
	c := New(t, opt)
	if err := c.Up(); err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// Args is standalone's command line.
func (c *Cluster) Args() []string {
	args := []string{"standalone", "--dir", c.Dir, "--detach"}
	if c.opt.Nodes > 0 {
		args = append(args, "--nodes", fmt.Sprint(c.opt.Nodes))
	}
	if c.opt.CPUs > 0 {
		args = append(args, "--cpus", fmt.Sprint(c.opt.CPUs))
	}
	if c.opt.Memory != "" {
		args = append(args, "--memory", c.opt.Memory)
	}
	if c.opt.Gres != "" {
		args = append(args, "--gres", c.opt.Gres)
	}
	set := slices.Concat(timers, c.opt.Set)
	if c.opt.Store != "" {
		set = append(set, "server.store="+c.opt.Store)
	}
	for _, kv := range set {
		args = append(args, "--set", kv)
	}
	return append(args, c.opt.Args...)
}

// Up starts the cluster, or starts it again on what it held.
func (c *Cluster) Up() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.T.Context()), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Program("biremed"), c.Args()...)
	cmd.Dir = c.Base
	cmd.Env = plainEnv()
	if c.opt.Tools != "" {
		cmd.Env = append(cmd.Env, "PATH="+c.opt.Tools+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("biremed standalone: %w: %s%s", err, out, stderr.String())
	}
	return c.exports(string(out))
}

// exports reads what a shell would be told to export.
func (c *Cluster) exports(text string) error {
	c.Env = nil
	for line := range strings.Lines(text) {
		kv, ok := strings.CutPrefix(strings.TrimSpace(line), "export ")
		if name, value, found := strings.Cut(kv, "="); ok && found {
			c.Env = append(c.Env, name+"="+strings.Trim(value, `'";`))
		}
	}
	if len(c.servers()) == 0 {
		return fmt.Errorf("standalone exported no BIREME_SERVER: %q", text)
	}
	return nil
}

func (c *Cluster) env(name string) string {
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func (c *Cluster) servers() []string {
	return strings.Split(c.env("BIREME_SERVER"), ",")
}

// Client returns a client that tries a call again for at most the given time; 0: never.
func (c *Cluster) Client(again time.Duration) *client.Client {
	c.T.Helper()
	cl, err := client.New(client.Settings{Servers: c.servers(), CA: c.env("BIREME_CA"), Timeout: again})
	if err != nil {
		c.T.Fatalf("%v", err)
	}
	return cl
}

// HTTP returns a client that trusts the cluster's CA.
func (c *Cluster) HTTP() *http.Client {
	c.T.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "ca.pem"))
	if err != nil {
		c.T.Fatalf("%v", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// Program is the path of a built program.
func (c *Cluster) Program(name string) string { return filepath.Join(c.bin, name) }

// Stop ends the cluster the way its owner does and leaves what it holds.
func (c *Cluster) Stop() error {
	c.noteTrees()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.T.Context()), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Program("biremed"), "stop", "--dir", c.Dir)
	cmd.Env = plainEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("biremed stop: %w: %s", err, out)
	}
	return nil
}

// Close stops the cluster for good and reports whatever is left of it.
func (c *Cluster) Close() {
	c.T.Helper()
	if _, err := os.Stat(c.Dir); err == nil {
		if err := c.Stop(); err != nil {
			c.T.Errorf("%v", err)
		}
	}
	for _, what := range c.panics() {
		c.T.Errorf("a daemon panicked: %s", what)
	}
	for _, what := range c.Left() {
		c.T.Errorf("left behind: %s", what)
	}
	if c.T.Failed() {
		c.T.Logf("%s", c.Logs())
		c.killRest()
		if os.Getenv("BIREME_KEEP") != "" {
			c.T.Logf("kept: %s", c.Base)
			return
		}
	}
	if err := os.RemoveAll(c.Base); err != nil {
		c.T.Errorf("%v", err)
	}
}

// panicLine begins what a daemon writes when it panics, or when one of its handlers does and it continues.
var panicLine = regexp.MustCompile(`(?m)^(panic: |fatal error: |.*"?panic in (a handler|the engine)"?).*$`)

// panics lists the panics in the logs of the cluster's daemons.
func (c *Layout) panics() []string {
	var out []string
	for _, name := range c.logFiles() {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if at := panicLine.FindIndex(data); at != nil {
			out = append(out, fmt.Sprintf("%s: %s", strings.TrimPrefix(name, c.Dir+"/"), data[at[0]:min(len(data), at[1]+4000)]))
		}
	}
	return out
}

// logFiles are the logs of the cluster's daemons.
func (c *Layout) logFiles() []string {
	var out []string
	for _, pattern := range []string{"log/*", "nodes/*/*.log"} {
		names, _ := filepath.Glob(filepath.Join(c.Dir, pattern)) // the pattern is good
		out = append(out, names...)
	}
	return out
}

// killRest ends what a broken cluster left, so that one failure does not become many.
func (c *Cluster) killRest() {
	for _, p := range c.processes() {
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			c.T.Logf("kill %d: %v", p.pid, err)
		}
	}
}

// Logs is the end of every log of the cluster.
func (c *Layout) Logs() string {
	var b strings.Builder
	for _, name := range c.logFiles() {
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			continue
		}
		if len(data) > 6000 {
			data = data[len(data)-6000:]
		}
		fmt.Fprintf(&b, "--- %s\n%s\n", strings.TrimPrefix(name, c.Dir+"/"), data)
	}
	return b.String()
}

// Set adds settings for the next start.
func (c *Cluster) Set(kv ...string) { c.opt.Set = append(slices.Clone(c.opt.Set), kv...) }
