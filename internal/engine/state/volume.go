package state

import (
	"cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/engine/state/volumes"
)

// Inputs about network volumes.
type (
	PutVolume  volumes.Put  // Reply: *core.Volume.
	DropVolume volumes.Drop // Reply: nil.
	VolumeNews volumes.News // Reply: nil.
)

func (*PutVolume) input()  {}
func (*DropVolume) input() {}
func (*VolumeNews) input() {}

func (in *PutVolume) apply(s *State) (*core.Volume, error) {
	return s.volumes.Put(&s.rec.Tables, s.cfg.Volumes, (*volumes.Put)(in), s.volumeMaker)
}

func (in *DropVolume) apply(s *State) (None, error) {
	return none, s.volumes.Drop(&s.rec.Tables, (*volumes.Drop)(in), s.volumeMaker, s.jobWithVolume)
}

func (in *VolumeNews) apply(s *State) (None, error) {
	s.volumes.News((*volumes.News)(in))
	return none, nil
}

// jobWithVolume finds the first live job that mounts a volume.
func (s *State) jobWithVolume(k core.VolumeKey) core.JobID {
	for j := range s.rec.Jobs() {
		for _, o := range storage.Mounted(j.Spec) {
			if o == k && j.Live() {
				return j.ID
			}
		}
	}
	return 0
}

// volumeMaker finds the node that makes or removes a volume: the one that is wanted, else one with the fewest.
func (s *State) volumeMaker(project core.ProjectName, want core.NodeName) (core.NodeName, error) {
	images := map[core.NodeName]int{}
	for _, v := range s.rec.Volumes() {
		images[v.Node]++
	}
	fits := func(n *core.Node) bool {
		return n.Usable() && n.Roles&core.Compute != 0 && (n.Project == "" || n.Project == project)
	}
	if want != "" {
		n, ok := s.rec.Node(want)
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
	for n := range s.rec.Nodes() {
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
