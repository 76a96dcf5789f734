package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/credentials"
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
func (s *State) jobWithVolume(k core.VolumeKey) core.JobID { return volumes.JobWith(s.rec.Jobs(), k) }

// volumeMaker finds the node that makes or removes a volume.
func (s *State) volumeMaker(project core.ProjectName, want core.NodeName) (core.NodeName, error) {
	return volumes.PickNode(s.rec, project, want)
}

// Inputs about secrets, repositories and keys.
type (
	PutCredential    credentials.Put    // Reply: nil.
	DropCredential   credentials.Drop   // Reply: nil.
	ResealCredential credentials.Reseal // Reply: nil. Nobody but the server itself asks for it.
)

func (*PutCredential) input()    {}
func (*DropCredential) input()   {}
func (*ResealCredential) input() {}

func (in *PutCredential) apply(s *State) (None, error) {
	return none, s.credentials.Put(&s.rec.Tables, (*credentials.Put)(in))
}

func (in *DropCredential) apply(s *State) (None, error) {
	return none, s.credentials.Drop(&s.rec.Tables, (*credentials.Drop)(in))
}

func (in *ResealCredential) apply(s *State) (None, error) {
	s.credentials.Reseal((*credentials.Reseal)(in))
	return none, nil
}
