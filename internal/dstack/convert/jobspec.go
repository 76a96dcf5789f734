package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// JobName names one node's part of a run.
func JobName(run string, num int) string { return fmt.Sprintf("%s-%d-0", run, num) }

// JobSpecs describes the jobs of a run, one a node.
func (s *Spec) JobSpecs(run, projectRuntime string, site Images) []*wire.JobSpec {
	n := s.Nodes()
	out := make([]*wire.JobSpec, s.told(n))
	for i := range out {
		out[i] = s.jobSpec(run, projectRuntime, i, n, site)
	}
	return out
}

// maxTold bounds the bytes of what is told of the nodes of one run, all of which have its whole description.
const maxTold = 16 << 20

// told is how many of a run's nodes are told of.
func (s *Spec) told(nodes int) int {
	const few = 16
	if nodes <= few {
		return nodes
	}
	data, err := s.JSON()
	if err != nil {
		return few
	}
	return min(nodes, MaxNodes, max(few, maxTold/len(data)))
}

func (s *Spec) jobSpec(run, projectRuntime string, num, of int, site Images) *wire.JobSpec {
	r, p := s.Configuration.Run(), s.Policy()
	contained := s.Contained(projectRuntime)
	env, err := json.Marshal(r.Env)
	if err != nil || r.Env == nil {
		env = []byte("{}")
	}
	j := &wire.JobSpec{
		JobNum: num, JobName: JobName(run, num), JobsPerReplica: of, ReplicaGroup: "0", AppSpecs: []wire.AppSpec{},
		Commands: s.jobCommands(run, contained), Env: env, HomeDir: "/root", ImageName: "process",
		Privileged: r.Privileged || config.Value(r.Docker), SingleBranch: s.Configuration.DevEnvironment == nil,
		StopDuration: new(int64), Volumes: []any{}, WorkingDir: r.WorkingDir, RepoData: s.RepoData,
		RepoCodeHash: s.RepoCodeHash, RepoDir: "/workflow", FileArchives: s.FileArchives, Probes: s.probeSpecs(),
		NodeGroupName: "0", NodeGroupJobIndex: num, User: unixUser(config.Value(r.User)),
		Requirements: wire.Requirements{
			Resources: s.requirements(r), MaxPrice: p.MaxPrice, Spot: spotOf(p.SpotPolicy), Reservation: p.Reservation,
			Multinode: of > 1,
		},
	}
	s.inGroup(j, shellOf(r, contained))
	if c := s.Configuration.Service; c != nil {
		j.ServicePort = &c.Port.Container
	}
	if contained {
		j.ImageName = imageOf(r, site)
	}
	if r.SingleBranch != nil {
		j.SingleBranch = *r.SingleBranch
	}
	if d := p.MaxDuration; d != nil && !d.Off {
		j.MaxDuration = &d.Seconds
	}
	*j.StopDuration = 300
	if d := p.StopDuration; d != nil {
		j.StopDuration = &d.Seconds
		if d.Off {
			j.StopDuration = nil
		}
	}
	if u := p.UtilizationPolicy; u != nil {
		j.UtilizationPolicy = u
	}
	if a := r.RegistryAuth; a != nil {
		j.RegistryAuth = a
	}
	if events, seconds := p.Retry.Acts(); len(events) > 0 {
		j.Retry = &wire.Retry{OnEvents: events, Duration: seconds}
	}
	if len(r.Volumes) > 0 {
		j.Volumes = r.Volumes
	}
	if len(r.Repos) > 0 {
		j.RepoDir, j.RepoExistsAction = r.Repos[0].Path, &r.Repos[0].IfExists
	}
	for i, port := range s.Ports() {
		app := wire.AppSpec{Port: port.Container, MapToPort: port.Local, AppName: "app_" + strconv.Itoa(i)}
		j.AppSpecs = append(j.AppSpecs, app)
	}
	return j
}

// inGroup describes a job by the group of nodes that it is in, of a task that has groups.
func (s *Spec) inGroup(j *wire.JobSpec, shell string) {
	at := j.JobNum
	for i, g := range s.groups() {
		if at >= g.Nodes {
			at -= g.Nodes
			continue
		}
		j.NodeGroupIndex, j.NodeGroupName, j.NodeGroupJobIndex = i, g.Name, at
		j.Requirements.Resources = g.Resources
		if len(g.Commands) > 0 {
			j.Commands = []string{shell, "-i", "-c", strings.Join(g.Commands, " && ")}
		}
		for k, port := range g.Ports {
			app := wire.AppSpec{Port: port.Container, MapToPort: port.Local, AppName: "app_" + strconv.Itoa(k)}
			j.AppSpecs = append(j.AppSpecs, app)
		}
		return
	}
}

// offersImage is what clients name where they only ask for offers.
const offersImage = "scratch"

// requirements are the resources with the architecture of the image: that of the default one, which is taken for
// others too, since no registry is asked here.
func (s *Spec) requirements(r *config.Run) config.Resources {
	res := r.Resources
	if res.CPU.Arch == nil && config.Value(r.Image) != offersImage {
		x86 := "x86"
		res.CPU.Arch = &x86
	}
	return res
}

// spotOf is whether instances are spot ones; nil: either.
func spotOf(policy *string) *bool {
	spot := false
	switch config.Value(policy) {
	case "auto":
		return nil
	case "spot":
		spot = true
	}
	return &spot
}

// jobCommands is the command line that dstack would run.
func (s *Spec) jobCommands(run string, contained bool) []string {
	r := s.Configuration.Run()
	commands := s.commands(run)
	var out []string
	if r.Entrypoint != nil {
		words, err := config.SplitWords(*r.Entrypoint)
		if err != nil {
			words = []string{*r.Entrypoint}
		}
		out = append(out, words...)
	} else if len(commands) > 0 {
		out = []string{shellOf(r, contained), "-i", "-c"}
	}
	if len(commands) == 0 {
		return append([]string{}, out...)
	}
	list := make([]string, len(commands))
	for i, c := range commands {
		c = strings.TrimSpace(c)
		if strings.HasSuffix(c, "&") && !strings.HasSuffix(c, "&&") {
			c = "{ " + c + " }"
		}
		list[i] = c
	}
	return append(out, strings.Join(list, " && "))
}

// unixUser reads NAME|UID[:GROUP|GID].
func unixUser(text string) *wire.UnixUser {
	if text == "" {
		return nil
	}
	u := &wire.UnixUser{}
	name, group, _ := strings.Cut(text, ":")
	if n, err := strconv.ParseInt(name, 10, 64); err == nil {
		u.UID = &n
	} else {
		u.Username = &name
	}
	if n, err := strconv.ParseInt(group, 10, 64); err == nil {
		u.GID = &n
	} else if group != "" {
		u.Groupname = &group
	}
	return u
}
