package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/conf"
)

// standaloneFlags are what `biremed standalone` takes. They are kept in DIR: a later start takes those it is not given.
type standaloneFlags struct {
	Nodes      int           `json:"nodes,omitempty"` // 0: the machine itself
	NodeNames  string        `json:"node_names,omitempty"`
	Prefix     string        `json:"node_prefix,omitempty"`
	Hardware   hardwareFlags `json:"hardware"`
	Features   []string      `json:"features,omitempty"`
	Listen     string        `json:"listen,omitempty"`
	Store      string        `json:"store,omitempty"`
	Config     string        `json:"config,omitempty"`
	Set        []string      `json:"set,omitempty"`
	Cgroup     string        `json:"cgroup,omitempty"`
	Engine     string        `json:"engine,omitempty"`
	OCIRuntime string        `json:"oci_runtime,omitempty"`
	SlurmConf  string        `json:"slurm_conf,omitempty"`

	site    *conf.Conf // what SlurmConf says
	dir     string
	detach  bool
	timeout time.Duration
	ready   int // file descriptor to report to
	given   int // descriptor the flags with secrets are read from; 0: none
}

// maxNodes bounds an emulated cluster: each node is two processes.
const maxNodes = 10000

func newStandaloneCommand() *cobra.Command {
	var f standaloneFlags
	c := &cobra.Command{
		Use:   `standalone [--dir DIR] [--detach] [--nodes N]`,
		Short: "run a whole cluster on this machine",
		Long: `Run a server and its nodes on this machine: the machine itself as the only node, or N emulated ones,
each an agent of its own that runs real processes, with its own host name, address and hosts file.

  eval "$(biremed standalone --dir DIR --detach)"    returns when the cluster is ready, and the shell's commands use it
  biremed stop --dir DIR                             ends it; the same DIR starts again with what it held

What it prints is for the shell: exports when the cluster is ready, and "false" when it is not, with the
cause on stderr.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				fmt.Fprintln(c.OutOrStdout(), "false")
				return core.Errorf(core.Invalid, "unexpected argument %q: standalone takes only options", args[0])
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			err := runStandalone(ctx, c, &f)
			if err != nil {
				fmt.Fprintln(c.OutOrStdout(), "false")
			}
			return err
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		fmt.Fprintln(c.OutOrStdout(), "false")
		return flagError(err)
	})
	fl := c.Flags()
	fl.StringVar(&f.dir, "dir", "", "`folder` of everything it writes (default: the user's state folder)")
	fl.BoolVar(&f.detach, "detach", false, "return when the cluster is ready and leave it running")
	fl.IntVar(&f.Nodes, "nodes", 0, "emulate `N` nodes (default: this machine is the only node)")
	fl.StringVar(&f.NodeNames, "node-names", "", "names of emulated nodes: `n[001-008]`")
	fl.StringVar(&f.Prefix, "node-prefix", "n", "emulated nodes are called PREFIX1, PREFIX2, …")
	fl.StringSliceVar(&f.Features, "features", nil, "features of the nodes")
	fl.StringVar(&f.Listen, "listen", "", "open the HTTP API on `HOST:PORT`, with TLS by the cluster's CA")
	fl.StringVar(&f.Store, "store", "", "`URL` of the store (default: SQLite in DIR)")
	fl.StringVar(&f.Config, "config", "", "config `file` (default DIR/config.yml, if there is one)")
	fl.StringArrayVar(&f.Set, "set", nil, "a setting, `KEY=VALUE`: timers.heartbeat=100ms")
	fl.StringVar(&f.Cgroup, "cgroup", "", "none: work without cgroups")
	fl.StringVar(&f.Engine, "engine", "", engineHelp)
	fl.StringVar(&f.OCIRuntime, "oci-runtime", "", "`program` that runs OCI bundles (default runc, then crun)")
	fl.StringVar(&f.SlurmConf, "slurm-conf", "", "a site's slurm.conf: emulate every node it names and take its "+
		"settings from it")
	fl.DurationVar(&f.timeout, "timeout", 60*time.Second, "how long the cluster may take to become ready")
	f.Hardware.add(c)
	fl.IntVar(&f.ready, "ready-fd", 0, "")
	_ = fl.MarkHidden("ready-fd") // it exists
	fl.IntVar(&f.given, "given-fd", 0, "")
	_ = fl.MarkHidden("given-fd") // it exists
	return c
}

// runStandalone starts the cluster here, or in a process of its own.
func runStandalone(ctx context.Context, c *cobra.Command, f *standaloneFlags) error {
	if err := f.readGiven(c); err != nil {
		return err
	}
	if f.Cgroup != "" && f.Cgroup != "none" {
		return core.Errorf(core.Invalid, "--cgroup %s: expected none, which works without cgroups", f.Cgroup)
	}
	if err := f.settle(c); err != nil {
		return err
	}
	if f.detach {
		return f.start(ctx, c.OutOrStdout())
	}
	report := func(exports string) error {
		_, err := io.WriteString(c.OutOrStdout(), exports)
		return err
	}
	if f.ready == 0 {
		return f.run(ctx, os.Stderr, report)
	}
	syscall.CloseOnExec(f.ready) // agents outlive us: in their hands the pipe would stay open when we are killed
	pipe := os.NewFile(uintptr(f.ready), "ready")
	err := f.run(ctx, os.Stderr, func(exports string) error {
		return errors.Join(json.NewEncoder(pipe).Encode(started{Exports: exports}), pipe.Close())
	})
	if err != nil {
		told := &core.Error{Code: core.CodeOf(err), Message: err.Error()}
		var e *core.Error
		if errors.As(err, &e) {
			told.Faults = e.Faults
		}
		_ = json.NewEncoder(pipe).Encode(started{Error: told}) // closed, if it was ready before
	}
	return err
}

// started is what a detached cluster tells the process that started it.
type started struct {
	Exports string      `json:"exports,omitempty"`
	Error   *core.Error `json:"error,omitempty"`
}

// settle checks the flags, makes DIR, and takes what was not given from an earlier start.
func (f *standaloneFlags) settle(c *cobra.Command) error {
	var err error
	if f.dir, err = stateDir(f.dir); err != nil {
		return err
	}
	if err := f.owned(); err != nil {
		return err
	}
	if err := f.recall(c); err != nil {
		return err
	}
	if f.SlurmConf != "" {
		if err := f.readSite(c); err != nil {
			return err
		}
	}
	if f.NodeNames != "" {
		names, err := hostlist.Expand(f.NodeNames, maxNodes)
		if err != nil {
			return core.Errorf(core.Invalid, "--node-names %s: %v", f.NodeNames, err)
		}
		if c.Flags().Changed("nodes") && f.Nodes != len(names) {
			return core.Errorf(core.Invalid, "--node-names %s has %d names, but --nodes is %d", f.NodeNames, len(names), f.Nodes)
		}
		f.Nodes = len(names)
	}
	if f.Nodes < 0 || f.Nodes > maxNodes {
		return core.Errorf(core.Invalid, "--nodes %d: expected at most %d emulated nodes, or 0 for this machine itself",
			f.Nodes, maxNodes)
	}
	if !hostlist.Valid(f.Prefix + "1") {
		return core.Errorf(core.Invalid, "--node-prefix %s: a node name cannot begin like this", f.Prefix)
	}
	if _, err := f.Hardware.override(); err != nil {
		return err
	}
	if strings.ContainsAny(f.dir, ",\n") {
		return core.Errorf(core.Invalid, "--dir %q: must not contain a comma or a line break", f.dir)
	}
	if longest := filepath.Join(f.dir, "nodes", strings.Repeat("x", f.nameWidth()), "keeper.sock"); len(longest) > 107 {
		return core.Errorf(core.Invalid, "--dir %s: too long for the sockets in it; the kernel allows 107 characters",
			f.dir)
	}
	for _, dir := range []string{f.dir, filepath.Join(f.dir, "log"), filepath.Join(f.dir, "nodes")} {
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// owned looks at a DIR that is there already, before anything in it is read.
func (f *standaloneFlags) owned() error {
	if _, err := os.Lstat(f.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return makeDir(f.dir)
}

// readSite reads the site's slurm.conf and names the nodes after it.
func (f *standaloneFlags) readSite(c *cobra.Command) error {
	for _, flag := range []string{"nodes", "node-names", "node-prefix"} {
		if c.Flags().Changed(flag) {
			return core.Errorf(core.Invalid, "--%s: cannot be used with --slurm-conf, which names the nodes", flag)
		}
	}
	var err error
	if f.SlurmConf, err = filepath.Abs(f.SlurmConf); err != nil {
		return err
	}
	if f.site, err = conf.Read(f.SlurmConf); err != nil {
		return core.Errorf(core.NotFound, "--slurm-conf: %v", err)
	}
	names := siteNodes(f.site)
	if len(names) == 0 {
		return core.Errorf(core.Invalid, "--slurm-conf %s: it names no nodes", f.SlurmConf)
	}
	f.NodeNames = hostlist.Fold(names)
	return nil
}

func siteNodes(site *conf.Conf) (names []string) {
	for i := range site.Nodes {
		names = append(names, site.Nodes[i].Names...)
	}
	return names
}

func (f *standaloneFlags) nameWidth() int {
	w := len(f.Prefix) + len(strconv.Itoa(max(1, f.Nodes)))
	if f.NodeNames != "" {
		names, err := hostlist.Expand(f.NodeNames, maxNodes)
		for w = 0; err == nil && len(names) > 0; names = names[1:] {
			w = max(w, len(names[0]))
		}
	} else if f.Nodes == 0 {
		name, err := shortHostname()
		if err == nil {
			w = len(name)
		}
	}
	return w
}

func (f *standaloneFlags) savedFile() string { return filepath.Join(f.dir, "standalone.json") }

// recall takes the flags that were not given from the last start in DIR.
func (f *standaloneFlags) recall(c *cobra.Command) error {
	b, err := os.ReadFile(f.savedFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return foreign(f.dir, err)
	}
	var old standaloneFlags
	if err := json.Unmarshal(b, &old); err != nil {
		return fmt.Errorf("%s: %w", f.savedFile(), err)
	}
	given := c.Flags().Changed
	if given("nodes") || given("node-names") || given("node-prefix") || given("slurm-conf") {
		old.Nodes, old.NodeNames, old.Prefix, old.SlurmConf = f.Nodes, f.NodeNames, f.Prefix, f.SlurmConf
	}
	new := *f
	*f = old
	f.dir, f.detach, f.timeout, f.ready, f.given = new.dir, new.detach, new.timeout, new.ready, new.given
	h, n := &f.Hardware, &new.Hardware
	for flag, take := range map[string]func(){
		"features": func() { f.Features = new.Features }, "listen": func() { f.Listen = new.Listen },
		"store": func() { f.Store = new.Store }, "config": func() { f.Config = new.Config },
		"set": func() { f.Set = new.Set }, "cgroup": func() { f.Cgroup = new.Cgroup }, "engine": func() {
			f.Engine = new.Engine
		}, "oci-runtime": func() { f.OCIRuntime = new.OCIRuntime },
		"cpus": func() { h.CPUs = n.CPUs }, "sockets": func() { h.Sockets = n.Sockets }, "cores": func() {
			h.Cores = n.Cores
		},
		"threads": func() { h.Threads = n.Threads }, "memory": func() { h.Memory = n.Memory },
		"tmp-disk": func() { h.TmpDisk = n.TmpDisk }, "gres": func() { h.Gres = n.Gres },
		"fake-gpus": func() { h.Fake = n.Fake },
	} {
		if given(flag) {
			take()
		}
	}
	return nil
}

func (f *standaloneFlags) save() error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(f.savedFile(), append(b, '\n'), 0o600) // a store's URL may hold a password
}

// stateDir is the directory given, or the user's state directory.
func stateDir(dir string) (string, error) {
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", core.Errorf(core.Invalid, "there is no home directory: give --dir")
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "bireme")
	}
	return filepath.Abs(dir)
}

// start runs the cluster in a process of its own and returns when it is ready.
func (f *standaloneFlags) start(ctx context.Context, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	logName := filepath.Join(f.dir, "log", "standalone.log")
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
	if err != nil {
		return foreign(f.dir, err)
	}
	defer log.Close()
	if err := log.Chmod(0o640); err != nil { // an older version made it for everybody
		return err
	}
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := (&cluster{f: f, notes: os.Stderr}).base(); err != nil { // what it starts writes all notes to its log
		return err
	}
	cmd := exec.Command(self, f.args()...)
	cmd.Stdout, cmd.Stderr = log, log
	given, err := f.passGiven()
	if err != nil {
		return err
	}
	defer given.Close()
	cmd.ExtraFiles = []*os.File{w, given} // descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it cleans up and ends
	defer stop()
	var s started
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		_ = cmd.Wait() // why it ended is in its log
		return core.Errorf(core.Unavailable, "the cluster did not start: %s", lastLine(logName, from))
	}
	if s.Error != nil {
		_ = cmd.Wait() // it has told why
		return s.Error
	}
	_, err = io.WriteString(out, s.Exports)
	return errors.Join(err, cmd.Process.Release())
}

func lastLine(name string, from int64) string {
	b, err := os.ReadFile(name)
	if err != nil || int64(len(b)) <= from {
		return "see " + name
	}
	lines := bytes.Split(bytes.TrimSpace(b[from:]), []byte{'\n'})
	return string(lines[len(lines)-1])
}

// passed are the flags that may hold a store's password: no process is given them as arguments, which everybody sees.
type passed struct {
	Store string
	Set   []string
}

// passGiven returns the end of a pipe from which another process reads them.
func (f *standaloneFlags) passGiven() (*os.File, error) {
	b, err := json.Marshal(passed{Store: f.Store, Set: f.Set})
	if err != nil {
		return nil, err
	}
	if len(b) > 32<<10 { // as much as a pipe holds for sure
		return nil, core.Errorf(core.Invalid,
			"--set: %d bytes is too long: put the settings into a file and give it with --config", len(b))
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, werr := w.Write(b)
	return r, errors.Join(werr, w.Close())
}

func (f *standaloneFlags) readGiven(c *cobra.Command) error {
	if f.given == 0 {
		return nil
	}
	pipe := os.NewFile(uintptr(f.given), "given")
	defer pipe.Close()
	var p passed
	if err := json.NewDecoder(pipe).Decode(&p); err != nil {
		return fmt.Errorf("--given-fd: %w", err)
	}
	if err := c.Flags().Set("store", p.Store); err != nil {
		return err
	}
	f.Set = p.Set
	c.Flags().Lookup("set").Changed = true
	return nil
}

// args are the flags as another process is given them.
func (f *standaloneFlags) args() []string {
	args := []string{"standalone", "--dir", f.dir, "--ready-fd", "3", "--given-fd", "4", "--timeout", f.timeout.String()}
	switch {
	case f.SlurmConf != "":
		args = append(args, "--slurm-conf", f.SlurmConf)
	case f.NodeNames != "":
		args = append(args, "--node-prefix", f.Prefix, "--node-names", f.NodeNames)
	default:
		args = append(args, "--node-prefix", f.Prefix, "--nodes", strconv.Itoa(f.Nodes))
	}
	for _, s := range [][2]string{
		{"listen", f.Listen},
		{"config", f.Config},
		{"cgroup", f.Cgroup},
		{"engine", f.Engine},
		{"oci-runtime", f.OCIRuntime},
		{"features", strings.Join(f.Features, ",")},
	} {
		args = append(args, "--"+s[0]+"="+s[1])
	}
	return append(args, f.Hardware.args()...)
}
