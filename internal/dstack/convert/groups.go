package convert

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// A task with groups is one job a group, the components of a het job: each has nodes of its own, whole ones, and all
// start at once or none. Their containers are one whole, as those of a task with nodes: the first starts the commands
// in all of them. They have one script, which tells the groups apart by a variable.

// groups are those of the run's task.
func (s *Spec) groups() []config.NodeGroup {
	if t := s.Configuration.Task; t != nil {
		return t.Groups
	}
	return nil
}

// components makes the jobs of the groups out of what they have in common: the first is the submission's own.
func (b *builder) components(common core.Spec) (first core.Spec, rest []core.Spec, err error) {
	groups := b.s.groups()
	if !b.contains {
		return common, nil, refuse("groups: they need containers; this run is to be a process")
	}
	for i := range groups {
		g := &groups[i]
		if len(g.Commands) == 0 {
			return common, nil, refuse("groups[%d].commands: is empty; a group needs commands, also where the image has "+
				"a program of its own", i)
		}
		req := requestOf(&g.Resources)
		spec, x, c := common, *common.Extra, *common.Extra.Container
		spec.Shape = req.shape(int32(g.Nodes))
		spec.Shape.Given |= common.Shape.Given & core.GivenTimeLimit
		spec.Shape.Exclusive = true // as in dstack: no two of the run's nodes are one
		x.GPU, c.Shm, c.Ports, c.Own = req.ask, req.shm, nil, false
		if x.TmpDisk != 0 {
			x.TmpDisk = req.disk
		}
		for _, p := range g.Ports {
			c.Ports = append(c.Ports, core.Port{Local: int32(config.Value(p.Local)), Container: int32(p.Container)})
		}
		x.Container, spec.Extra = &c, &x
		if i == 0 {
			first = spec
			continue
		}
		rest = append(rest, spec)
	}
	return first, rest, nil
}

// groupCommands has each group run its own commands. References to nodes of groups stay until the run is launched.
func groupCommands(groups []config.NodeGroup) string {
	var t strings.Builder
	t.WriteString("case $" + core.NodeGroup + " in\n")
	for i := range groups {
		fmt.Fprintf(&t, "%d)\n%s\n;;\n", i, join(groups[i].Commands))
	}
	t.WriteString("esac")
	return t.String()
}
