package volumes

import (
	"cmp"
	"iter"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
)

// Records are what a node is chosen from.
type Records interface {
	Node(name core.NodeName) (*core.Node, bool)
	Nodes() iter.Seq[*core.Node]
	Volumes() []*core.Volume
}

// PickNode chooses the node that makes or removes a volume of a project: the one that is wanted, else one with the
// fewest volumes.
func PickNode(rec Records, project core.ProjectName, want core.NodeName) (core.NodeName, error) {
	images := map[core.NodeName]int{}
	for _, v := range rec.Volumes() {
		images[v.Node]++
	}
	fits := func(n *core.Node) bool {
		return n.Usable() && n.Roles&core.Compute != 0 && (n.Project == "" || n.Project == project)
	}
	if want != "" {
		n, ok := rec.Node(want)
		if !ok {
			return "", core.Errorf(core.Invalid, "node: there is no node %.60q", want).Because("invalid_node")
		}
		if !fits(n) {
			return "", core.Errorf(core.Conflict, "node: %s is not up, or not for jobs of project %s", want,
				project).Because("node_silent")
		}
		return want, nil
	}
	var best *core.Node
	for n := range rec.Nodes() {
		if fits(n) && (best == nil || cmp.Or(cmp.Compare(images[n.Name], images[best.Name]),
			cmp.Compare(n.Name, best.Name)) < 0) {
			best = n
		}
	}
	if best == nil {
		return "", core.Errorf(core.Unavailable, "no node is up that could make a volume for project %s",
			project).Because("node_silent")
	}
	return best.Name, nil
}

// JobWith finds the first live job that mounts a volume; 0: none does.
func JobWith(jobs iter.Seq[*core.Job], k core.VolumeKey) core.JobID {
	for j := range jobs {
		if j.Live() && slices.Contains(storage.Mounted(j.Spec), k) {
			return j.ID
		}
	}
	return 0
}
