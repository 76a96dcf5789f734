package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// Try is a submission that is only admitted or refused: nothing waits or runs afterwards, but a number is used up, as
// in Slurm. Reply: *core.Job, as it would wait.
type Try struct{ Submit }

func (*Try) input() {}

func (in *Try) apply(s *State) (*core.Job, error) {
	if err := speccheck.Submission(in.Key, in.Spec, in.Components); err != nil {
		return nil, err
	}
	j, err := in.Submit.prepare(s, in.Spec)
	if err != nil {
		return nil, err
	}
	j.ID = s.rec.TakeJobID()
	j.SpecID = j.ID
	if j.Array != nil {
		j.Array.Base = j.ID
	}
	return j, nil
}
