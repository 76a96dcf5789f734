package core

import (
	"time"

	"bireme.dev/bireme/internal/core/taskset"
)

// Job is one all-or-nothing request for resources and what became of it; or, while Array.Tasks is not empty, the one
// record standing for all tasks of an array that have not started.
type Job struct {
	ID     JobID     `json:"id"`
	Spec   *Spec     `json:"spec,omitempty"`  // the store keeps it apart, under SpecID
	SpecID JobID     `json:"spec_id"`         // the id the spec was stored under: its own, or its array's
	Array  *ArrayRef `json:"array,omitempty"` // nil for a job that is no array

	State    JobState `json:"state"`
	Flags    JobFlag  `json:"flags,omitempty"`
	Reason   Reason   `json:"reason,omitempty"`  // durable reasons only (ends, holds); waiting reasons come from the plan
	Message  string   `json:"message,omitempty"` // a sentence for people: what failed, with path and cause
	Priority uint32   `json:"priority,omitempty"`
	Attempt  int32    `json:"attempt"` // 0 before the first start; each start adds one

	Submit    Time          `json:"submit"`
	Eligible  Time          `json:"eligible,omitempty"`
	Released  Time          `json:"released,omitempty"` // last, from a hold: its age counts from then
	Accrue    Time          `json:"accrue,omitempty"`   // where limits say how many grow older: since when it does
	Start     Time          `json:"start,omitempty"`
	End       Time          `json:"end,omitempty"`
	Paused    Time          `json:"paused,omitempty"`     // when it was suspended, 0 if it is not
	PausedFor time.Duration `json:"paused_for,omitempty"` // sum of suspensions that ended

	Alloc *Alloc `json:"alloc,omitempty"`
	Exit  Exit   `json:"exit,omitzero"`
	Usage Usage  `json:"usage,omitzero"` // of the batch step, all nodes
	Stop  *Stop  `json:"stop,omitempty"`
	Steps int32  `json:"steps,omitempty"` // numbered steps made so far
	Image string `json:"image,omitempty"` // the digest of what its container was made of, once it has ended
	Needs *Needs `json:"needs,omitempty"` // what it waits for of other jobs; nil when nothing is left

	// when it last saved its work, as it told: what it did before is not lost with it
	Checkpoint Time     `json:"checkpoint,omitempty"`
	Pushed     *Pushed  `json:"pushed,omitempty"`  // it was preempted
	Earlier    *Earlier `json:"earlier,omitempty"` // attempts of it that went back to the queue
	Room       *Room    `json:"room,omitempty"`    // while it waits: others were preempted for it
	Life       *RunLife `json:"life,omitempty"`    // of a YAML run with rules of its own
}

// ArrayRef ties a job to its array.
type ArrayRef struct {
	Base JobID `json:"base"`
	Task int32 `json:"task"` // its index; meaningless while Tasks is not empty
	// Tasks are the indices this record stands for. A started task has none.
	Tasks taskset.Set `json:"tasks,omitzero"`
	// Of the whole array, for SLURM_ARRAY_TASK_*.
	Count int32 `json:"count"`
	Min   int32 `json:"min"`
	Max   int32 `json:"max"`
	Step  int32 `json:"step"`
}

// Alloc is what a job holds. Nodes are in the job's own order: the first runs the batch script.
type Alloc struct {
	Partition PartitionName `json:"partition"`
	Nodes     []NodeAlloc   `json:"nodes"`
	More      *AllocMore    `json:"more,omitempty"`
}

// AllocMore is what few allocations have.
type AllocMore struct {
	Reservation string    `json:"reservation,omitempty"` // the advance reservation it runs in
	Licenses    []License `json:"licenses,omitempty"`    // it holds, by name
	// How it holds its nodes, where its partition decides that: fixed at the start, whatever the partition says later.
	Whole bool  `json:"whole,omitempty"` // nobody else may be on its nodes
	Own   bool  `json:"own,omitempty"`   // only jobs of its user that have this too may be on its nodes
	Share int32 `json:"share,omitempty"` // up to so many jobs may be on each of its CPUs; 0: it is alone there
}

// Wide returns al.More, made if there is none yet.
func (al *Alloc) Wide() *AllocMore {
	if al.More == nil {
		al.More = &AllocMore{}
	}
	return al.More
}

// Inside is the advance reservation the job runs in, or "".
func (al *Alloc) Inside() string {
	if al == nil || al.More == nil {
		return ""
	}
	return al.More.Reservation
}

// Licenses are those the job holds.
func (al *Alloc) Licenses() []License {
	if al == nil || al.More == nil {
		return nil
	}
	return al.More.Licenses
}

// NodeAlloc is a job's part of one node.
type NodeAlloc struct {
	Node  NodeName    `json:"node"`
	CPUs  int32       `json:"cpus"`
	Cores []int32     `json:"cores,omitempty"` // indices of the CPUs given
	Mem   Bytes       `json:"mem,omitempty"`
	Gres  []GresAlloc `json:"gres,omitempty"`
	Tasks int32       `json:"tasks"`
	Done  bool        `json:"done,omitempty"` // the node has reported the job clean
}

// GresAlloc is which units of a generic resource a job has on a node, by their index among all of that name.
type GresAlloc struct {
	Name  string  `json:"name"`
	Type  string  `json:"type,omitempty"`
	Units []int32 `json:"units"`
}

// GPUs counts the GPUs that a job has on a node.
func (n *NodeAlloc) GPUs() int {
	count := 0
	for _, g := range n.Gres {
		if g.Name == "gpu" {
			count += len(g.Units)
		}
	}
	return count
}

// Exit is how a program ended.
type Exit struct {
	Code   int32 `json:"code,omitempty"`
	Signal int32 `json:"signal,omitempty"`
}

// RankExit is how the program of a run ended on one of its nodes.
type RankExit struct {
	Rank   int32 `json:"rank"`
	Code   int32 `json:"code,omitempty"`
	Signal int32 `json:"signal,omitempty"`
}

// Slurm's marks for ends that are no program's own; they are not signals.
var (
	ExitOOM    = Exit{Signal: 125} // the kernel ended it for the memory it took
	ExitLaunch = Exit{Signal: 53}  // it could not be started
)

// Usage is what a step used, measured on its nodes.
type Usage struct {
	User   time.Duration `json:"user,omitempty"`
	Sys    time.Duration `json:"sys,omitempty"`
	MaxRSS Bytes         `json:"max_rss,omitempty"`
	// Of all GPUs together, sampled: percent (200: two of them, all the time) and memory.
	GPUUtil    int32 `json:"gpu_util,omitempty"` // at most
	GPUUtilAve int32 `json:"gpu_util_ave,omitempty"`
	GPUMem     Bytes `json:"gpu_mem,omitempty"`
	GPUMemAve  Bytes `json:"gpu_mem_ave,omitempty"`
}

// Stop is somebody's wish that a job should end.
type Stop struct {
	By    UserName `json:"by"`
	UID   uint32   `json:"uid"`
	At    Time     `json:"at"`
	As    JobState `json:"as"` // the state it will have
	Grace Seconds  `json:"grace,omitempty"`
	Abort bool     `json:"abort,omitempty"` // at once, without the signals that let it end by itself
}

// Step is something that runs inside a job's allocation: numbered steps made by srun. The batch step is the job's own
// Exit and Usage and has no record.
type Step struct {
	Job     JobID      `json:"job"`
	ID      int32      `json:"id"`
	Name    string     `json:"name"`
	State   JobState   `json:"state"`
	Nodes   []NodeName `json:"nodes"`
	Tasks   []int32    `json:"tasks"` // on each node
	CPUs    int32      `json:"cpus"`
	Mem     Bytes      `json:"mem,omitempty"`  // of its job's, on all nodes
	Gres    []Gres     `json:"gres,omitempty"` // units on all nodes, without types; also those it shares with other steps
	Start   Time       `json:"start"`
	End     Time       `json:"end,omitempty"`
	Exit    Exit       `json:"exit,omitzero"`
	Usage   Usage      `json:"usage,omitzero"`
	Message string     `json:"message,omitempty"`
	Left    int32      `json:"left,omitempty"`  // nodes that have not reported its end
	Ended   []int32    `json:"ended,omitempty"` // positions in Nodes of those that have: a report may come twice
	Attempt int32      `json:"attempt"`
	// Holds is what it has to itself on each of Nodes while it runs; empty: it shares all with other steps.
	Holds []StepHold `json:"holds,omitempty"`
	// Units are those that its tasks see on each of Nodes, also shared ones; empty: those in Holds, or its job's.
	Units [][]GresAlloc `json:"units,omitempty"`
	// Options are what its srun said of it beside what it asks for.
	Options StepOptions `json:"options,omitzero"`
}

// StepOptions are what srun says of a step that decides nothing about where it runs.
type StepOptions struct {
	TimeLimit    Seconds `json:"time_limit,omitempty"`   // from its start; 0: the job's, Forever: none of its own
	Distribution string  `json:"distribution,omitempty"` // of tasks to nodes, as Slurm's -m
	Host         string  `json:"host,omitempty"`         // where srun runs
	PID          int32   `json:"pid,omitempty"`          // of srun
}

// IsArray reports whether the record stands for tasks that have not started.
func (j *Job) IsArray() bool { return j.Array != nil && j.Array.Tasks.Len() > 0 }

// Live reports whether the job is in memory: not ended, or ended and not yet clean.
func (j *Job) Live() bool { return !j.State.Final() || j.Flags.Any(Completing|Requeueing) }

// Elapsed is how long the job has run at now, without suspensions.
func (j *Job) Elapsed(now Time) time.Duration {
	if j.Start == 0 {
		return 0
	}
	end := now
	if j.End != 0 {
		end = j.End
	}
	paused := j.PausedFor
	if j.Paused != 0 && end > j.Paused {
		paused += end.Sub(j.Paused)
	}
	return max(0, end.Sub(j.Start)-paused)
}

// Count is how many jobs the record stands for.
func (j *Job) Count() int {
	if n := j.taskCount(); n > 0 {
		return n
	}
	return 1
}

func (j *Job) taskCount() int {
	if j.Array == nil {
		return 0
	}
	return j.Array.Tasks.Len()
}
