package config

import (
	"errors"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

var secretForm = lazy(`^[A-Za-z0-9\-_]{1,200}$`)

// checkVariables checks every variable of a run: that it is closed, known where it stands, and in range.
func (r *reader) checkVariables(c *Configuration) {
	check := func(of string, text string, loc ...any) {
		_, err := Expand(text, func(name string) (string, bool, error) { return "", true, c.knownIn(of, name) })
		if err != nil {
			r.fail(c.placeOf(loc...), c.pathOf(loc...), typeValue, "%s", err.Error())
		}
	}
	if r.request { // a client has replaced its own; what is left are addresses of groups, and text of the shell's
		c.eachCommand(func(text *string, loc ...any) {
			if strings.Contains(*text, "groups[") {
				check(inGroups, *text, loc...)
			}
		})
	} else {
		c.eachText(func(of string, text *string, loc ...any) { check(of, *text, loc...) })
	}
	run := c.Run()
	for i := range run.Env {
		check(inEnv, run.Env[i].Value, "env", run.Env[i].Name)
	}
	for i := range run.Volumes {
		for _, name := range run.Volumes[i].Names {
			check(inVolume, name, "volumes", i)
		}
		check(inVolume, run.Volumes[i].InstancePath, "volumes", i)
	}
}

// inGroups is the commands of a request, where only the addresses of groups are variables.
const inGroups = "group"

// knownIn reports what is wrong with a variable where it stands.
func (c *Configuration) knownIn(of, name string) error {
	ns, key, _ := strings.Cut(name, ".")
	isRef := strings.HasPrefix(name, "groups[")
	switch {
	case isRef && (of == inCommands || of == inGroups):
		return c.checkGroupRef(name)
	case isRef && of == inEnv:
		return fmt.Errorf("${{ %s }}: addresses of groups are known in commands only", tree.Clip(name))
	case of == inGroups, of == inCommands && name == "run.args", of == inDomain && name == "run.project_name",
		of == inVolume && (name == "dstack.node_rank" || name == "dstack.job_num"):
		return nil
	case (of == inEnv || of == inAuth) && ns == "secrets":
		if !secretForm().MatchString(key) {
			return fmt.Errorf("${{ %s }}: %s is not the name of a secret", tree.Clip(name), tree.Quote(key))
		}
		return nil
	case (of == inAuth || of == inProbe) && ns == "env": // -e may give it
		return nil
	}
	return unknownVariable(of, name)
}

// checkGroupRef checks that a group and its member exist.
func (c *Configuration) checkGroupRef(name string) error {
	ref, ok := ParseGroupRef(name)
	if !ok {
		return fmt.Errorf("${{ %s }}: write ${{ groups[i].nodes[j].IP_ADDRESS }}, in a service replicas for nodes",
			tree.Clip(name))
	}
	var members []int
	switch {
	case c.Task != nil && ref.Replica:
		return fmt.Errorf("${{ %s }}: a task has nodes, not replicas", tree.Clip(name))
	case c.Task != nil:
		members = c.Task.groupSizes()
	case c.Service != nil && !ref.Replica:
		return fmt.Errorf("${{ %s }}: a service has replicas, not nodes", tree.Clip(name))
	case c.Service != nil:
		members = c.Service.groupSizes()
	default:
		return errors.New("a dev environment has no groups")
	}
	if ref.Group >= len(members) {
		return fmt.Errorf("${{ %s }}: there is no group %d; the last is %d", tree.Clip(name), ref.Group, len(members)-1)
	}
	if ref.Member >= members[ref.Group] {
		return fmt.Errorf("${{ %s }}: group %d is sure to have %d members only, from 0 on", tree.Clip(name), ref.Group,
			members[ref.Group])
	}
	return nil
}

// groupSizes gives the number of nodes of each group; a task without groups is one.
func (t *Task) groupSizes() []int {
	if len(t.Groups) == 0 {
		nodes := 1
		if t.Nodes != nil {
			nodes = *t.Nodes
		}
		return []int{nodes}
	}
	sizes := make([]int, len(t.Groups))
	for i := range t.Groups {
		sizes[i] = t.Groups[i].Nodes
	}
	return sizes
}

// groupSizes gives the least number of replicas of each group.
func (s *Service) groupSizes() []int {
	if len(s.Groups) == 0 {
		if s.Replicas == nil {
			return []int{1}
		}
		return []int{int(Value(s.Replicas.Min))}
	}
	sizes := make([]int, len(s.Groups))
	for i := range s.Groups {
		sizes[i] = int(Value(s.Groups[i].Replicas.Min))
	}
	return sizes
}
