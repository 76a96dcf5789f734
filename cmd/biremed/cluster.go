package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/agent"
	"bireme.dev/bireme/internal/agent/emulate"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/server"
	"bireme.dev/bireme/internal/slurm/conf"
)

// stopTimeout bounds the end of a cluster: what cannot be killed by then is told.
const stopTimeout = 2 * time.Minute

// cluster is a standalone cluster in this process: the server, and the supervisor of the nodes' agents.
type cluster struct {
	f      *standaloneFlags
	log    *slog.Logger
	notes  io.Writer // for people
	self   string
	keeper string
	cfg    *config.Config
	nodes  []emulate.Node
	agents []string // where agents find the server, HOST:PORT
	api    *client.Client
}

// run is the cluster's life: it reports the shell's exports when all nodes are there and ends with ctx.
func (f *standaloneFlags) run(ctx context.Context, notes io.Writer, report func(exports string) error) error {
	lock, err := holdDir(f.dir)
	if err != nil {
		return err
	}
	defer release(lock) // the kernel releases it with the process
	c := &cluster{f: f, notes: notes, log: slog.New(slog.NewTextHandler(notes, nil))}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	database, err := holdStore(c.cfg)
	if err != nil {
		return err
	}
	defer release(database) // as above
	if err := f.save(); err != nil {
		return err
	}
	return c.live(ctx, report)
}

// prepare computes everything that can be wrong before anything is started.
func (c *cluster) prepare(ctx context.Context) error {
	var err error
	if c.self, err = os.Executable(); err != nil {
		return err
	}
	if c.keeper, err = agent.FindKeeper(); err != nil {
		return err
	}
	if c.nodes, err = c.f.nodes(); err != nil {
		return err
	}
	door, err := c.f.agentDoor()
	if err != nil {
		return err
	}
	if c.cfg, err = c.settings(door); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		c.noteUnreachable()
	}
	c.api, err = client.New(client.Settings{Servers: []string{"unix:" + c.cfg.Socket()}},
		client.WithTimeout(5*time.Second))
	return err
}

// settings reads the settings: the site's slurm.conf, the config file over it, and over both what the cluster was
// started with.
func (c *cluster) settings(door string) (*config.Config, error) {
	file := c.f.Config
	if file == "" {
		file = filepath.Join(c.f.dir, "config.yml")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			file = ""
		}
	}
	set := []string{"dir=" + c.f.dir, "server.listen=" + c.f.Listen, "server.agent_listen=" + door}
	if c.f.Store != "" {
		set = append(set, "server.store="+c.f.Store)
	}
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	var text []byte
	if file != "" {
		if text, err = os.ReadFile(file); err != nil {
			return nil, core.Errorf(core.NotFound, "read the settings: %v", err)
		}
	}
	cfg, err := config.ParseOver(base, file, text, append(set, c.f.Set...)...)
	if err != nil {
		return nil, err
	}
	c.declareNodes(cfg)
	return cfg, nil
}

// reload reads the settings again for a cluster that runs. Its nodes are those it was started with.
func (c *cluster) reload() (*config.Config, error) {
	if c.f.SlurmConf == "" {
		return c.settings(c.cfg.Server.AgentListen)
	}
	site, err := conf.Read(c.f.SlurmConf)
	if err != nil {
		return nil, core.Errorf(core.NotFound, "%v", err)
	}
	again := *c
	f := *c.f
	f.site, again.f = site, &f
	if names := hostlist.Fold(siteNodes(site)); names != c.f.NodeNames {
		return nil, core.Errorf(core.Invalid, "%s: names nodes %s, but this cluster has %s; restart the cluster to "+
			"change its nodes", f.SlurmConf, names, c.f.NodeNames)
	}
	return again.settings(c.cfg.Server.AgentListen)
}

// base returns the settings that the config file is laid over: the defaults, or what a site's slurm.conf makes of them.
// It tells what of that had no effect.
func (c *cluster) base() (*config.Config, error) {
	base := config.Default()
	if c.f.site == nil {
		return base, nil
	}
	notes, err := c.f.site.Apply(base)
	for _, n := range notes {
		if n.Missing() || c.log != nil {
			fmt.Fprintf(c.notes, "note: %s\n", n)
		}
	}
	return base, err
}

// described returns a node's flags for its agent where a slurm.conf says what the node is.
func (c *cluster) described() map[core.NodeName][]string {
	if c.f.site == nil {
		return nil
	}
	all := map[core.NodeName][]string{}
	for _, n := range c.cfg.CoreNodes() {
		hw := n.Hardware
		h := hardwareFlags{
			CPUs: hw.CPUs, Sockets: hw.Sockets, Cores: hw.Cores, Threads: hw.Threads,
			Memory: strconv.FormatInt(int64(hw.Memory/core.MiB), 10),
		}
		if hw.TmpDisk > 0 {
			h.TmpDisk = strconv.FormatInt(int64(hw.TmpDisk/core.MiB), 10)
		}
		h.Gres = strings.Join(config.FormatUnits(&hw), ",")
		args := h.args()
		if len(n.Features) > 0 {
			args = append(args, "--features", strings.Join(n.Features, ","))
		}
		all[n.Name] = args
	}
	return all
}

// declareNodes makes emulated nodes known in the order of their names, before they connect in any order: listings keep
// it, and so does the scheduler among equals. The config file may have said something about them.
func (c *cluster) declareNodes(cfg *config.Config) {
	known := map[core.NodeName]bool{}
	for _, n := range cfg.CoreNodes() {
		known[n.Name] = true
	}
	for _, n := range c.nodes {
		if n.Emulated() && !known[n.Name] {
			cfg.Nodes = append(cfg.Nodes, config.Node{Names: string(n.Name), Features: c.f.Features})
		}
	}
}

// noteUnreachable warns when jobs of other users could not reach their temporary directories and sockets.
func (c *cluster) noteUnreachable() {
	for dir := c.f.dir; dir != "/"; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode()&0o001 == 0 {
			fmt.Fprintf(c.notes, "note: %s is closed to other users: their jobs cannot work below it\n", dir)
			return
		}
	}
}

// nodes names the nodes of the cluster.
func (f *standaloneFlags) nodes() ([]emulate.Node, error) {
	under := func(name string) emulate.Node {
		return emulate.Node{Name: core.NodeName(name), Dir: filepath.Join(f.dir, "nodes", name)}
	}
	if f.Nodes == 0 {
		name, err := shortHostname()
		if err != nil {
			return nil, err
		}
		if !hostlist.Valid(name) {
			return nil, core.Errorf(core.Invalid, "the host name %q is not a valid node name: give --nodes 1", name)
		}
		return []emulate.Node{under(name)}, nil
	}
	names := emulate.Names(f.Prefix, f.Nodes)
	if f.NodeNames != "" {
		var err error
		if names, err = hostlist.Expand(f.NodeNames, maxNodes); err != nil {
			return nil, err
		}
	}
	var nodes []emulate.Node
	for i, name := range names {
		n := under(name)
		n.Addr = emulate.Addr(i + 1)
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// agentDoor returns the address agents dial: the one used before, or a free port below the ephemeral ones.
func (f *standaloneFlags) agentDoor() (string, error) {
	file := filepath.Join(f.dir, "agent.port")
	try := func(port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		return l.Close() == nil
	}
	if b, err := os.ReadFile(file); err == nil {
		if port, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && try(port) {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
		}
	}
	for range 100 {
		port := 10000 + rand.IntN(20000)
		if try(port) {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), os.WriteFile(file, []byte(strconv.Itoa(port)+"\n"), 0o644)
		}
	}
	return "", core.Errorf(core.Unavailable, "no free port on 127.0.0.1 for the agents")
}

// live runs the server and the nodes. A cluster that does not become ready is taken down; a server that fails later
// leaves the nodes and their jobs as they are, for the next start.
func (c *cluster) live(ctx context.Context, report func(exports string) error) error {
	serving, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	raise(c.cfg, c.log)
	served := make(chan error, 1)
	listening := make(chan server.Info, 1)
	go func() {
		served <- server.Run(serving, server.Options{
			Config: c.cfg, Version: version, Log: c.log, Reload: c.reload, Ready: func(i server.Info) { listening <- i },
		})
	}()
	ready, cancel := context.WithTimeout(ctx, c.f.timeout)
	defer cancel()
	tending, stopTending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTending()
	tended := make(chan error, 1)
	begun := false

	err := func() error {
		var info server.Info
		select {
		case info = <-listening:
		case err := <-served:
			served <- nil
			return fmt.Errorf("server: %w", errors.Join(err, ready.Err()))
		case <-ready.Done():
			return core.Errorf(core.Unavailable, "the server is not ready after %s", c.f.timeout)
		}
		if c.agents = c.cfg.Server.Advertise; len(c.agents) == 0 {
			c.agents = []string{info.Agents}
		}
		failed := make(chan error, 1)
		sup, err := c.supervisor(ready, failed)
		if err != nil {
			return err
		}
		begun = true
		began := core.At(time.Now())
		go func() { tended <- sup.Run(tending) }()
		if err := c.await(ready, began, failed, served); err != nil {
			return err
		}
		return report(c.exports(info.API))
	}()
	if err == nil {
		c.log.Info("ready", "nodes", len(c.nodes))
		select {
		case <-ctx.Done():
			c.log.Info("stopping")
		case err = <-served:
			stopTending()
			<-tended
			return fmt.Errorf("server: %w", errors.Join(err, errors.New("it ended by itself; jobs go on")))
		}
	} else if ctx.Err() != nil {
		err = errors.Join(core.Errorf(core.Unavailable, "stopped before it was ready"), err)
	}
	// The server first: jobs that end now are treated as after a node failure, not as if they had failed.
	stopServer()
	err = errors.Join(err, <-served)
	stopTending()
	if begun { // from here on no agent is started
		<-tended
	}
	ending, cancelEnding := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelEnding()
	return errors.Join(err, emulate.Stop(ending, c.nodes, c.keeper))
}

// supervisor readies the nodes: certificates, hosts file, namespaces.
func (c *cluster) supervisor(ctx context.Context, failed chan<- error) (*emulate.Supervisor, error) {
	if err := c.dropOldNodes(ctx); err != nil {
		return nil, err
	}
	g, join := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, n := range c.nodes {
		g.Go(func() error { return c.join(join, n) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	base, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	hosts, err := emulate.WriteHosts(filepath.Join(c.f.dir, "nodes"), base, c.nodes)
	if err != nil {
		return nil, err
	}
	isolation := emulate.None
	if c.f.Nodes > 0 {
		var why error
		isolation, why = emulate.Best(ctx, func(hosts string) *exec.Cmd {
			return exec.Command(c.self, "agent", "--probe", "--node", "probe", "--hosts", hosts)
		}, hosts)
		if isolation == emulate.None {
			fmt.Fprintf(c.notes, "note: no namespaces here, the nodes share this machine's host name and hosts file: %v\n", why)
		}
	}
	described := c.described()
	var once sync.Once
	return &emulate.Supervisor{
		Nodes: c.nodes, Isolation: isolation, LogDir: filepath.Join(c.f.dir, "log"), Log: c.log,
		Command: func(n emulate.Node) *exec.Cmd { return c.agentCommand(n, isolation, hosts, described[n.Name]) },
		Failed: func(n emulate.Node, err error) {
			once.Do(func() { failed <- fmt.Errorf("agent of %s: %w", n.Name, err) })
		},
	}, nil
}

// dropOldNodes stops and forgets nodes of an earlier, larger cluster.
func (c *cluster) dropOldNodes(ctx context.Context) error {
	found, err := emulate.Found(filepath.Join(c.f.dir, "nodes"))
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(found, func(n emulate.Node) bool {
		return slices.ContainsFunc(c.nodes, func(m emulate.Node) bool { return m.Name == n.Name })
	})
	if err := emulate.Stop(ctx, old, c.keeper); err != nil {
		return err
	}
	for _, n := range old {
		_, err := c.api.RemoveNode(ctx, n.Name, "gone")
		if err != nil && core.CodeOf(err) != core.NotFound {
			return fmt.Errorf("remove %s: %w", n.Name, err)
		}
		if err := agent.Forget(n.Dir); err != nil {
			return err
		}
	}
	return nil
}

// join sees that a node has a certificate of this cluster.
func (c *cluster) join(ctx context.Context, n emulate.Node) error {
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return err
	}
	if agent.HasJoined(n.Dir, c.cfg.CAFile()) {
		return nil
	}
	made, err := c.api.NewToken(ctx, &client.NewToken{
		Kind: "join", Node: n.Name, Roles: core.Compute | core.Login, TrustRoot: true, Note: "standalone", TTL: 600,
	})
	if err != nil {
		return fmt.Errorf("token for %s: %w", n.Name, err)
	}
	return agent.Join(ctx, n.Dir, c.agents, n.Name, made.Secret, c.cfg.CAFile())
}

func (c *cluster) agentCommand(n emulate.Node, isolation emulate.Isolation, hosts string,
	described []string,
) *exec.Cmd {
	args := []string{
		"agent", "--dir", n.Dir, "--node", string(n.Name), "--server", strings.Join(c.agents, ","),
		"--keeper", c.keeper,
	}
	if boot, err := n.BootID(); err == nil {
		args = append(args, "--boot-id", boot)
	} else {
		c.log.Error("boot id", "node", n.Name, "err", err) // the machine's will do until it is stopped
	}
	if n.Emulated() {
		args = append(args, "--emulated", "--addr", n.Addr)
		if isolation != emulate.None {
			args = append(args, "--hosts", hosts)
		}
	}
	if c.f.Cgroup != "" {
		args = append(args, "--cgroup", c.f.Cgroup)
	}
	if c.f.Engine != "" {
		args = append(args, "--engine", c.f.Engine)
	}
	if c.f.OCIRuntime != "" {
		args = append(args, "--oci-runtime", c.f.OCIRuntime)
	}
	if len(c.f.Features) > 0 {
		args = append(args, "--features", strings.Join(c.f.Features, ","))
	}
	args = append(args, c.f.Hardware.args()...)
	return exec.Command(c.self, append(args, described...)...)
}

// await waits until every node has told of itself since a moment.
func (c *cluster) await(ctx context.Context, began core.Time, failed, served <-chan error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var missing []string
	for {
		list, err := c.api.Nodes(ctx)
		if err == nil {
			missing = missing[:0]
			for _, n := range c.nodes {
				there := func(have client.Node) bool {
					return have.Name == n.Name && have.Connected && have.Host.AgentStart >= began &&
						!have.Flags.Any(core.NodeUnknown|core.NodeSilent)
				}
				if !slices.ContainsFunc(list.Nodes, there) {
					missing = append(missing, string(n.Name))
				}
			}
			if len(missing) == 0 {
				return nil
			}
		}
		select {
		case err := <-failed:
			return err
		case err := <-served:
			return fmt.Errorf("server: %w", err)
		case <-ctx.Done():
			return core.Errorf(core.Unavailable, "not connected after %s: %s; see %s", c.f.timeout,
				hostlist.Fold(missing), filepath.Join(c.f.dir, "log"))
		case <-tick.C:
		}
	}
}

// exports are the lines a shell evaluates.
func (c *cluster) exports(api string) string {
	servers := "unix:" + c.cfg.Socket()
	if api != "" {
		servers += "," + api
	}
	return "export BIREME_SERVER=" + quote(servers) + "\nexport BIREME_CA=" + quote(c.cfg.CAFile()) + "\n"
}

// quote makes a word of any text for a POSIX shell.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:,@%+=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
