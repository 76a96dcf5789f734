package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bireme.dev/bireme/internal/core/hostlist"
)

// Conf is all that the files say.
type Conf struct {
	File       string    // of slurm.conf, as an absolute path
	Settings   []Setting // in order; a key that may be repeated is there several times
	Nodes      []Node    // one a NodeName line, defaults laid under
	Partitions []Partition
	NodeSets   []NodeSet
	Down       []Record // DownNodes lines
	Gres       []Record // lines of gres.conf
	Cgroup     []Setting
	Switches   []Record // SwitchName lines of topology.conf
	Blocks     []Record // BlockName and BlockSizes lines
	// Rest is the lines of job_container.conf, acct_gather.conf and burst_buffer.conf, by file.
	Rest   map[string][]Setting
	Faults []Fault
}

// Setting is a key of its own.
type Setting struct {
	Where
	Key, Value string
}

// Record is a line that describes something: its name, and the keys with their values.
type Record struct {
	Where
	Name string
	Keys []Pair // defaults first: the last of a key counts
}

// Get finds the value of a key.
func (r *Record) Get(key string) (value string, ok bool) {
	l := Line{Pairs: r.Keys}
	return l.Get(key)
}

// Node is a NodeName line. Names are expanded.
type Node struct {
	Record
	Names []string
}

// Partition is a PartitionName line.
type Partition struct{ Record }

// NodeSet is a name for nodes that have a feature or are listed.
type NodeSet struct{ Record }

// Get finds the last value of a setting.
func (c *Conf) Get(key string) (value string, ok bool) {
	for _, s := range c.Settings {
		if strings.EqualFold(s.Key, key) {
			value, ok = s.Value, true
		}
	}
	return value, ok
}

// maxNames is how many names one list may stand for.
const maxNames = 1 << 20

// Read reads slurm.conf and the files beside it. It fails only if slurm.conf cannot be read; all else is in Faults.
func Read(file string) (*Conf, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	c, err := ReadFS(beside{filepath.Dir(abs)}, filepath.Base(abs))
	if c != nil {
		c.File = abs
	}
	return c, err
}

// beside opens relative names in a folder, and absolute ones where they are.
type beside struct{ dir string }

func (b beside) Open(name string) (fs.File, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(b.dir, name)
	}
	return os.Open(name)
}

// ReadFS does that in a file system.
func ReadFS(fsys fs.FS, name string) (*Conf, error) {
	r := &reader{fsys: fsys}
	if err := r.file(name, 0); err != nil {
		return nil, err
	}
	c := &Conf{Rest: map[string][]Setting{}}
	c.sort(r)
	c.Faults = append(c.Faults, r.faults...)
	for _, x := range []struct {
		file string
		take func(*reader)
	}{
		{"gres.conf", func(r *reader) { c.Gres = records(r.lines, "Name") }},
		{"cgroup.conf", func(r *reader) { c.Cgroup = settings(r.lines) }},
		{"topology.conf", func(r *reader) {
			for _, rec := range records(r.lines, "SwitchName") {
				if len(rec.Keys) > 0 && rec.Keys[0].Is("SwitchName") {
					c.Switches = append(c.Switches, rec)
				} else {
					c.Blocks = append(c.Blocks, rec)
				}
			}
		}},
		{"job_container.conf", func(r *reader) { c.Rest["job_container.conf"] = settings(r.lines) }},
		{"acct_gather.conf", func(r *reader) { c.Rest["acct_gather.conf"] = settings(r.lines) }},
		{"burst_buffer.conf", func(r *reader) { c.Rest["burst_buffer.conf"] = settings(r.lines) }},
	} {
		side := &reader{fsys: fsys, cluster: r.cluster}
		switch err := side.file(x.file, 0); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			c.Faults = append(c.Faults, Fault{Where{File: x.file}, err.Error()})
			continue
		}
		x.take(side)
		c.Faults = append(c.Faults, side.faults...)
	}
	return c, nil
}

// sort puts the lines of slurm.conf where they belong and lays defaults under nodes and partitions.
func (c *Conf) sort(r *reader) {
	var nodeDefaults, partDefaults, downDefaults []Pair
	seen := map[string]Where{}
	for _, l := range r.lines {
		first := l.Pairs[0]
		rec := Record{Where: l.Where, Name: first.Value, Keys: l.Pairs}
		switch {
		case first.Is("NodeName"):
			if first.Value == "DEFAULT" {
				for _, k := range []string{"NodeHostname", "NodeAddr"} {
					if _, ok := rec.Get(k); ok {
						r.fault(l.Where, "%s is not allowed with NodeName=DEFAULT", k)
					}
				}
				nodeDefaults = append(nodeDefaults, l.Pairs[1:]...)
				continue
			}
			n := Node{Record: rec}
			n.Keys = over(nodeDefaults, l.Pairs)
			names, err := hostlist.Expand(first.Value, maxNames)
			if err != nil || first.Value == "ALL" {
				r.fault(l.Where, "NodeName=%s is no list of names", first.Value)
				continue
			}
			for _, name := range names {
				if at, twice := seen[name]; twice {
					r.fault(l.Where, "node %s is there already, at %s", name, at)
					continue
				}
				seen[name] = l.Where
				n.Names = append(n.Names, name)
			}
			c.Nodes = append(c.Nodes, n)
		case first.Is("PartitionName"):
			if first.Value == "DEFAULT" {
				partDefaults = append(partDefaults, l.Pairs[1:]...)
				continue
			}
			rec.Keys = over(partDefaults, l.Pairs)
			c.partition(r, rec)
		case first.Is("NodeSet"):
			c.NodeSets = append(c.NodeSets, NodeSet{rec})
		case first.Is("DownNodes"):
			if first.Value == "DEFAULT" {
				downDefaults = append(downDefaults, l.Pairs[1:]...)
				continue
			}
			rec.Keys = over(downDefaults, l.Pairs)
			c.Down = append(c.Down, rec)
		default:
			for _, p := range l.Pairs {
				c.Settings = append(c.Settings, Setting{l.Where, p.Key, p.Value})
			}
		}
	}
}

// partition adds a partition; several lines of one name are one, as in Slurm: the later line's keys count.
func (c *Conf) partition(r *reader, rec Record) {
	for i := range c.Partitions {
		if c.Partitions[i].Name == rec.Name {
			r.fault(rec.Where, "partition %s is there already, at %s", rec.Name, c.Partitions[i].Where)
			return
		}
	}
	c.Partitions = append(c.Partitions, Partition{rec})
}

func over(defaults, own []Pair) []Pair {
	return append(append([]Pair(nil), defaults...), own...)
}

// records makes one of each line; the name is that of the key, which need not come first.
func records(lines []Line, key string) []Record {
	var out []Record
	for _, l := range lines {
		name, _ := l.Get(key)
		out = append(out, Record{Where: l.Where, Name: name, Keys: l.Pairs})
	}
	return out
}

func settings(lines []Line) []Setting {
	var out []Setting
	for _, l := range lines {
		for _, p := range l.Pairs {
			out = append(out, Setting{l.Where, p.Key, p.Value})
		}
	}
	return out
}
