package coretest

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
)

// JobBuilder makes a job or, with Spec, only what is asked for.
type JobBuilder struct {
	spec core.Spec
	job  core.Job
}

// Job begins a pending batch job of alice: one task, one CPU.
func Job() *JobBuilder {
	return &JobBuilder{
		spec: core.Spec{
			Name: "job", User: "alice", UID: 1000, GID: 1000, Runtime: "process", Requeue: true,
			Shape: core.Shape{CPUsPerTask: 1},
		},
		job: core.Job{ID: 1},
	}
}

// ID sets the job's number; its spec is stored under the same one.
func (b *JobBuilder) ID(id core.JobID) *JobBuilder { b.job.ID = id; return b }

// Name sets the job's name.
func (b *JobBuilder) Name(n string) *JobBuilder { b.spec.Name = n; return b }

// User sets who asks; the uid is the caller's affair where it matters.
func (b *JobBuilder) User(u core.UserName) *JobBuilder { b.spec.User = u; return b }

// Partition sets where: one name, or several with commas.
func (b *JobBuilder) Partition(p core.PartitionName) *JobBuilder {
	b.spec.Partition = core.ParsePartitions(string(p))
	return b
}

// Tasks sets the number of tasks.
func (b *JobBuilder) Tasks(n int32) *JobBuilder { b.spec.Shape.Tasks = n; return b }

// CPUs sets the CPUs of each task.
func (b *JobBuilder) CPUs(n int32) *JobBuilder { b.spec.Shape.CPUsPerTask = n; return b }

// Nodes sets the exact number of nodes.
func (b *JobBuilder) Nodes(n int32) *JobBuilder {
	b.spec.Shape.NodesMin, b.spec.Shape.NodesMax = n, n
	return b
}

// Mem sets the memory on each node.
func (b *JobBuilder) Mem(m core.Bytes) *JobBuilder { b.spec.Shape.MemPerNode = m; return b }

// MemPerCPU sets the memory of each CPU.
func (b *JobBuilder) MemPerCPU(m core.Bytes) *JobBuilder { b.spec.Shape.MemPerCPU = m; return b }

// Gres adds a generic resource on each node.
func (b *JobBuilder) Gres(name, typ string, count int64) *JobBuilder {
	b.spec.Shape.Gres = append(b.spec.Shape.Gres, core.Gres{Name: name, Type: typ, Count: count})
	return b
}

// Exclusive asks for whole nodes.
func (b *JobBuilder) Exclusive() *JobBuilder { b.spec.Shape.Exclusive = true; return b }

// Time sets the limit.
func (b *JobBuilder) Time(d time.Duration) *JobBuilder {
	b.spec.TimeLimit = core.Seconds(d / time.Second)
	return b
}

// Array makes it an array of these tasks, not started. It panics on an expression that is none.
func (b *JobBuilder) Array(expr string, throttle int32) *JobBuilder {
	set, err := taskset.Parse(expr)
	if err != nil {
		panic(err)
	}
	b.spec.Array, b.spec.Throttle = expr, throttle
	b.job.Array = &core.ArrayRef{
		Tasks: set, Count: int32(set.Len()), Min: int32(set.Min()), Max: int32(set.Max()),
		Step: int32(set.Step()),
	}
	return b
}

// Interactive makes it an allocation that its creator fills with steps.
func (b *JobBuilder) Interactive() *JobBuilder { b.spec.Kind = core.Interactive; return b }

// Set changes anything else of the spec.
func (b *JobBuilder) Set(f func(*core.Spec)) *JobBuilder { f(&b.spec); return b }

// Priority sets the priority.
func (b *JobBuilder) Priority(p uint32) *JobBuilder { b.job.Priority = p; return b }

// Submitted sets when it was submitted and, from then on, may start.
func (b *JobBuilder) Submitted(at core.Time) *JobBuilder {
	b.job.Submit, b.job.Eligible = at, max(at, b.spec.Begin)
	return b
}

// Running makes it run on what it was given.
func (b *JobBuilder) Running(al *core.Alloc) *JobBuilder {
	b.job.State, b.job.Alloc, b.job.Attempt = core.Running, al, 1
	return b
}

// Spec gives what is asked for.
func (b *JobBuilder) Spec() *core.Spec { s := b.spec; return &s }

// Build gives the job.
func (b *JobBuilder) Build() *core.Job {
	j := b.job
	j.Spec, j.SpecID = b.Spec(), j.ID
	if j.Array != nil {
		ref := *j.Array
		ref.Base = j.ID
		j.Array = &ref
	}
	return &j
}
