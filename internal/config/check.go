package config

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/mailto"
	"bireme.dev/bireme/internal/policy"
)

// maxNames bounds a hostlist of the file, so that n[1-99999999] is a fault and not an out-of-memory.
const maxNames = 1 << 20

var clusterName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// gresWord is a name or a type of generic resources, as those that drivers give GPUs: "nvidia_a100", "1g.10gb+me".
var gresWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]*$`)

// Check finds what is wrong with c as a whole. Load has already called it; it is for configurations made in code.
func (c *Config) Check() error {
	d := &decoder{lines: map[string]int{}}
	d.check(c)
	if len(d.faults) == 0 {
		return nil
	}
	e := core.Errorf(core.Invalid, "the settings: %s", plural(len(d.faults), "error"))
	e.Faults = d.faults
	return e
}

func (d *decoder) at(path, format string, args ...any) {
	line := d.lines[path]
	for p := path; line == 0 && p != ""; { // the nearest group that has a line
		if i := strings.LastIndexAny(p, ".["); i >= 0 {
			p = p[:i]
		} else {
			p = ""
		}
		line = d.lines[p]
	}
	d.fault(path, line, format, args...)
}

func (d *decoder) check(c *Config) {
	if !clusterName.MatchString(c.Cluster) {
		d.at("cluster", "%q: a cluster name may contain only lower-case letters, digits, - and _", c.Cluster)
	}
	if !filepath.IsAbs(c.Dir) {
		d.at("dir", "%q is not an absolute path", c.Dir)
	}
	if !slices.Contains([]string{"pmi2", "pmix", "none"}, c.Step.MPI) {
		d.at("step.mpi", "%q is neither pmi2, pmix nor none", c.Step.MPI)
	}
	for i, v := range c.Step.Volumes {
		if !filepath.IsAbs(v) || filepath.Clean(v) != v || v == "/" {
			d.at(fmt.Sprintf("step.volumes[%d]", i), "%q is not an absolute path of a folder, without . or .. in it", v)
		}
	}
	if _, err := ParsePrivate(c.PrivateData); err != nil {
		d.at("private_data", "%v", err)
	}
	d.checkServer(c)
	if p := c.Step.Publish; p != "loopback" && p != "network" && p != "all" {
		d.at("step.publish", "%q: expected loopback, network or all", p)
	}
	d.checkCertificates(c)
	d.checkLimits(&c.Limits)
	for i, name := range c.Step.ContainerCaps {
		if _, ok := core.Capability(name); !ok {
			d.at(fmt.Sprintf("step.container_caps[%d]", i), "%q is not a Linux capability", name)
		}
	}
	if c.Step.MaxPids < 0 {
		d.at("step.max_pids", "%d is less than 0; 0 means no limit", c.Step.MaxPids)
	}
	d.checkPartitions(c)
	d.checkNumbers(c)
	d.checkPaths(c)
	d.checkScheduling(&c.Scheduling)
	d.checkNodes(c)
	d.checkLicenses(c)
	d.checkOffers(c)
	d.checkVolumes(c)
	d.checkTopology(c)
	d.checkTimers(c)
	d.checkHealth(c)
	d.checkPower(c)
	d.checkFleets(c)
	d.checkDstack(&c.Dstack)
	if c.Mail.User == "" || c.Mail.User == "root" || c.Mail.User == "0" {
		d.at("mail.user", "%q: must be an unprivileged user, such as nobody", c.Mail.User)
	}
	if c.Mail.Domain != "" && !mailto.IsAddress("a@"+c.Mail.Domain) {
		d.at("mail.domain", "%q is not a host name", c.Mail.Domain)
	}
	d.checkPriority(c)
	d.checkAudit(&c.Audit)
	d.checkSSH(&c.SSH)
	if _, err := c.Accounting.Enforced(); err != nil {
		d.at("accounting.enforce", "%v", err)
	}
	d.checkPreemption(c)
	if c.Accounting.DefaultProject == "" {
		d.at("accounting.default_project", "must not be empty")
	}
	if c.Jobs.MaxScript <= 0 || c.Jobs.MaxEnv <= 0 {
		d.at("jobs.max_script", "max_script and max_env must be more than 0")
	}
	if int64(c.Jobs.MaxScript)+int64(c.Jobs.MaxEnv) > int64(48*core.MiB) {
		d.at("jobs.max_script", "max_script and max_env together must not exceed 48M, the limit of a launch")
	}
	if c.Jobs.MaxTasks < 1 || c.Jobs.MaxTasks > 65533 {
		d.at("jobs.max_tasks_per_node", "%d is not between 1 and 65533", c.Jobs.MaxTasks)
	}
	if c.Jobs.MaxArray < 1 || c.Jobs.MaxArray > 4_000_001 {
		d.at("jobs.max_array_size", "%d is not between 1 and 4000001", c.Jobs.MaxArray)
	}
}

func (d *decoder) checkServer(c *Config) {
	list := [][2]string{
		{"server.listen", c.Server.Listen},
		{"server.agent_listen", c.Server.AgentListen},
		{"ssh.listen", c.SSH.Listen},
		{"ssh.advertise", c.SSH.Advertise},
	}
	for _, a := range c.Server.Advertise { // an agent that cannot read it takes the long way, or none
		list = append(list, [2]string{"server.advertise", strings.TrimPrefix(a, "https://")})
	}
	for _, l := range list {
		path, addr := l[0], l[1]
		if addr == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(addr); err != nil {
			d.at(path, "%q is not HOST:PORT", addr)
		} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			d.at(path, "%q is not a port", port)
		}
	}
	if host, _, err := net.SplitHostPort(c.Server.Listen); c.Server.PlainHTTP && err == nil {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			d.at("server.plain_http", "server.listen is %q: without TLS the server listens on loopback only, as "+
				"127.0.0.1:PORT", c.Server.Listen)
		}
	}
	if s := c.Store(); !strings.HasPrefix(s, "sqlite:") && !strings.HasPrefix(s, "postgres://") &&
		!strings.HasPrefix(s, "postgresql://") {
		d.at("server.store", "%q is neither sqlite:PATH nor postgres://…", s)
	}
	if c.Server.Inbox < 16 {
		d.at("server.inbox", "%d is too small; 16 is the least", c.Server.Inbox)
	}
	if c.Server.Nice < -20 || c.Server.Nice > 0 {
		d.at("server.nice", "%d is not between -20 and 0", c.Server.Nice)
	}
	if p := c.Socket(); len(p) > 107 {
		d.at("server.socket", "%q is longer than the 107 bytes a unix socket's path may have", p)
	}
}

func (d *decoder) checkPartitions(c *Config) {
	if len(c.Partitions) == 0 {
		d.at("partitions", "at least one partition is needed")
	}
	seen, def := map[string]int{}, -1
	for i, p := range c.Partitions {
		path := fmt.Sprintf("partitions[%d]", i)
		if p.Name == "" || strings.ContainsAny(p.Name, ", \t") {
			d.at(path+".name", "%q is not a name", p.Name)
		}
		if first, twice := seen[p.Name]; twice {
			d.at(path+".name", "%q is already the name of partitions[%d]", p.Name, first)
		}
		seen[p.Name] = i
		if p.Default {
			if def >= 0 {
				d.at(path+".default", "partitions[%d] is already the default", def)
			}
			def = i
		}
		if !strings.EqualFold(p.Nodes, "ALL") && p.Nodes != core.NoNodes {
			if _, err := hostlist.Expand(p.Nodes, maxNames); err != nil {
				d.at(path+".nodes", "%v", err)
			}
		}
		switch strings.ToUpper(p.State) {
		case "", "UP", "DOWN", "DRAIN", "INACTIVE":
		default:
			d.at(path+".state", "%q is not one of UP, DOWN, DRAIN, INACTIVE", p.State)
		}
		if p.MaxNodes > 0 && p.MinNodes > p.MaxNodes {
			d.at(path+".min_nodes", "%d exceeds max_nodes, %d: no job could run", p.MinNodes, p.MaxNodes)
		}
		if _, _, _, ok := grammar.ParseSharing(p.OverSubscribe); !ok {
			d.at(path+".oversubscribe", "%q is not one of NO, YES[:n], FORCE[:n], EXCLUSIVE", p.OverSubscribe)
		}
		if _, err := hostlist.Expand(p.AllocNodes, maxNames); err != nil && p.AllocNodes != "" {
			d.at(path+".submit_hosts", "%v", err)
		}
		if !slices.Contains([]string{"", "none", "socket", "ldom", "core", "thread"}, p.CPUBind) {
			d.at(path+".cpu_bind", "%q is not one of none, socket, ldom, core, thread", p.CPUBind)
		}
		if p.MaxCPUsPerNode < 0 || p.MaxMemPerCPU < 0 {
			d.at(path, "max_cpus_per_node and max_mem_per_cpu must not be negative")
		}
		if _, err := policy.ParseWeights(p.BillingWeights); err != nil {
			d.at(path+".billing_weights", "%v", err)
		}
		d.checkPreemptMode(path+".preempt_mode", p.PreemptMode)
		if p.Grace < 0 {
			d.at(path+".grace", "%s: must not be negative", p.Grace)
		}
		if p.MaxTime > 0 && p.DefaultTime > p.MaxTime {
			d.at(path+".default_time", "%s exceeds max_time %s", p.DefaultTime, p.MaxTime)
		}
	}
}

func (d *decoder) checkScheduling(s *Scheduling) {
	if _, ok := core.ParseAllocUnit(s.Select); !ok {
		d.at("scheduling.select", "%q is not one of core, cpu, socket", s.Select)
	}
	if _, ok := core.ParseRule(s.Rule); !ok {
		names := make([]string, len(core.Rules))
		for i, r := range core.Rules {
			names[i] = r.String()
		}
		d.at("scheduling.rule", "%q is not one of %s", s.Rule, strings.Join(names, ", "))
	}
	if s.Reservations < 0 {
		d.at("scheduling.reservations", "%d: must not be negative", s.Reservations)
	}
	if s.Reservations > 0 && s.Rule == "fcfs" {
		d.at("scheduling.reservations", "not used with the rule fcfs, which has no backfill")
	}
}

func (d *decoder) checkNodes(c *Config) {
	if h := c.GPU.Health; h != "act" && h != "show" {
		d.at("gpu.health", "%q is neither act nor show", h)
	}
	if c.GPU.Sample < 0 {
		d.at("gpu.sample", "%s: must not be negative; 0 turns sampling off", c.GPU.Sample)
	}
	seen := map[string]int{}
	for i, n := range c.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		names, err := hostlist.Expand(n.Names, maxNames)
		switch {
		case err != nil:
			d.at(path+".names", "%q is not a list of host names (%v)", n.Names, err)
		case len(names) == 0:
			d.at(path+".names", "expected names of nodes, such as n[1-8]")
		}
		for _, name := range names {
			if first, twice := seen[name]; twice {
				d.at(path+".names", "%s is already in nodes[%d]", name, first)
				break
			}
			seen[name] = i
		}
		for k, g := range n.Gres {
			if _, _, err := ParseUnits(g); err != nil {
				d.at(fmt.Sprintf("%s.gres[%d]", path, k), "%v", err)
			}
		}
		if _, ok := nodeStates[strings.ToLower(n.State)]; !ok {
			d.at(path+".state", "%q: expected cloud, future, down, drain or fail", n.State)
		}
		if n.CPUs < 0 || n.Memory < 0 {
			d.at(path, "cpus and memory must not be negative")
		}
	}
}

func (d *decoder) checkTimers(c *Config) {
	t := c.Timers
	if t.Heartbeat <= 0 {
		d.at("timers.heartbeat", "must be more than 0")
	}
	if t.SilentAfter < 2*t.Heartbeat {
		d.at("timers.silent_after", "%s is less than two heartbeats of %s: one late heartbeat would make a node silent",
			t.SilentAfter, t.Heartbeat)
	}
	if t.Fence > 0 && t.Fence < t.SilentAfter {
		d.at("timers.fence", "%s is less than silent_after %s", t.Fence, t.SilentAfter)
	}
	if t.Fence > 0 && t.FenceMargin <= 0 {
		d.at("timers.fence_margin", "must be more than 0 with a fence, because the clocks of nodes differ")
	}
	if t.MaxKillGrace < t.KillWait {
		d.at("timers.max_kill_grace", "%s is less than kill_wait %s", t.MaxKillGrace, t.KillWait)
	}
	if t.InteractiveIdle != 0 && t.InteractiveIdle.D() < 5*time.Second {
		d.at("timers.interactive_idle", "%s is too short for srun to start its step; 5s is the least, 0 turns it off",
			t.InteractiveIdle)
	}
	if t.Lease <= 0 {
		d.at("timers.lease", "must be more than 0")
	}
}

// ParseUnits reads a list of name[:type]:count[@socket[/links]]: what there is, and of those with a place, which index
// they have and where they are. Those of one name are counted on in the order of the list.
func ParseUnits(list ...string) (gres []core.Gres, units []core.Unit, err error) {
	next := map[string]int32{}
	for _, text := range list {
		what, at, placed := strings.Cut(text, "@")
		g, err := ParseGres(what)
		if err != nil {
			return nil, nil, err
		}
		socket, links, joined := strings.Cut(at, "/")
		s, err1 := strconv.ParseUint(socket, 10, 15)
		l, err2 := uint64(0), error(nil)
		if joined {
			l, err2 = strconv.ParseUint(links, 10, 15)
		}
		if placed && (err1 != nil || err2 != nil || g.Count > 1024) {
			return nil, nil, fmt.Errorf("%q is not name[:type]:count@socket[/links]", text)
		}
		if k := slices.IndexFunc(gres, func(o core.Gres) bool { return o.Name == g.Name && o.Type == g.Type }); k >= 0 {
			gres[k].Count += g.Count
		} else {
			gres = append(gres, g)
		}
		for i := range int32(min(g.Count, 1024)) {
			if placed {
				units = append(units, core.Unit{
					Name: g.Name, Type: g.Type, Index: next[g.Name] + i, Socket: int32(s),
					Links: int32(l),
				})
			}
		}
		next[g.Name] += int32(g.Count)
	}
	return gres, units, nil
}

// FormatUnits writes hardware so that ParseUnits reads it back.
func FormatUnits(h *core.Hardware) []string {
	var out []string
	for _, k := range h.Kinds() {
		name := k.Name
		if k.Type != "" {
			name += ":" + k.Type
		}
		if len(k.Units) == 0 {
			out = append(out, fmt.Sprintf("%s:%d", name, len(k.Index)))
			continue
		}
		for _, u := range k.Units {
			out = append(out, fmt.Sprintf("%s:1@%d/%d", name, u.Socket, u.Links))
		}
		if n := len(k.Index) - len(k.Units); n > 0 {
			out = append(out, fmt.Sprintf("%s:%d", name, n))
		}
	}
	return out
}

// ParseGres reads name:count or name:type:count.
func ParseGres(text string) (core.Gres, error) {
	parts := strings.Split(text, ":")
	g := core.Gres{Name: parts[0], Count: 1}
	bad := fmt.Errorf("%q is not name[:type]:count", text)
	switch len(parts) {
	case 1:
	case 2:
		n, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			g.Type = parts[1]
		} else {
			g.Count = n
		}
	case 3:
		n, err := strconv.ParseInt(parts[2], 10, 32)
		if err != nil {
			return g, bad
		}
		g.Type, g.Count = parts[1], n
	default:
		return g, bad
	}
	if !gresWord.MatchString(g.Name) || g.Count < 0 || len(parts) > 1 && g.Type == "" && parts[1] == "" ||
		g.Type != "" && !gresWord.MatchString(g.Type) {
		return g, bad
	}
	return g, nil
}
