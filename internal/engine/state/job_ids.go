package state

import "bireme.dev/bireme/internal/core"

// maxSeenAhead is how far beyond the next job id of the loaded state nodes are believed to have seen ids. It is a bound
// for all of them together until the state is loaded again: a node that lies wastes so many ids and no more.
const maxSeenAhead = 1_000_000

// raiseNextJob moves the next job id past those that a node runs or ran. A node knows of ids that were not given out
// when an older copy of the store was put back; they are not given out again. It reports whether that changed anything:
// then it is committed with the node.
func (in *Register) raiseNextJob(s *State) bool {
	was := s.rec.NextJob()
	raise := func(id core.JobID) {
		if id < s.maxSeenJob {
			s.rec.SkipJobIDs(id + 1)
		}
	}
	for i := range in.Running {
		raise(in.Running[i].Job)
	}
	for i := range in.Ended {
		raise(in.Ended[i].Job)
	}
	return s.rec.NextJob() != was
}
