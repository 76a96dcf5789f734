package srun

import (
	"context"

	"bireme.dev/bireme/internal/slurm/cmd/display"
)

// windows has the windows of tasks shown on the caller's display, by --x11 or as salloc arranged it, and says which
// variables they need for it. stop ends it.
func (s *run) windows(ctx context.Context) (vars []string, stop func(), err error) {
	if s.r.Step.X11 == "" {
		if s.inside {
			vars = display.Inherited(s.w)
		}
		return vars, func() {}, nil
	}
	list, err := s.c.Job(ctx, s.job)
	if err != nil {
		return nil, nil, err
	}
	count := 1
	if a := list.Jobs[0].Alloc; a != nil {
		count = len(a.Nodes)
	}
	return display.Start(s.w, s.job, s.r.Step.X11, count)
}
