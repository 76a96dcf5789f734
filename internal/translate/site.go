package translate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	dstack "bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/slurm/conf"
)

// The files that a site's slurm.conf becomes, beside one a fleet.
const (
	SettingsFile = "config.yml"
	PolicyFile   = "policy.yml"
)

// maxHosts bounds the names of one list.
const maxHosts = 1 << 20

// Site makes settings of a slurm.conf, a policy of the accounts and QOS that its partitions name, and a fleet of SSH
// hosts of each partition's nodes.
func Site(c *conf.Conf, o Options) (*Result, error) {
	s := &siteConversion{o: o, cfg: config.Default()}
	ignored, err := c.Apply(s.cfg)
	if err != nil {
		return nil, faultsOf(err)
	}
	for _, n := range ignored {
		s.notes.add(NoEqual, n.Key+"="+n.Value, n.Why+" ("+n.Where.String()+")")
	}
	if err := s.settings(); err != nil {
		return nil, err
	}
	if err := s.policy(); err != nil {
		return nil, err
	}
	if err := s.fleets(); err != nil {
		return nil, err
	}
	head := s.notes.head(o.Name)
	s.files[0].Text = head + s.files[0].Text
	var b strings.Builder
	for i, f := range s.files {
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString(mark + " File " + f.Name + "\n" + f.Text)
	}
	return &Result{Output: b.String(), Notes: s.notes.list(), Files: s.files}, nil
}

// faultsOf writes each fault on a line of its own.
func faultsOf(err error) error {
	var e *core.Error
	if !as(err, &e) || len(e.Faults) == 0 {
		return err
	}
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Path + ": " + f.Message
	}
	return core.Errorf(core.Invalid, "%s", strings.Join(lines, "\n"))
}

type siteConversion struct {
	o     Options
	cfg   *config.Config
	notes notes
	files []File
}

func (s *siteConversion) add(name, text string) { s.files = append(s.files, File{name, text}) }

// settings writes what differs from the settings that a server has without any.
func (s *siteConversion) settings() error {
	var b bytes.Buffer
	b.WriteString(mark + " Settings of the server: biremed server --config " + SettingsFile + "\n")
	if err := s.cfg.ShowChanged(&b, config.Default()); err != nil {
		return err
	}
	s.add(SettingsFile, b.String())
	return nil
}

// policy names the projects and QOS that partitions allow or deny; slurm.conf has no more of them.
func (s *siteConversion) policy() error {
	qos, projects := &keys{}, &keys{}
	for i := range s.cfg.Partitions {
		p := &s.cfg.Partitions[i]
		for _, name := range slices.Concat(p.AllowQOS, p.DenyQOS, []string{p.QOS}) {
			if name != "" {
				qos.set(name, &keys{})
			}
		}
		for _, name := range slices.Concat(p.AllowProjects, p.DenyProjects) {
			projects.set(name, &keys{})
		}
	}
	if len(qos.names)+len(projects.names) == 0 {
		return nil
	}
	s.notes.add(Differs, PolicyFile, "has the accounts and QOS that partitions name; users, shares and limits are in "+
		"slurmdbd's database: add them to it")
	all := &keys{}
	all.set("qos", qos)
	all.set("projects", projects)
	text, err := write(all)
	if err != nil {
		return err
	}
	s.add(PolicyFile, mark+" Projects: bireme policy apply "+PolicyFile+"\n"+text)
	return nil
}

// fleets makes a fleet of the nodes of each partition that are in none yet.
func (s *siteConversion) fleets() error {
	addr := map[string]string{}
	var all []string
	for i := range s.cfg.Nodes {
		n := &s.cfg.Nodes[i]
		names, err := hostlist.Expand(n.Names, maxHosts)
		if err != nil {
			return err
		}
		if n.State == "cloud" || n.State == "future" {
			s.notes.add(NoEqual, "NodeName="+n.Names, "is made when it is needed; a fleet has hosts that are there")
			continue
		}
		addrs, err := hostlist.Expand(n.Addr, maxHosts)
		for k, name := range names {
			all, addr[name] = append(all, name), name
			if err == nil && len(addrs) == len(names) {
				addr[name] = addrs[k]
			}
		}
	}
	used := map[string]bool{}
	for i := range s.cfg.Partitions {
		p := &s.cfg.Partitions[i]
		names := all
		if !strings.EqualFold(p.Nodes, "ALL") {
			var err error
			if names, err = hostlist.Expand(p.Nodes, maxHosts); err != nil {
				return err
			}
		}
		var hosts []any
		for _, n := range names {
			if addr[n] != "" && !used[n] {
				used[n] = true
				hosts = append(hosts, addr[n])
			}
		}
		if len(hosts) > 0 {
			if err := s.fleet(p.Name, hosts); err != nil {
				return err
			}
		}
	}
	if len(used) > 0 {
		s.notes.add(Differs, "PartitionName", "a node is in one fleet, that of the first partition that has it; nodes of a "+
			"fleet are named after it. Where agents run on the nodes, "+SettingsFile+" is enough")
	}
	return nil
}

func (s *siteConversion) fleet(partition string, hosts []any) error {
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, partition), "-")
	if len(name) < 2 || name[0] < 'a' {
		name = "fleet-" + name
	}
	ssh := &keys{}
	ssh.set("user", "root")
	ssh.set("identity_file", "~/.ssh/id_ed25519")
	ssh.set("hosts", hosts)
	k := &keys{}
	k.set("type", "fleet")
	k.set("name", name)
	k.set("placement", "cluster")
	k.set("ssh_config", ssh)
	text, err := write(k)
	if err != nil {
		return err
	}
	if _, err := dstack.Read([]byte(text)); err != nil {
		return fmt.Errorf("partition %s cannot be written as a fleet: %w", partition, err)
	}
	file := "fleet-" + name + ".dstack.yml"
	s.notes.add(Differs, file, "write how the server logs into the hosts: user and identity_file")
	s.add(file, mark+" Partition "+partition+" as a fleet: bireme apply -f "+file+"\n"+text)
	return nil
}
