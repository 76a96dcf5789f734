package slurmtest

import (
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/taskset"
)

// Day is the day on which the recordings were made; all times of the lab are of it, in UTC.
func Day(clock string) core.Time {
	t, err := time.Parse("2006-01-02T15:04:05", "2026-11-15T"+clock)
	if err != nil {
		panic(err)
	}
	return core.At(t)
}

// JobOption changes a job of the lab.
type JobOption func(j *client.Job)

// Job makes a pending job like those of the recordings: root's, in partition main, one task with 10 MiB.
func Job(id core.JobID, name string, submit string, opts ...JobOption) client.Job {
	j := client.Job{Job: core.Job{
		ID: id, SpecID: id, Submit: Day(submit), Eligible: Day(submit), Priority: 10163,
		Spec: &core.Spec{
			Name: name, User: "root", Project: "bench", Partition: core.ListPartitions("main"), QOS: "normal", TimeLimit: 600,
			Requeue: true,
			Shape:   core.Shape{Tasks: 1, CPUsPerTask: 1, NodesMin: 1, MemPerCPU: 10 * core.MiB},
			IO:      core.IO{WorkDir: "/tmp/golden", Stdout: "slurm-%j.out"},
			From:    core.Origin{Host: "localhost", Sid: 10067, Command: "/tmp/golden/sleep.sh", Dir: "/tmp/golden"},
		},
	}}
	for _, o := range opts {
		o(&j)
	}
	return j
}

// Running gives a job nodes: name, CPUs and tasks of each.
func Running(start string, nodes ...core.NodeAlloc) JobOption {
	return func(j *client.Job) {
		j.State, j.Start, j.Attempt = core.Running, Day(start), 1
		j.Alloc = &core.Alloc{Partition: j.Spec.Partition.First(), Nodes: nodes}
	}
}

// On is a part of a node.
func On(node core.NodeName, cpus int32) core.NodeAlloc {
	a := core.NodeAlloc{Node: node, CPUs: cpus, Tasks: cpus, Mem: core.Bytes(cpus) * 10 * core.MiB}
	for i := range cpus {
		a.Cores = append(a.Cores, i)
	}
	return a
}

// Waits gives the reason of a pending job.
func Waits(r core.Reason) JobOption { return func(j *client.Job) { j.Waiting = r } }

// With changes the spec.
func With(f func(s *core.Spec)) JobOption { return func(j *client.Job) { f(j.Spec) } }

// Ended gives a running job its end.
func Ended(end string, s core.JobState, e core.Exit) JobOption {
	return func(j *client.Job) { j.State, j.End, j.Exit = s, Day(end), e }
}

// wrapped marks a job made by --wrap or from standard input.
func wrapped(s *core.Spec) { s.From.Command, s.TimeLimit = "", 3600 }

// arrayTask makes a started task of array 4 of the lab.
func arrayTask(index int32) JobOption {
	return func(j *client.Job) {
		j.Array = &core.ArrayRef{Base: 4, Task: index, Count: 20, Min: 1, Max: 20, Step: 1}
		j.Eligible, j.Spec.Throttle, j.Spec.IO.Stdout = Day("01:09:00"), 4, "slurm-%A_%a.out"
	}
}

// Lab is the cluster of the recordings (Slurm 22.05.8) at 01:10:19, without the het job 16.
func Lab() *Cluster {
	gpu := func(units ...int32) core.NodeAlloc {
		a := On("n003", 1)
		a.Gres = []core.GresAlloc{{Name: "gpu", Type: "a100", Units: units}}
		return a
	}
	c := &Cluster{Now: Day("01:10:19").Go().UTC(), Who: client.Whoami{User: "root", Admin: true, Project: "bench"}}
	c.Info = client.Cluster{
		Name: "anchor", SlurmVersion: "22.05.8", Server: "vm", Settings: map[string]string{},
		Partitions: []core.Partition{
			{Name: "main", Nodes: "n[001-008]", Default: true, DefaultTime: 3600, PriorityTier: 1, PriorityFactor: 1},
			{Name: "short", Nodes: "n[001-008]", MaxTime: 1800, DefaultTime: 300, PriorityTier: 1, PriorityFactor: 10},
			{Name: "debug", Nodes: "n001", MaxTime: 600, DefaultTime: 60, MaxNodes: 1, PriorityTier: 1, PriorityFactor: 1},
		},
	}
	c.Nodes = nodes()
	c.Jobs = []client.Job{
		Job(1, "sleeper", "01:08:52", Running("01:08:52", On("n001", 1))),
		Job(2, "par", "01:08:54", Running("01:08:57", On("n001", 7), On("n002", 1)), With(func(s *core.Spec) {
			s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks, s.Shape.MemPerCPU = 2, 2, 8, 100*core.MiB
		})),
		Job(3, "wrap", "01:08:56", Running("01:08:57", On("n001", 1)), With(wrapped)),
		Job(4, "arr", "01:08:57", Waits(core.ReasonArrayTaskLimit), func(j *client.Job) {
			j.Array = &core.ArrayRef{Base: 4, Count: 20, Min: 1, Max: 20, Step: 1, Tasks: mustTasks("5-20")}
			j.Eligible, j.Spec.Throttle, j.Spec.IO.Stdout = 0, 4, "slurm-%A_%a.out"
		}),
		Job(5, "held", "01:08:58", Waits(core.ReasonHeldUser), func(j *client.Job) {
			j.Flags, j.Priority = core.HeldUser, 0
		}),
		Job(6, "later", "01:08:59", Waits(core.ReasonBeginTime), func(j *client.Job) { j.Expected = Day("02:08:59") }),
		Job(7, "arr", "01:08:57", Running("01:09:00", On("n001", 1)), arrayTask(1)),
		Job(8, "arr", "01:08:57", Running("01:09:00", On("n001", 1)), arrayTask(2)),
		Job(9, "arr", "01:08:57", Running("01:09:00", On("n001", 1)), arrayTask(3)),
		Job(10, "arr", "01:08:57", Running("01:09:00", On("n001", 1)), arrayTask(4)),
		Job(11, "dep", "01:09:00", Waits(core.ReasonDependency), func(j *client.Job) {
			j.Eligible, j.Spec.Extra = 0, &core.Extra{Dependency: coretest.Dependency("afterok:1")}
		}),
		Job(12, "dep2", "01:09:01", Waits(core.ReasonDependency), func(j *client.Job) {
			j.Eligible, j.Spec.Extra = 0, &core.Extra{Dependency: coretest.Dependency("afterany:1")}
		}),
		Job(13, "wide", "01:09:03", Waits(core.ReasonResources), func(j *client.Job) {
			j.Priority, j.Expected, j.Planned = 10607, Day("02:08:57"), "n[001-008]"
			j.Spec.Shape.NodesMin, j.Spec.Shape.NodesMax, j.Spec.Shape.Tasks, j.Spec.Shape.Exclusive = 8, 8, 8, true
		}),
		Job(14, "gpu2", "01:09:04", Running("01:09:24", gpu(0, 1)), With(func(s *core.Spec) {
			s.Shape.Gres = []core.Gres{{Name: "gpu", Type: "a100", Count: 2}}
		})),
		Job(15, "gpt", "01:09:06", Running("01:09:24", On("n001", 16))),
		Job(18, "hiq", "01:09:08", Running("01:09:09", On("n001", 1)), func(j *client.Job) {
			j.Priority, j.Spec.QOS = 20163, "high"
		}),
		Job(19, "name with space", "01:09:10", Running("01:09:24", On("n003", 1)), func(j *client.Job) {
			j.Priority = 10063
			j.Spec.Nice, j.Spec.IO = 100, core.IO{WorkDir: "/tmp", Stdout: "/tmp/o.%j", Stderr: "/tmp/e.%j"}
			j.Spec.From.Command = "sleep.sh"
			j.Spec.Extra = &core.Extra{
				Comment: "hello world", Constraint: coretest.Constraint("fast"), MailTypes: "END", MailUser: "a@b.c",
			}
		}),
		Job(21, "wrap", "01:09:13", Waits(core.ReasonPriority), With(wrapped), func(j *client.Job) {
			j.Expected, j.Planned = Day("02:18:00"), "n003"
		}),
		Job(22, "sbatch", "01:09:14", Waits(core.ReasonPriority), With(wrapped), func(j *client.Job) {
			j.Expected, j.Planned = Day("02:18:00"), "n002"
		}),
		Job(23, "wrap", "01:09:14", Waits(core.ReasonPriority), With(wrapped), func(j *client.Job) {
			j.Expected, j.Planned = Day("02:18:00"), "n004"
		}),
		Job(24, "ok.sh", "01:10:14", Waits(core.ReasonPriority), With(func(s *core.Spec) {
			s.TimeLimit, s.From.Command, s.Args = 3600, "/tmp/golden/ok.sh", []string{"a", "b c", "d"}
		})),
		Job(25, "wrap", "01:10:14", Waits(core.ReasonPriority), With(wrapped), func(j *client.Job) {
			j.Priority, j.Spec.User, j.Spec.UID, j.Spec.Project, j.Spec.IO.WorkDir = 163, "games", 5, "physics", "/tmp"
		}),
	}
	return c
}

func mustTasks(text string) taskset.Set {
	s, err := taskset.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// nodes are n001 to n008 with what the lab's jobs hold.
func nodes() []client.Node {
	var list []client.Node
	for i, name := range []core.NodeName{"n001", "n002", "n003", "n004", "n005", "n006", "n007", "n008"} {
		n := client.Node{
			Node: core.Node{
				ID: int64(i + 1), Name: name, Roles: core.Compute, Weight: 1, Features: []string{"fast", "ib"},
				LastBusy: Day("01:07:56"),
				Hardware: core.Hardware{
					CPUs: 64, Sockets: 2, Cores: 32, Threads: 1, Memory: 65536 * core.MiB,
					Gres: []core.Gres{{Name: "gpu", Type: "a100", Count: 4}},
				},
				Host: core.Host{
					Hostname: "vm", Addr: "127.0.0.1", OS: "Linux 6.18.44-fc-v445 #1 SMP PREEMPT_DYNAMIC @0",
					Arch: "x86_64", Version: "22.05.8",
					Boot: Day("00:28:50"), AgentStart: Day("01:07:56"),
				},
			},
			State: "IDLE", Connected: true, Load: 36.14, FreeMem: 12809 * core.MiB,
			Partitions: []core.PartitionName{"main", "short"},
		}
		if i == 0 {
			n.Partitions = append(n.Partitions, "debug")
		}
		list = append(list, n)
	}
	return list
}
