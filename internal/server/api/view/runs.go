package view

import (
	"bireme.dev/bireme/internal/core"
)

// LiveRunJob is the live job by which an open run is judged; of an array, the task that is furthest: one that runs
// before one that waits, and that before one that is being stopped. Nil: none of its jobs is live.
func (v *Viewer) LiveRunJob(r *core.Run) *core.Job {
	if len(r.Jobs) == 0 {
		return nil
	}
	if r.Service != nil {
		return v.liveReplica(r)
	}
	return v.LiveArrayJob(r.Jobs[0])
}

// liveReplica is the job of the replica that is furthest; of equals the newest version's, then the first.
func (v *Viewer) liveReplica(r *core.Run) (best *core.Job) {
	newest := r.Service.Current().Num
	rank := func(j *core.Job, x *core.Replica) int {
		n := 4 * stageRank(j)
		if x.IsReady(j) {
			n += 2
		}
		if x.Version == newest {
			n++
		}
		return n
	}
	most := -1
	for i := range r.Service.Replicas {
		x := &r.Service.Replicas[i]
		if j, live := v.Job(x.Job); live {
			if n := rank(j, x); n > most {
				best, most = j, n
			}
		}
	}
	return best
}

// LiveArrayJob is LiveRunJob of a job's or array's id.
func (v *Viewer) LiveArrayJob(id core.JobID) *core.Job {
	best, live := v.Job(id)
	if live && best.Array == nil {
		return best
	}
	for _, j := range v.tasksOf(id) {
		if best == nil || stageRank(j) > stageRank(best) {
			best = j
		}
	}
	return best
}

// LiveTasks are the live records of an array, by id: started tasks, and one for those that wait.
func (v *Viewer) LiveTasks(base core.JobID) []*core.Job { return v.tasksOf(base) }

// tasksOf reads all live jobs once in the life of the viewer.
func (v *Viewer) tasksOf(base core.JobID) []*core.Job {
	if v.tasks == nil {
		v.tasks = map[core.JobID][]*core.Job{}
		for j := range v.Jobs() {
			if j.Array != nil {
				v.tasks[j.Array.Base] = append(v.tasks[j.Array.Base], j)
			}
		}
	}
	return v.tasks[base]
}

// stageRank orders the tasks of a run: the highest stands for it.
func stageRank(j *core.Job) int {
	switch {
	case j.Stop != nil || j.State.Final():
		return 0
	case j.State == core.Pending:
		return 1
	case j.Flags.Has(core.Configuring):
		return 2
	}
	return 3
}

// Begun reports whether some tasks of a run's array have started, where the rest waits.
func Begun(j *core.Job) bool {
	return j != nil && j.IsArray() && j.Array.Tasks.Len() < int(j.Array.Count)
}
