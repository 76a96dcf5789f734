package runs

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

type stopBody struct {
	RunsNames []string `json:"runs_names" in:"required,max=1000"`
	Abort     bool     `json:"abort" in:"required"`
}

// stop ends open runs. Names of runs that have ended, or that there are none of, are passed over.
func (a *Runs) stop(c *front.Call, in *stopBody) (any, error) {
	l := a.look(c)
	for _, name := range in.RunsNames {
		r, ok := l.v.Run(c.Project.Name, name)
		if hidden, there := c.Snap.Run(c.Project.Name, name); there && !ok {
			c.Hid("run "+name, hidden.User)
		}
		if !ok {
			if r, ok = l.slurmRun(c.Context(), c.Project.Name, name); !ok || r.Ended != 0 {
				continue
			}
		}
		if r.Service != nil {
			stop := &state.StopService{By: c.Identity, Project: r.Project, Name: r.Name, Abort: in.Abort}
			if _, err := engine.Do(c.Context(), a.Engine, stop); err != nil && core.CodeOf(err) != core.NotFound {
				return nil, err
			}
			continue
		}
		for _, id := range r.Jobs {
			_, err := engine.Urgent(c.Context(), a.Engine, &state.Cancel{By: c.Identity, Job: id, Abort: in.Abort})
			if err != nil && core.CodeOf(err) != core.NotFound {
				return nil, err
			}
			if j, ok := l.v.Job(id); ok {
				c.Changed(j)
			}
		}
	}
	return nil, nil
}

type deleteBody struct {
	RunsNames []string `json:"runs_names" in:"required,max=1000"`
}

// remove deletes runs that have ended, or none where one is open.
func (a *Runs) remove(c *front.Call, in *deleteBody) (any, error) {
	l := a.look(c)
	var active []string
	var ended []*core.Run
	for _, name := range in.RunsNames {
		if _, open := l.v.Run(c.Project.Name, name); open {
			active = append(active, "'"+name+"'")
			continue
		}
		r, err := l.newest(c.Context(), c.Project.Name, name)
		if err != nil {
			return nil, err
		}
		if r != nil && r.Deleted == 0 && r.Ended != 0 && l.v.SeesRun(r) {
			ended = append(ended, r)
		}
	}
	if len(active) > 0 {
		slices.Sort(active)
		return nil, front.Conflictf("Cannot delete active runs: [%s]", strings.Join(active, ", "))
	}
	for _, r := range ended {
		if _, err := engine.Do(c.Context(), a.Engine, &state.DeleteRun{By: c.Identity, Run: r}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
