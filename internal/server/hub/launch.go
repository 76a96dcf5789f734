package hub

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/filename"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/wire"
)

// Env is the front end's promise of variables, laid over what the user sent.
type Env struct {
	Batch func(j *core.Job, rank int) []string                     // for the script, or what else runs on the rank-th node
	Hook  func(j *core.Job, node core.NodeName) []string           // for prolog and epilog on a node
	Step  func(all []slurm.StepPart) []string                      // for all tasks of a numbered step
	Task  func(all []slurm.StepPart, at, node, local int) []string // for one of them
}

// envError is why the environment of a job cannot be completed: the job fails with it.
type envError struct{ error }

func (e *envError) Unwrap() error { return e.error }

// launchBuilder makes the launches of jobs and steps from their records, their blobs and the settings.
type launchBuilder struct {
	cfg    *Config
	engine *engine.Engine
	blobs  *blobs
	live   *atomic.Pointer[Rules]
	// gangPort chooses the port of the containers of jobs that belong together; see Hub.gangPort.
	gangPort func(all []*core.Job, local bool) int
}

func (b *launchBuilder) rules() *Rules { return b.live.Load() }

// batchLaunch makes the launch of a job's script on its rank-th node, which is the first unless it has containers.
func (b *launchBuilder) batchLaunch(ctx context.Context, j *core.Job, rank int) (*wire.Launch, error) {
	spec, x, na := j.Spec, j.Spec.More(), &j.Alloc.Nodes[rank]
	var script []byte
	var err error
	if spec.Kind == core.Batch {
		if script, err = b.blobs.get(ctx, spec.Script); err != nil {
			return nil, fmt.Errorf("script of job %d: %w", j.ID, err)
		}
	}
	if b.cfg.OpenScript != nil {
		script = b.cfg.OpenScript(j, script)
	}
	env, err := b.blobs.get(ctx, spec.Env)
	if err != nil {
		return nil, fmt.Errorf("environment of job %d: %w", j.ID, err)
	}
	if b.cfg.OpenEnv != nil {
		if env, err = b.cfg.OpenEnv(j, env); err != nil {
			return nil, &envError{err}
		}
	}
	files, err := b.blobs.get(ctx, x.Files)
	if err != nil {
		return nil, fmt.Errorf("files of job %d: %w", j.ID, err)
	}
	l := &wire.Launch{
		Key:      wire.Key{Job: j.ID, Attempt: j.Attempt, Step: wire.BatchStep, Node: na.Node},
		Identity: b.identity(spec),
		Program: wire.Program{
			Argv: spec.Args, WorkDir: spec.IO.WorkDir, Umask: umask(x.Umask), LoginEnv: x.LoginEnv,
			Nice: int(max(0, x.Prio)),
		},
		Stdio: wire.Stdio{
			Stdin: spec.IO.Stdin, Stdout: spec.IO.Stdout, Stderr: spec.IO.Stderr, Append: spec.IO.Append,
			Names: filenames(j, wire.BatchStep, rank), KeepTail: b.rules().Settings.LogTail, NoticePrefix: slurm.NoticePrefix,
		},
		Time:    b.timing(j),
		Limits:  b.limits(j, na),
		EndsJob: true,
		Fence:   x.Fence.Duration(),
		Gres:    na.Gres,
		Script:  script,
		Files:   files,
	}
	if spec.IO.Stream {
		l.Stdio.Mode, l.Stdio.NoticePrefix = wire.StdioLog, ""
	}
	if w := x.Signal; w != nil {
		l.Time.WarnSignal, l.Time.WarnBefore, l.Time.WarnBatch = int(w.Signal), w.Before.Duration(), w.Batch
		l.Time.WarnAll = w.All
	}
	if l.Container = b.containerOf(j, na); l.Container != nil {
		l.Container.Gang = b.gangOf(j, rank)
	}
	if l.Volumes, err = b.volumesOf(j, na.Node); err != nil {
		return nil, err
	}
	own := b.cfg.Env.Batch(j, rank)
	l.Env = overlay(takeLimits(b.rules(), l, env), own)
	b.addHookEnv(l, j)
	return l, nil
}

// stepLaunch makes the launch of a numbered step's part on its node at index at.
func (b *launchBuilder) stepLaunch(all []slurm.StepPart, part, at int, now core.Time) (*wire.Launch, error) {
	j, st, ranks, ask := all[part].Job, all[part].Step, all[part].Ranks, all[part].Ask
	node := st.Nodes[at]
	na := allocOn(j, node)
	if na == nil {
		return nil, core.Errorf(core.Internal, "job %d holds nothing on %s", j.ID, node)
	}
	step := strconv.Itoa(int(st.ID))
	l := &wire.Launch{
		Key:      wire.Key{Job: j.ID, Attempt: j.Attempt, Step: step, Node: node},
		Identity: b.identity(j.Spec),
		Program:  wire.Program{Argv: ask.Argv, WorkDir: ask.WorkDir, Umask: umask(ask.Umask)},
		Stdio: wire.Stdio{
			Mode: wire.StdioStream, PTY: ask.Pty, Rows: ask.Rows, Cols: ask.Cols, Stdout: ask.Stdout, Stderr: ask.Stderr,
			Names: filenames(j, step, at), NoticePrefix: slurm.NoticePrefix,
		},
		Time:   b.timing(j),
		Limits: b.limits(j, na),
		Fence:  j.Spec.More().Fence.Duration(),
		Gres:   na.Gres,
	}
	if m := int64(all[part].Memory(at)); b.rules().Settings.ConstrainMem && m > 0 &&
		(l.Limits.Memory <= 0 || m < l.Limits.Memory) {
		l.Limits.StepMemory = m
	}
	if ask.TaskProlog != "" {
		l.Program.TaskProlog = []string{ask.TaskProlog}
	}
	if ask.TaskEpilog != "" {
		l.Program.TaskEpilog = []string{ask.TaskEpilog}
	}
	if ask.Stdout != "" || ask.Stderr != "" {
		l.Stdio.Mode = wire.StdioFiles
	}
	if l.Time.Limit > 0 { // the job's clock runs already
		l.Time.Limit = max(1, l.Time.Limit-j.Elapsed(now))
	}
	left := l.Time.Limit
	if t := limit(st.Options.TimeLimit); t > 0 && (l.Time.Limit == 0 || t < l.Time.Limit) {
		l.Time.Limit = t
	}
	if w := j.Spec.More().Signal; w != nil && !w.All && left > 0 { // it comes before the end of the job, not of the step
		l.Time.WarnSignal, l.Time.WarnBatch = int(w.Signal), w.Batch
		l.Time.WarnBefore = w.Before.Duration() - (left - l.Time.Limit)
	}
	if ask.Container != nil {
		l.Container = &wire.Container{Container: *ask.Container, Step: true, CPUs: na.CPUs, Host: b.hasWholeNodes(j)}
	} else if l.Container = b.containerOf(j, na); l.Container != nil {
		l.Container.Join, l.Container.Home, l.Container.WorkDir = true, holder(j, node), ""
	}
	var err error
	if l.Volumes, err = b.volumesOf(j, node); err != nil {
		return nil, err
	}
	if err := b.addFiles(l, j); err != nil {
		return nil, err
	}
	own := b.cfg.Env.Step(all)
	l.Env = overlay(takeLimits(b.rules(), l, wire.JoinEnv(ask.Env)), own)
	if st.Name == core.StepSSH {
		l.Time.WithJob = true // a login shell takes no notice of TERM
		env, err := b.sessionEnv(j, node)
		if err != nil {
			return nil, err
		}
		l.Env, l.Program.LoginEnv = overlay(env, ask.Env), j.Spec.More().LoginEnv
	}
	b.addHookEnv(l, j)
	if err := b.addMPI(l, all, ask.MPI); err != nil {
		return nil, err
	}
	bound, err := b.bind(&all[part], at)
	if err != nil {
		return nil, err
	}
	for local, r := range ranks[at] {
		t := wire.Task{Rank: int(r), Env: b.cfg.Env.Task(all, part, at, local), Argv: slurm.ProgramOf(ask.Programs, r)}
		bound.apply(&t, node, local)
		t.Note = all[part].GPUNotes(at, local) + t.Note
		l.Program.Tasks = append(l.Program.Tasks, t)
	}
	return l, nil
}

// addFiles has the files of a run of processes laid out on the nodes where its script does not run: by the first step,
// with which the script takes the commands there.
func (b *launchBuilder) addFiles(l *wire.Launch, j *core.Job) error {
	hash := j.Spec.More().Files
	if hash.IsZero() || l.Container != nil || l.Key.Step != "0" || l.Key.Node == j.Alloc.Nodes[0].Node {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var err error
	if l.Files, err = b.blobs.get(ctx, hash); err != nil {
		return fmt.Errorf("files of job %d: %w", j.ID, err)
	}
	return nil
}

// withoutAccess is an environment without what opens a run's repository: only the first lines of its script need that.
func withoutAccess(env []byte) []byte {
	const prefix = "BIREME_REPO_" // of package dstack/code
	if !bytes.Contains(env, []byte(prefix)) {
		return env
	}
	var out []byte
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if len(e) > 0 && !bytes.HasPrefix(e, []byte(prefix)) {
			out = append(append(out, e...), 0)
		}
	}
	return out
}

// sessionEnv is what the job's own program sees on a node: who comes to it by SSH sees the same.
func (b *launchBuilder) sessionEnv(j *core.Job, node core.NodeName) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	env, err := b.blobs.get(ctx, j.Spec.Env)
	if err != nil {
		return nil, fmt.Errorf("environment of job %d: %w", j.ID, err)
	}
	if b.cfg.OpenEnv != nil {
		if env, err = b.cfg.OpenEnv(j, env); err != nil {
			return nil, err
		}
	}
	env = withoutAccess(env)
	rank := slices.IndexFunc(j.Alloc.Nodes, func(a core.NodeAlloc) bool { return a.Node == node })
	return overlay(env, b.cfg.Env.Batch(j, max(0, rank))), nil
}

// containerOf is the container a job runs in, nil if in none. Who has the whole node has its network too.
func (b *launchBuilder) containerOf(j *core.Job, na *core.NodeAlloc) *wire.Container {
	c := j.Spec.More().Container
	if c == nil {
		return nil
	}
	out := &wire.Container{Container: *c, CPUs: na.CPUs, Host: b.hasWholeNodes(j)}
	out.Mounts = b.mountsOf(j, na, c.Mounts)
	return out
}

// rankName stands for a node's rank in the path of an instance volume.
var rankName = regexp.MustCompile(`\$\{\{\s*dstack\.(node_rank|job_num)\s*\}\}`)

// mountsOf puts a node's rank into the paths that name it: each node of a run has a folder of its own then.
func (b *launchBuilder) mountsOf(j *core.Job, na *core.NodeAlloc, list []core.Mount) []core.Mount {
	if !slices.ContainsFunc(list, func(m core.Mount) bool { return rankName.MatchString(m.Source) }) {
		return list
	}
	rank := slices.IndexFunc(j.Alloc.Nodes, func(a core.NodeAlloc) bool { return a.Node == na.Node })
	for _, o := range Together(b.engine.Snapshot(), j) {
		if o.ID == j.ID {
			break
		}
		if o.Alloc != nil {
			rank += len(o.Alloc.Nodes)
		}
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].Source = rankName.ReplaceAllString(out[i].Source, strconv.Itoa(rank))
	}
	return out
}

// addHookEnv tells prolog and epilog about the job, where a site has them.
func (b *launchBuilder) addHookEnv(l *wire.Launch, j *core.Job) {
	if len(b.rules().Settings.Prolog)+len(b.rules().Settings.Epilog) > 0 && b.cfg.Env.Hook != nil {
		l.Hooks.Env = b.cfg.Env.Hook(j, core.NodeName(l.Key.Node))
	}
}

// overlay lays variables over NUL-terminated KEY=VALUE: of two with one name a program would see the first. A
// name alone takes the variable away.
func overlay(base []byte, own []string) []byte {
	set := make(map[string]struct{}, len(own))
	size := len(base)
	for _, e := range own {
		name, _, _ := strings.Cut(e, "=")
		set[name] = struct{}{}
		size += len(e) + 1
	}
	out := make([]byte, 0, size)
	for rest := base; len(rest) > 0; {
		var one []byte
		one, rest, _ = bytes.Cut(rest, []byte{0})
		if name, _, ok := bytes.Cut(one, []byte{'='}); ok {
			if _, ours := set[string(name)]; !ours {
				out = append(append(out, one...), 0)
			}
		}
	}
	for _, e := range own {
		if strings.IndexByte(e, '=') >= 0 {
			out = append(append(out, e...), 0)
		}
	}
	return out
}

func (b *launchBuilder) identity(spec *core.Spec) wire.Identity {
	id := wire.Identity{UID: spec.UID, GID: spec.GID, Name: string(spec.User)}
	if u, ok := b.engine.Snapshot().User(spec.User); ok && u.UnixName != "" {
		id.Name = u.UnixName
	}
	return id
}

func (b *launchBuilder) timing(j *core.Job) wire.Timing {
	t := wire.Timing{
		Limit: limit(j.Spec.TimeLimit), KillGrace: b.rules().Settings.KillWait,
		Unkillable: b.rules().Settings.UnkillableAfter,
	}
	if g := j.Spec.More().KillGrace; g > 0 {
		t.KillGrace = g.Duration()
	}
	return t
}

func (b *launchBuilder) limits(j *core.Job, na *core.NodeAlloc) wire.Limits {
	var l wire.Limits
	if b.rules().Settings.ConstrainCPUs {
		l.CPUs = wire.FormatRanges(na.Cores)
	}
	if b.rules().Settings.ConstrainMem {
		l.Memory = int64(na.Mem)
	}
	l.PIDs = b.rules().Settings.MaxPids
	if r := j.Spec.More().Rlimits; len(r) > 0 {
		l.RLimits = make(map[string]wire.RLimit, len(r))
		for name, v := range r {
			soft := int64(-1)
			if v < 1<<63-1 {
				soft = int64(v)
			}
			l.RLimits[strings.ToLower(name)] = wire.RLimit{Soft: soft, Hard: -1}
		}
	}
	return l
}

// takeLimits gives a launch the limits of the submitting process that its environment carries, as far as the site
// lets them through, and returns the environment without them.
func takeLimits(rules *Rules, l *wire.Launch, env []byte) []byte {
	rest, limits := slurm.TakeLimits(env, rules.KeepLimits)
	for name, soft := range limits {
		if l.Limits.RLimits == nil {
			l.Limits.RLimits = make(map[string]wire.RLimit, len(limits))
		}
		if _, set := l.Limits.RLimits[name]; !set {
			l.Limits.RLimits[name] = wire.RLimit{Soft: soft, Hard: -1}
		}
	}
	return rest
}

func filenames(j *core.Job, step string, node int) filename.Names {
	n := filename.Names{
		Job: j.ID, Step: step, Node: j.Alloc.Nodes[0].Node, NodeIndex: node, User: j.Spec.User, JobName: j.Spec.Name,
		Restarts: int(max(0, j.Attempt-1)),
	}
	if step != wire.BatchStep && node < len(j.Alloc.Nodes) {
		n.Node = j.Alloc.Nodes[node].Node
	}
	if j.Array != nil {
		n.ArrayJob, n.ArrayTask = j.Array.Base, int64(j.Array.Task)
	}
	return n
}

func allocOn(j *core.Job, node core.NodeName) *core.NodeAlloc {
	if j.Alloc == nil {
		return nil
	}
	for i := range j.Alloc.Nodes {
		if j.Alloc.Nodes[i].Node == node {
			return &j.Alloc.Nodes[i]
		}
	}
	return nil
}

// umask reads an octal mask; nil keeps the keeper's default.
func umask(text string) *uint32 {
	if text == "" {
		return nil
	}
	v, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return nil
	}
	m := uint32(v)
	return &m
}
