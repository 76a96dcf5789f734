package policyset

import (
	"fmt"
	"iter"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

// Uses is what may name a QOS or a project beside a policy.
type Uses struct {
	DefaultProject core.ProjectName
	Partitions     []core.Partition
	Jobs           iter.Seq[*core.Job]
	Fleets         []*core.Fleet
	Runs           []*core.Run
}

// QOSReference finds something that needs a QOS to be there; lists that merely allow it count unless they may change.
// One that allows nothing else always counts: an empty list allows every QOS.
func (b *Set) QOSReference(u *Uses, name core.QOSName, listsChange bool) string {
	for _, q := range named.Sorted(b.QOS) {
		if !listsChange && q.Name != name && slices.Contains(q.Preempt, name) {
			return "QOS " + string(q.Name)
		}
	}
	uses := func(a *core.Association) bool {
		others := slices.ContainsFunc(a.QOS, func(q core.QOSName) bool { return q != name })
		return a.DefaultQOS == name || slices.Contains(a.QOS, name) && !(listsChange && others)
	}
	for _, p := range named.Sorted(b.Projects) {
		if uses(&p.Assoc) {
			return "project " + string(p.Name)
		}
		for i := range p.Members {
			if uses(&p.Members[i].Assoc) {
				return fmt.Sprintf("%s in project %s", p.Members[i].User, p.Name)
			}
		}
	}
	for i := range u.Partitions {
		if p := &u.Partitions[i]; p.QOS == name || slices.Contains(p.AllowQOS, name) {
			return "partition " + string(p.Name)
		}
	}
	for j := range u.Jobs {
		if j.Spec.QOS == name {
			return fmt.Sprintf("job %d", j.ID)
		}
	}
	return ""
}

// ProjectReference says what needs a project to be there; users whose default it is count unless they may change.
func (b *Set) ProjectReference(u *Uses, name core.ProjectName, usersChange bool) string {
	if name == u.DefaultProject {
		return "the settings make it everybody's default"
	}
	for _, p := range named.Sorted(b.Projects) {
		if p.Parent == name && p.Name != name {
			return fmt.Sprintf("project %s is below it", p.Name)
		}
	}
	for _, x := range named.Sorted(b.Users) {
		if !usersChange && x.Default == name {
			return fmt.Sprintf("it is the default of %s", x.Name)
		}
	}
	for j := range u.Jobs {
		if j.Spec.Project == name {
			return fmt.Sprintf("job %d belongs to it", j.ID)
		}
	}
	for _, f := range u.Fleets {
		if f.Project == name {
			return fmt.Sprintf("fleet %s belongs to it", f.Name)
		}
	}
	for _, r := range u.Runs {
		if r.Project == name {
			return "a run belongs to it"
		}
	}
	return ""
}
