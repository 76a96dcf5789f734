package speccheck

import (
	"math"

	"bireme.dev/bireme/internal/core"
)

// Bounds of texts and lists. Slurm has 1024 bytes for most names and 4096 for paths.
const (
	maxWord      = 256
	maxName      = 1024
	maxPath      = 4096
	MaxLine      = 32 << 10
	maxGresKinds = 64
	maxOptions   = 128
)

// rawTexts may hold any character but NUL: a file may have any name, and a submit line several lines. Commands that
// show them make them plain (core/plain); all other texts must be plain already.
var rawTexts = map[string]bool{
	"io.workdir": true, "io.stdin": true, "io.stdout": true, "io.stderr": true, "from.dir": true, "from.command": true,
	"from.line":    true,
	"extra.export": true, "extra.container.image": true, "extra.container.bundle": true, "extra.container.workdir": true,
}

var specTable = fieldTable[core.Spec]{
	texts: []textField[core.Spec]{
		{"name", maxName, func(s *core.Spec) string { return s.Name }},
		{"project", maxName, func(s *core.Spec) string { return string(s.Project) }},
		{"partition", maxPath, func(s *core.Spec) string { return s.Partition.String() }},
		{"qos", maxName, func(s *core.Spec) string { return string(s.QOS) }},
		{"runtime", maxWord, func(s *core.Spec) string { return s.Runtime }},
		{"array", MaxLine, func(s *core.Spec) string { return s.Array }},
		{"io.workdir", maxPath, func(s *core.Spec) string { return s.IO.WorkDir }},
		{"io.stdin", maxPath, func(s *core.Spec) string { return s.IO.Stdin }},
		{"io.stdout", maxPath, func(s *core.Spec) string { return s.IO.Stdout }},
		{"io.stderr", maxPath, func(s *core.Spec) string { return s.IO.Stderr }},
		{"from.host", maxWord, func(s *core.Spec) string { return s.From.Host }},
		{"from.dir", maxPath, func(s *core.Spec) string { return s.From.Dir }},
		{"from.command", maxPath, func(s *core.Spec) string { return s.From.Command }},
		{"from.line", MaxLine, func(s *core.Spec) string { return s.From.Line }},
	},
	numbers: []numberField[core.Spec]{
		{"kind", 0, int64(core.Interactive), 0, func(s *core.Spec) int64 { return int64(s.Kind) }},
		{"shape.given", 0, 2*int64(core.GivenExclusive) - 1, 0, func(s *core.Spec) int64 { return int64(s.Shape.Given) }},
		{"time_limit", 0, MaxSeconds, int64(core.Forever), func(s *core.Spec) int64 { return int64(s.TimeLimit) }},
		{"from.sid", -1, math.MaxInt32, 0, func(s *core.Spec) int64 { return int64(s.From.Sid) }},
		{"begin", 0, MaxMoment, 0, func(s *core.Spec) int64 { return int64(s.Begin) }},
		{"nice", -(math.MaxInt32 - 2), math.MaxInt32 - 2, 0, func(s *core.Spec) int64 { return int64(s.Nice) }},
	},
	lists: []listField[core.Spec]{
		{"args", func(s *core.Spec) (int, error) { return checkTextList("args", s.Args, 4096, MaxLine) }},
		{"shape.gres", func(s *core.Spec) (int, error) { return checkGresList("shape.gres", s.Shape.Gres) }},
	},
	flags: []string{"shape.exclusive", "shape.blocks", "io.append", "io.stream", "hold", "requeue"},
	// The API says whose job it is and what its blobs are; see own in internal/server/api.
	assigned: []string{"user", "uid", "gid", "run", "script", "env"},
	checkedBy: map[string]string{
		"shape.nodes_min": "Shape", "shape.nodes_max": "Shape", "shape.tasks": "Shape",
		"shape.tasks_per_node": "Shape",
		"shape.cpus_per_task":  "Shape", "shape.min_cpus": "Shape", "array_limit": "Shape",
		"shape.mem_per_node": "checkTotals", "shape.mem_per_cpu": "checkTotals",
	},
}

var shapeMoreTable = fieldTable[core.ShapeMore]{
	numbers: []numberField[core.ShapeMore]{
		{"shape.more.mem_per_gpu", 0, maxMemory, 0, func(m *core.ShapeMore) int64 { return int64(m.MemPerGPU) }},
	},
	lists: []listField[core.ShapeMore]{
		{"shape.more.gpus", func(m *core.ShapeMore) (int, error) { return checkGresList("shape.more.gpus", m.GPUs) }},
		{
			"shape.more.gpus_per_task",
			func(m *core.ShapeMore) (int, error) { return checkGresList("shape.more.gpus_per_task", m.GPUsPerTask) },
		},
		{"shape.more.gpus_per_socket", func(m *core.ShapeMore) (int, error) {
			return checkGresList("shape.more.gpus_per_socket", m.GPUsPerSocket)
		}},
	},
	flags: []string{
		"shape.more.one_thread", "shape.more.oversubscribe", "shape.more.exclusive_user",
		"shape.more.spread_job", "shape.more.use_min_nodes",
	},
	checkedBy: map[string]string{
		"shape.more.tasks_per_socket": "checkShapeMore", "shape.more.tasks_per_core": "checkShapeMore",
		"shape.more.tasks_per_gpu": "checkShapeMore",
		"shape.more.cpus_per_gpu":  "checkShapeMore", "shape.more.sockets": "checkShapeMore",
		"shape.more.cores":   "checkShapeMore",
		"shape.more.threads": "checkShapeMore", "shape.more.core_spec": "checkShapeMore",
		"shape.more.thread_spec": "checkShapeMore",
	},
}

var extraTable = fieldTable[core.Extra]{
	texts: []textField[core.Extra]{
		{"extra.nodelist", MaxLine, func(x *core.Extra) string { return x.NodeList }},
		{"extra.exclude", MaxLine, func(x *core.Extra) string { return x.Exclude }},
		{"extra.constraint", maxPath, func(x *core.Extra) string { return x.Constraint.String() }},
		{"extra.prefer", maxPath, func(x *core.Extra) string { return x.Prefer.String() }},
		{"extra.dependency", MaxLine, func(x *core.Extra) string { return x.Dependency.String() }},
		{"extra.licenses", maxPath, func(x *core.Extra) string { return x.Licenses.String() }},
		{"extra.reservation", maxPath, func(x *core.Extra) string { return x.Reservation }},
		{"extra.comment", maxPath, func(x *core.Extra) string { return x.Comment }},
		{"extra.mail_types", maxName, func(x *core.Extra) string { return x.MailTypes }},
		{"extra.mail_user", maxName, func(x *core.Extra) string { return x.MailUser }},
		{"extra.distribution", maxWord, func(x *core.Extra) string { return x.Distribution }},
		{"extra.wckey", maxName, func(x *core.Extra) string { return x.WCKey }},
		{"extra.switches", maxWord, func(x *core.Extra) string { return x.Switches.String() }},
		{"extra.export", MaxLine, func(x *core.Extra) string { return x.Export }},
		{"extra.umask", maxWord, func(x *core.Extra) string { return x.Umask }},
		{"extra.repo", maxName, func(x *core.Extra) string { return x.Repo }},
	},
	numbers: []numberField[core.Extra]{
		{"extra.deadline", 0, MaxMoment, 0, func(x *core.Extra) int64 { return int64(x.Deadline) }},
		{"extra.time_min", 0, MaxSeconds, int64(core.Forever), func(x *core.Extra) int64 { return int64(x.TimeMin) }},
		{"extra.max_price", 0, 1 << 50, 0, func(x *core.Extra) int64 { return int64(x.MaxPrice) }},
		{"extra.prio_process", -20, 20, 0, func(x *core.Extra) int64 { return int64(x.Prio) }},
		{"extra.fence", 0, MaxSeconds, int64(core.Forever), func(x *core.Extra) int64 { return int64(x.Fence) }},
		{"extra.tmp_disk", 0, maxMemory, 0, func(x *core.Extra) int64 { return int64(x.TmpDisk) }},
	},
	lists: []listField[core.Extra]{
		{"extra.rlimits", func(x *core.Extra) (int, error) { return checkRlimits(x.Rlimits) }},
		{"extra.volumes", func(x *core.Extra) (int, error) { return checkVolumes(x.Volumes) }},
		{"extra.options", func(x *core.Extra) (int, error) { return checkOptions(x.Kept.Texts()) }},
	},
	engine: []engineField[core.Extra]{
		{"extra.het", func(x *core.Extra) bool { return x.Het != nil }},
		{"extra.time_asked", func(x *core.Extra) bool { return x.TimeAsked != 0 }},
		{"extra.fill", func(x *core.Extra) bool { return x.Fill }},
	},
	flags:    []string{"extra.contiguous", "extra.het_apart", "extra.late_accepted", "extra.login_env", "extra.open"},
	assigned: []string{"extra.files"},
	checkedBy: map[string]string{
		// the first and last are an administrator's
		"extra.priority": "admit", "extra.run_priority": "admit", "extra.site_factor": "admit",
		"extra.segment": "admitSegment", "extra.kill_grace": "admitExtra",
	},
}

var signalTable = fieldTable[core.WarnSignal]{
	numbers: []numberField[core.WarnSignal]{
		{"extra.signal.signal", 0, 64, 0, func(w *core.WarnSignal) int64 { return int64(w.Signal) }},
		{"extra.signal.before", 0, MaxSeconds, 0, func(w *core.WarnSignal) int64 { return int64(w.Before) }},
	},
	flags: []string{"extra.signal.all", "extra.signal.batch", "extra.signal.reserve"},
}

var gpuTable = fieldTable[core.GPUAsk]{
	texts: []textField[core.GPUAsk]{{"extra.gpu.vendor", maxWord, func(a *core.GPUAsk) string { return a.Vendor }}},
	numbers: []numberField[core.GPUAsk]{
		{"extra.gpu.mem_min", 0, maxMemory, 0, func(a *core.GPUAsk) int64 { return int64(a.MemMin) }},
		{"extra.gpu.mem_max", 0, maxMemory, 0, func(a *core.GPUAsk) int64 { return int64(a.MemMax) }},
		{"extra.gpu.capability", 0, 1 << 16, 0, func(a *core.GPUAsk) int64 { return int64(a.Capability) }},
	},
	lists: []listField[core.GPUAsk]{
		{"extra.gpu.names", func(a *core.GPUAsk) (int,
			error,
		) {
			return checkTextList("extra.gpu.names", a.Names, 64, maxWord)
		}},
	},
}

var containerTable = fieldTable[core.Container]{
	texts: []textField[core.Container]{
		{"extra.container.image", maxPath, func(c *core.Container) string { return c.Image }},
		{"extra.container.bundle", maxPath, func(c *core.Container) string { return c.Bundle }},
		{"extra.container.workdir", maxPath, func(c *core.Container) string { return c.WorkDir }},
		{"extra.container.user", maxWord, func(c *core.Container) string { return c.User }},
	},
	numbers: []numberField[core.Container]{
		{"extra.container.shm", 0, maxMemory, 0, func(c *core.Container) int64 { return int64(c.Shm) }},
	},
	lists: []listField[core.Container]{
		{"extra.container.entry", func(c *core.Container) (int, error) {
			return checkTextList("extra.container.entry", c.Entry, 1024, MaxLine)
		}},
		{"extra.container.mounts", func(c *core.Container) (int, error) { return checkMounts(c.Mounts) }},
		{"extra.container.ports", func(c *core.Container) (int, error) {
			if len(c.Ports) > 256 {
				return 0, Invalid("extra.container.ports", "%d entries; the limit is 256", len(c.Ports))
			}
			return 16 * len(c.Ports), nil
		}},
	},
	flags: []string{
		"extra.container.own", "extra.container.privileged", "extra.container.submitter",
		"extra.container.image_env", "extra.container.terminal",
	},
	assigned: []string{"extra.container.bounded"}, // by admitRuntime
}
