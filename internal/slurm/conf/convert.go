package conf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/conf/keys"
)

// Note is a key that had no effect, and why.
type Note struct {
	Where
	Key, Value, Why string
}

// String is the place, the key and why it had no effect.
func (n Note) String() string {
	return fmt.Sprintf("%s: %s=%s: %s", n.Where, n.Key, n.Value, n.Why)
}

// notYet is said of what Slurm acts on and we do not.
const notYet = "not understood yet"

// Missing reports whether Slurm would act on the key and we do not, as against keys that have nothing to say here.
func (n Note) Missing() bool { return n.Why == notYet }

// converter lays what the files say over settings of ours.
type converter struct {
	conf   *Conf
	cfg    *config.Config
	notes  []Note
	faults []Fault
	// for partitions that say nothing; 0: no limit
	maxMemPerNode, maxMemPerCPU config.Size
	all                         config.Partition // what else partitions have that say nothing of it

	declared map[string]bool // the names of all nodes

	once bool // the health program is run when an agent starts, and not again
}

// rootAccount is the account that every Slurm database has. Users whom nobody has added to an account are there.
const rootAccount = "root"

// Apply lays all that is understood over cfg. It returns what had no effect, for people to read; the error lists what
// is wrong, each with its place.
func (c *Conf) Apply(cfg *config.Config) ([]Note, error) {
	v := &converter{conf: c, cfg: cfg, faults: slices.Clone(c.Faults)}
	cfg.Accounting.Enforce = []string{"none"} // as Slurm: what AccountingStorageEnforce does not name
	cfg.Accounting.NormalQOS, cfg.Accounting.Store = true, nil
	if cfg.Accounting.DefaultProject == config.Default().Accounting.DefaultProject {
		cfg.Accounting.DefaultProject = rootAccount
	}
	cfg.Step.PrologTimeout = unbounded
	cfg.Jobs.RequeueDelay = requeueDelay
	cfg.Server.UserTriggers = true
	v.settings()
	cfg.Slurm = config.SlurmConf{File: c.File, Shown: c.shown()}
	v.otherFiles()
	if v.once {
		cfg.Health.Interval = 0
	}
	v.nodes()
	v.downNodes()
	v.devices()
	v.partitions()
	v.cgroup()
	v.topology()
	v.scheduling()
	if len(v.faults) == 0 {
		return v.notes, nil
	}
	e := core.Errorf(core.Invalid, "the site's configuration has %d error(s)", len(v.faults))
	for _, f := range v.faults {
		e.Faults = append(e.Faults, core.Fault{Path: f.Where.String(), Message: f.Text})
	}
	return v.notes, e
}

func (v *converter) fault(at Where, format string, args ...any) {
	v.faults = append(v.faults, Fault{at, fmt.Sprintf(format, args...)})
}

func (v *converter) note(at Where, key, value, why string) {
	v.notes = append(v.notes, Note{at, key, value, why})
}

// set is what a key of ours does with its value.
type set func(v *converter, s Setting) error

func (v *converter) settings() {
	for _, s := range v.conf.Settings {
		key := strings.ToLower(s.Key)
		if do, ok := known[key]; ok {
			if err := do(v, s); err != nil {
				v.fault(s.Where, "%s=%s: %v", s.Key, s.Value, err)
			}
			continue
		}
		k, ok := keys.Find(key)
		if !ok {
			v.fault(s.Where, unrecognized+"%s", s.Key)
			continue
		}
		v.note(s.Where, s.Key, s.Value, cmp.Or(k.Why, "it holds anyway"))
	}
}

// Readers of values.

func integer(text string, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("expected a number from 0 to %d", most)
	}
	return n, nil
}

func yes(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "yes", "true", "1", "y":
		return true, nil
	case "no", "false", "0", "n":
		return false, nil
	}
	return false, fmt.Errorf("expected YES or NO")
}

func seconds(text string) (config.Duration, error) {
	n, err := integer(text, 1<<31)
	return config.Duration(time.Duration(n) * time.Second), err
}

// mebibytes reads a number of MiB, 0 standing for "none said".
func mebibytes(text string) (config.Size, error) {
	if strings.EqualFold(text, "UNLIMITED") {
		return 0, nil
	}
	n, err := integer(text, 1<<40)
	return config.Size(core.Bytes(n) * core.MiB), err
}

// timeLimit reads minutes, or any other form of a time limit; UNLIMITED and INFINITE are forever.
func timeLimit(text string) (config.TimeLimit, error) {
	t, err := span(text)
	return config.TimeLimit(t), err
}

func span(text string) (core.Seconds, error) {
	t, err := grammar.ParseTimeSpan(text)
	if t == grammar.Unlimited {
		return core.Forever, err
	}
	return core.Seconds(t), err
}

func toInt64(at func(*config.Config) *int64, most int64) set {
	return func(v *converter, s Setting) (err error) {
		*at(v.cfg), err = integer(s.Value, most)
		return err
	}
}

func toSeconds(at func(*config.Config) *config.Duration) set {
	return func(v *converter, s Setting) (err error) {
		*at(v.cfg), err = seconds(s.Value)
		return err
	}
}

func toTime(at func(*config.Config) *config.Duration) set {
	return func(v *converter, s Setting) error {
		t, err := span(s.Value)
		if err == nil {
			*at(v.cfg) = config.Duration(t.Duration())
			if t == core.Forever {
				*at(v.cfg) = 0
			}
		}
		return err
	}
}

func toSize(at func(*config.Config) *config.Size) set {
	return func(v *converter, s Setting) (err error) {
		*at(v.cfg), err = mebibytes(s.Value)
		return err
	}
}

func (v *converter) nodes() {
	v.cfg.Nodes, v.declared = nil, map[string]bool{}
	for i := range v.conf.Nodes {
		n := &v.conf.Nodes[i]
		if len(n.Names) == 0 {
			continue
		}
		out := config.Node{Names: hostlist.Fold(n.Names), Weight: 1}
		boards, perBoard := int64(1), int64(0)
		for _, p := range n.Keys {
			if err := v.nodeKey(&out, p, n, &boards, &perBoard); err != nil {
				v.fault(n.Where, "%s=%s: %v", p.Key, p.Value, err)
			}
		}
		if perBoard > 0 {
			out.Sockets = int32(boards * perBoard)
		}
		out.Sockets, out.Cores, out.Threads = max(1, out.Sockets), max(1, out.Cores), max(1, out.Threads)
		switch whole := out.Sockets * out.Cores * out.Threads; {
		case out.CPUs == 0:
			out.CPUs = whole
		case whole == 1: // only the count is told: that many sockets of one core, as Slurm takes it
			out.Sockets = out.CPUs
		case out.CPUs != whole && out.CPUs != out.Sockets*out.Cores:
			v.fault(n.Where, "CPUs=%d; %d sockets of %d cores with %d threads have %d", out.CPUs, out.Sockets,
				out.Cores, out.Threads, whole)
		}
		if out.Memory == 0 {
			out.Memory = config.Size(core.MiB)
		}
		for _, name := range n.Names {
			v.declared[name] = true
		}
		out.Gres = v.placed(&out, n.Names)
		v.cfg.Nodes = append(v.cfg.Nodes, out)
	}
}

func (v *converter) nodeKey(out *config.Node, p Pair, n *Node, boards, perBoard *int64) (err error) {
	int32At := func(at *int32) {
		var x int64
		x, err = integer(p.Value, 1<<20)
		*at = int32(x)
	}
	switch strings.ToLower(p.Key) {
	case "nodename", "nodehostname", "port":
	case "nodeaddr":
		out.Addr = p.Value
	case "cpus", "procs":
		int32At(&out.CPUs)
	case "boards":
		*boards, err = integer(p.Value, 1<<10)
	case "socketsperboard":
		*perBoard, err = integer(p.Value, 1<<10)
	case "sockets":
		int32At(&out.Sockets)
	case "corespersocket":
		int32At(&out.Cores)
	case "threadspercore":
		int32At(&out.Threads)
	case "realmemory":
		out.Memory, err = mebibytes(p.Value)
	case "tmpdisk":
		out.TmpDisk, err = mebibytes(p.Value)
	case "weight":
		int32At(&out.Weight)
	case "feature", "features":
		out.Features = strings.FieldsFunc(p.Value, func(r rune) bool { return r == ',' || r == ' ' })
	case "gres":
		out.Gres = nil
		for g := range strings.SplitSeq(p.Value, ",") {
			g = strings.ReplaceAll(g, ":no_consume", "")
			if _, err := config.ParseGres(g); err != nil {
				return err
			}
			out.Gres = append(out.Gres, g)
		}
	case "reason":
		out.Reason = p.Value
	case "state":
		switch strings.ToUpper(p.Value) {
		case "UNKNOWN", "IDLE":
		case "CLOUD", "FUTURE", "DOWN", "DRAIN", "FAIL":
			out.State = strings.ToLower(p.Value)
		default:
			v.note(n.Where, p.Key, p.Value, notYet)
		}
	default:
		v.other(keys.NodeLine, n.Where, p)
	}
	return err
}

// nodesOf expands the names of node sets in a list of nodes.
func (v *converter) nodesOf(at Where, list string) string {
	if strings.EqualFold(list, "ALL") || list == "" {
		return list
	}
	var out []string
	parts, err := hostlist.Expand(list, maxNames)
	if err != nil {
		v.fault(at, "Nodes=%s: %v", list, err)
		return list
	}
	for _, name := range parts {
		i := slices.IndexFunc(v.conf.NodeSets, func(s NodeSet) bool { return s.Name == name })
		if i < 0 {
			out = append(out, name)
			continue
		}
		out = append(out, v.members(&v.conf.NodeSets[i])...)
	}
	return hostlist.Fold(out)
}

// members are the nodes of a set: those listed, and those with its feature.
func (v *converter) members(s *NodeSet) []string {
	var out []string
	if list, ok := s.Get("Nodes"); ok {
		names, err := hostlist.Expand(list, maxNames)
		if err != nil {
			v.fault(s.Where, "Nodes=%s: %v", list, err)
		}
		out = append(out, names...)
	}
	if f, ok := s.Get("Feature"); ok {
		for i := range v.conf.Nodes {
			n := &v.conf.Nodes[i]
			has, _ := n.Get("Features")
			if has == "" {
				has, _ = n.Get("Feature")
			}
			if slices.Contains(strings.Split(has, ","), f) {
				out = append(out, n.Names...)
			}
		}
	}
	return out
}
