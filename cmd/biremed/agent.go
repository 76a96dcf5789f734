package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/agent"
	"bireme.dev/bireme/internal/agent/emulate"
	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/agent/rest"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// agentFlags are what `biremed agent` takes.
type agentFlags struct {
	servers  []string
	dir      string
	node     string
	token    string
	ca       string
	socket   string
	tmp      string
	keeper   string
	cgroup   string
	engine   string
	oci      string
	fleet    string
	features []string
	addr     string
	hardware hardwareFlags
	stopJobs bool
	replace  bool // end an agent that runs in dir
	leave    bool // end everything that runs in dir, and that is all

	// For standalone clusters.
	emulated bool
	hosts    string // enter the namespaces this process was born into, with this hosts file
	bootID   string
	probe    bool
}

// hardwareFlags replace what is found on the machine.
type hardwareFlags struct {
	CPUs    int32  `json:"cpus,omitempty"`
	Sockets int32  `json:"sockets,omitempty"`
	Cores   int32  `json:"cores,omitempty"`
	Threads int32  `json:"threads,omitempty"`
	Memory  string `json:"memory,omitempty"`
	TmpDisk string `json:"tmp_disk,omitempty"`
	Gres    string `json:"gres,omitempty"`
	Fake    string `json:"fake_gpus,omitempty"`
}

func (h *hardwareFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.Int32Var(&h.CPUs, "cpus", 0, "CPUs of the node instead of those found")
	f.Int32Var(&h.Sockets, "sockets", 0, "sockets of the node")
	f.Int32Var(&h.Cores, "cores", 0, "cores a socket")
	f.Int32Var(&h.Threads, "threads", 0, "threads a core")
	f.StringVar(&h.Memory, "memory", "", "memory of the node: 4096 (MiB), 16G")
	f.StringVar(&h.TmpDisk, "tmp-disk", "", "temporary disk of the node: 1024 (MiB), 1T")
	f.StringVar(&h.Gres, "gres", "", "generic resources instead of those found: gpu:a100:8,fpga:2; with the socket "+
		"they are at and which are joined: gpu:a100:2@1/1")
	f.StringVar(&h.Fake, "fake-gpus", "",
		"GPUs that are not there, to try things out: A100:80GB:8; they are shown as fake")
}

// args writes the flags that were given.
func (h *hardwareFlags) args() []string {
	var args []string
	for _, n := range []struct {
		name  string
		value int32
	}{{"cpus", h.CPUs}, {"sockets", h.Sockets}, {"cores", h.Cores}, {"threads", h.Threads}} {
		if n.value != 0 {
			args = append(args, "--"+n.name, strconv.Itoa(int(n.value)))
		}
	}
	for _, s := range [][2]string{{"memory", h.Memory}, {"tmp-disk", h.TmpDisk}, {"gres", h.Gres}, {"fake-gpus", h.Fake}} {
		if s[1] != "" {
			args = append(args, "--"+s[0], s[1])
		}
	}
	return args
}

// override checks the flags; every fault is told.
func (h *hardwareFlags) override() (hardware.Override, error) {
	o := hardware.Override{CPUs: h.CPUs, Sockets: h.Sockets, Cores: h.Cores, Threads: h.Threads}
	var errs []error
	for _, n := range []struct {
		name  string
		value int32
	}{{"cpus", h.CPUs}, {"sockets", h.Sockets}, {"cores", h.Cores}, {"threads", h.Threads}} {
		if n.value < 0 {
			errs = append(errs, core.Errorf(core.Invalid, "--%s %d: must be 1 or more", n.name, n.value))
		}
	}
	size := func(flag, text string) core.Bytes {
		v, err := mebibytes(text)
		if err != nil {
			errs = append(errs, core.Errorf(core.Invalid, "--%s: %v", flag, err))
		}
		return v
	}
	o.Memory, o.TmpDisk = size("memory", h.Memory), size("tmp-disk", h.TmpDisk)
	if h.Gres != "" {
		var err error
		if o.Gres, o.Units, err = config.ParseUnits(strings.Split(h.Gres, ",")...); err != nil {
			errs = append(errs, core.Errorf(core.Invalid, "--gres: %v", err))
		}
	}
	switch {
	case h.Fake != "" && h.Gres != "":
		errs = append(errs, core.Errorf(core.Invalid, "--gres and --fake-gpus cannot be used together"))
	case h.Fake != "":
		var err error
		if o.Fake, err = gpu.Fake(h.Fake); err != nil {
			errs = append(errs, core.Errorf(core.Invalid, "--fake-gpus: %v", err))
		}
	}
	return o, errors.Join(errs...)
}

// mebibytes reads a size; a bare number counts MiB, as Slurm's RealMemory does.
func mebibytes(text string) (core.Bytes, error) {
	if text == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		return core.Bytes(n) * core.MiB, nil
	}
	var s config.Size
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return 0, err
	}
	if s < 0 {
		return 0, fmt.Errorf("%q is negative", text)
	}
	return core.Bytes(s), nil
}

func newAgentCommand() *cobra.Command {
	var f agentFlags
	c := &cobra.Command{
		Use:   "agent --server HOST:PORT --dir DIR",
		Short: "run a node's daemon",
		Long: `Run the daemon of a node: it dials the server, runs what it is told, and offers the node's users a socket.

A node joins once, with a token from "bireme token join" and the cluster's CA; its certificate stays in DIR.
Jobs outlive the agent: stopping or upgrading it interrupts nothing, unless --stop-jobs is given.`,
		Args: noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return runAgent(ctx, &f)
		},
	}
	fl := c.Flags()
	fl.StringSliceVar(&f.servers, "server", nil, "servers, `HOST:PORT` or https://HOST:PORT, separated by commas")
	fl.StringVar(&f.dir, "dir", "/var/lib/bireme/agent", "the agent's `folder`")
	fl.StringVar(&f.node, "node", "", "`name` of the node (default: the host's)")
	fl.StringVar(&f.token, "token", "",
		"one-time token to join with; BIREME_JOIN_TOKEN works too and is not seen by others")
	fl.StringVar(&f.ca, "ca", "", "`file` with the cluster's CA, to join")
	fl.StringVar(&f.socket, "socket", "", "the socket offered to the node's users (default DIR/agent.sock)")
	fl.StringVar(&f.tmp, "tmp", "", "`folder` of jobs' temporary directories (default DIR/tmp)")
	fl.StringVar(&f.keeper, "keeper", "", "the step keeper's program (default: bireme-step beside this one)")
	fl.StringVar(&f.cgroup, "cgroup", "", "`name` of the node's cgroups; none: work without")
	fl.StringVar(&f.engine, "engine", "", engineHelp)
	fl.StringVar(&f.oci, "oci-runtime", "", "`program` that runs OCI bundles (default runc, then crun)")
	fl.StringVar(&f.fleet, "fleet", "", "fleet the node belongs to")
	fl.StringSliceVar(&f.features, "features", nil, "features of the node")
	fl.StringVar(&f.addr, "addr", "", "address other nodes reach this one by")
	fl.BoolVar(&f.stopJobs, "stop-jobs", false, "end all jobs of the node when the agent ends")
	f.hardware.add(c)
	fl.BoolVar(&f.emulated, "emulated", false, "")
	fl.StringVar(&f.hosts, "hosts", "", "")
	fl.StringVar(&f.bootID, "boot-id", "", "")
	fl.BoolVar(&f.probe, "probe", false, "")
	fl.BoolVar(&f.replace, "replace", false, "")
	fl.BoolVar(&f.leave, "leave", false, "")
	for _, name := range []string{"emulated", "hosts", "boot-id", "probe", "replace", "leave"} {
		_ = fl.MarkHidden(name) // they exist
	}
	return c
}

func runAgent(ctx context.Context, f *agentFlags) error {
	if f.hosts != "" {
		if err := emulate.Enter(f.node, f.hosts); err != nil {
			return err
		}
	}
	if f.probe {
		return nil
	}
	o, err := f.hardware.override()
	if err != nil {
		return err
	}
	o.NoDetect = f.emulated
	if f.dir, err = filepath.Abs(f.dir); err != nil {
		return err
	}
	if err := makeDir(f.dir); err != nil {
		return err
	}
	keeper := f.keeper
	if keeper == "" {
		if keeper, err = agent.FindKeeper(); err != nil {
			return err
		}
	}
	if f.leave {
		return emulate.Stop(ctx, []emulate.Node{{Name: core.NodeName(f.node), Dir: f.dir}}, keeper)
	}
	if f.replace {
		if err := emulate.EndAgent(ctx, f.dir); err != nil {
			return err
		}
	}
	lock, err := emulate.HoldNode(f.dir)
	if errors.Is(err, process.ErrRunning) {
		return core.Errorf(core.Conflict, "another agent runs in %s", f.dir)
	}
	if err != nil {
		return err
	}
	defer lock.Release() // the kernel releases it with the process
	if err := joinOnce(ctx, f); err != nil {
		return err
	}
	spec := emulate.Node{Dir: f.dir}.Keeper(keeper)
	spec.Cgroup = f.cgroup
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	a, err := agent.New(ctx, agent.Options{
		Dir: f.dir, Servers: f.servers, Socket: f.socket, TmpBase: f.tmp, Version: version, Features: f.features,
		Fleet: f.fleet,
		Addr:  f.addr, BootID: f.bootID, Emulated: f.emulated, Override: o, Keeper: spec, Engine: f.engine,
		OCIRuntime: f.oci, StopJobs: f.stopJobs,
	}, log)
	if err != nil {
		return err
	}
	rest.GiveBack() // what only the start needed
	return a.Run(ctx)
}

// joinOnce joins the cluster if a token is given and the node has no certificate.
func joinOnce(ctx context.Context, f *agentFlags) error {
	token := f.token
	if token == "" {
		token = os.Getenv("BIREME_JOIN_TOKEN")
	}
	if err := os.Unsetenv("BIREME_JOIN_TOKEN"); err != nil { // nobody below has any use for it
		return err
	}
	if token == "" || agent.HasJoined(f.dir, f.ca) {
		return nil
	}
	name := f.node
	if name == "" {
		var err error
		if name, err = shortHostname(); err != nil {
			return err
		}
	}
	if !hostlist.Valid(name) {
		return core.Errorf(core.Invalid, "--node %s: not a node's name", name)
	}
	if f.ca == "" {
		return core.Errorf(core.Invalid, "--token needs --ca: the file with the cluster's CA")
	}
	return agent.Join(ctx, f.dir, slices.Clone(f.servers), core.NodeName(name), token, f.ca)
}

func shortHostname() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	short, _, _ := strings.Cut(name, ".")
	return short, nil
}

const engineHelp = "`socket` of the container engine, Docker's or Podman's, or apptainer, singularity or enroot " +
	"(default /var/run/docker.sock, then /run/podman/podman.sock, then the first of those programs)"
