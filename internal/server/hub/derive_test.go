package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// job makes a running batch job on nodes; a name with a trailing ! is clean of it.
func job(nodes ...string) *core.Job {
	j := &core.Job{ID: 7, Attempt: 1, State: core.Running, Spec: &core.Spec{TimeLimit: 60}, Alloc: &core.Alloc{}}
	for _, n := range nodes {
		name, done := strings.CutSuffix(n, "!")
		j.Alloc.Nodes = append(j.Alloc.Nodes, core.NodeAlloc{Node: core.NodeName(name), Done: done})
	}
	return j
}

func with(j *core.Job, f func(*core.Job)) *core.Job {
	c := *j
	spec := *j.Spec
	c.Spec = &spec
	f(&c)
	return &c
}

func orderText(node core.NodeName, o order) string {
	if o.launch != nil {
		return fmt.Sprintf("%s:launch", node)
	}
	name := map[wire.Type]string{wire.TypeKill: "kill", wire.TypeFinish: "finish", wire.TypeSetLimit: "limit"}[o.typ]
	if s, ok := o.header.(wire.Suspend); ok {
		name = "suspend"
		if s.Resume {
			name = "resume"
		}
	}
	return fmt.Sprintf("%s:%s", node, name)
}

func TestDerive(t *testing.T) {
	t.Parallel()
	ended := func(st core.JobState) func(*core.Job) {
		return func(j *core.Job) { j.State, j.Flags = st, core.Completing }
	}
	interactive := func(j *core.Job) { j.Spec.Kind = core.Interactive }
	contained := func(j *core.Job) { j.Spec.Extra = &core.Extra{Container: &core.Container{Image: "x"}} }
	running := job("a", "b")
	steps := []*core.Step{{Job: 7, Attempt: 1, State: core.Running}}
	cases := map[string]struct {
		old, now *core.Job
		told     told
		steps    []*core.Step
		want     string
		after    told
	}{
		"started":                 {nil, running, 0, nil, "a:launch", 0},
		"started in containers":   {nil, with(running, contained), 0, nil, "b:launch a:launch", 0},
		"allocated in containers": {nil, with(with(running, contained), interactive), 0, nil, "b:launch a:launch", 0},
		"unchanged":               {running, running, 0, nil, "", 0},
		"interactive started":     {nil, with(running, interactive), 0, nil, "", 0},
		"started again": {
			running, with(running, func(j *core.Job) { j.Attempt = 2 }), toldFinish, nil,
			"a:launch", 0,
		},
		"started and suspended at once": {
			nil, with(running, func(j *core.Job) { j.State = core.Suspended }), 0, nil,
			"a:launch a:suspend b:suspend", 0,
		},
		"suspended": {
			running, with(running, func(j *core.Job) { j.State = core.Suspended }), 0, nil,
			"a:suspend b:suspend", 0,
		},
		"resumed": {
			with(running, func(j *core.Job) { j.State = core.Suspended }), running, 0, nil,
			"a:resume b:resume", 0,
		},
		"a node lost": {running, job("a"), 0, nil, "b:finish", 0},
		"another limit": {
			running, with(running, func(j *core.Job) { j.Spec.TimeLimit = 90 }), 0, nil,
			"a:limit b:limit", 0,
		},
		"cancelled":               {running, with(running, ended(core.Cancelled)), 0, nil, "a:kill b:kill", toldKill},
		"cancelled, told already": {running, with(running, ended(core.Cancelled)), toldKill, nil, "", toldKill},
		"cancelled, then aborted": {
			with(with(running, ended(core.Cancelled)), func(j *core.Job) { j.Stop = &core.Stop{} }),
			with(with(running, ended(core.Cancelled)), func(j *core.Job) { j.Stop = &core.Stop{Abort: true, Grace: -1} }),
			toldKill, nil, "a:kill b:kill", toldKill,
		},
		"batch step ended": {
			running, with(job("a!", "b"), ended(core.Completed)), 0, nil, "b:finish",
			toldFinish,
		},
		"killed batch step ended": {
			running, with(job("a!", "b"), ended(core.Cancelled)), toldKill, nil, "b:finish",
			toldFinish,
		},
		"batch step ended before others, which have ended now": {
			with(running, ended(core.Completed)),
			with(with(running, ended(core.Completed)), func(j *core.Job) { j.Usage.MaxRSS = 1 }), toldKill, nil,
			"a:finish b:finish", toldFinish,
		},
		"batch step that used nothing ended before others, which have ended now": {
			with(running, ended(core.Completed)),
			with(with(running, ended(core.Completed)), func(j *core.Job) { j.Flags |= core.ScriptEnded }), toldKill, nil,
			"a:finish b:finish", toldFinish,
		},
		"and a step of it runs": {
			running, with(job("a!", "b"), ended(core.Completed)), 0, steps, "b:kill",
			toldKill,
		},
		"which ended": {
			with(job("a!", "b"), ended(core.Completed)),
			with(job("a!", "b"), ended(core.Completed)), toldKill, nil, "b:finish", toldFinish,
		},
		"finished, told already": {
			running, with(job("a!", "b"), ended(core.Completed)), toldFinish, nil, "",
			toldFinish,
		},
		"interactive given back": {
			with(running, interactive),
			with(with(running, interactive), ended(core.Completed)), 0, nil, "a:finish b:finish", toldFinish,
		},
		"interactive with steps ended": {
			with(running, interactive), with(with(running, interactive), ended(core.Timeout)),
			0, steps, "a:kill b:kill", toldKill,
		},
		"requeued": {
			running, with(running, func(j *core.Job) { j.Flags = core.Requeueing }), 0, nil,
			"a:kill b:kill", toldKill,
		},
		"clean": {
			running, with(job("a!", "b!"), func(j *core.Job) { j.State = core.Completed }),
			toldFinish, nil, "", 0,
		},
		"started and ended in one batch": {nil, with(running, ended(core.Cancelled)), 0, nil, "a:kill b:kill", toldKill},
		"waiting": {
			nil, with(running, func(j *core.Job) { j.State, j.Alloc = core.Pending, nil }), 0,
			nil, "", 0,
		},
	}
	for name, c := range cases {
		var got []string
		after := derive(c.old, c.now, c.told, c.steps,
			func(n core.NodeName, o order) { got = append(got, orderText(n, o)) })
		if g := strings.Join(got, " "); g != c.want || after != c.after {
			t.Errorf("%s: %q and %d, want %q and %d", name, g, after, c.want, c.after)
		}
	}
}

func TestRejoin(t *testing.T) {
	t.Parallel()
	over := func(j *core.Job) { j.State, j.Flags = core.Cancelled, core.Completing }
	cases := map[string]struct {
		job   *core.Job
		node  core.NodeName
		runs  bool
		knows string
		want  string
	}{
		"runs on":            {job("a", "b"), "a", true, "batch", "limit resume"},
		"never came":         {job("a", "b"), "a", false, "", "launch"},
		"ended, being told":  {job("a", "b"), "a", false, "batch", ""},
		"another node of it": {job("a", "b"), "b", false, "", ""},
		"over and runs":      {with(job("a"), over), "a", true, "batch", "kill"},
		"over and gone":      {with(job("a"), over), "a", false, "", "finish"},
		"suspended and runs": {
			with(job("a"), func(j *core.Job) { j.State = core.Suspended }), "a", true, "batch",
			"limit suspend",
		},
		"suspended and no more": {
			with(job("a"), func(j *core.Job) { j.State = core.Suspended }), "a", false, "",
			"launch suspend",
		},
	}
	for name, c := range cases {
		var got []string
		rejoin(c.job, nil, c.node, c.runs, func(step string) bool { return c.knows == step }, func(o order) {
			got = append(got, strings.TrimPrefix(orderText("", o), ":"))
		})
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: %q, want %q", name, g, c.want)
		}
	}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	got := strings.Split(strings.TrimSuffix(string(overlay(
		[]byte("A=1\x00SLURM_X=old\x00broken\x00B==\x00"), []string{"SLURM_X=new", "C="})), "\x00"), "\x00")
	if want := []string{"A=1", "B==", "SLURM_X=new", "C="}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestBlobsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		b := newBlobs(400, func(context.Context, core.Hash) ([]byte, error) { fetched++; return make([]byte, 20), nil })
		get := func(from, to byte) {
			t.Helper()
			for i := from; i < to; i++ {
				if _, err := b.get(t.Context(), core.Hash{i}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := byte(1); i <= 40; i++ {
			b.put(core.Hash{i}, make([]byte, 20))
		}
		if b.held != 400 || b.waiting.Len() != 20 {
			t.Errorf("%d bytes in %d blobs wait", b.held, b.waiting.Len())
		}
		get(1, 21) // first in, first out: those that came first are there
		if fetched != 0 || b.held != 0 {
			t.Errorf("%d fetched, %d bytes still wait", fetched, b.held)
		}
		get(21, 41)
		if fetched != 20 || b.used > 100 || len(b.by) != b.recent.Len() {
			t.Errorf("%d fetched, %d bytes of what was used, %d blobs", fetched, b.used, len(b.by))
		}
		get(40, 41) // the next task of an array
		if fetched != 20 {
			t.Error("what was just used was fetched again")
		}
		for i := byte(101); i <= 120; i++ {
			b.put(core.Hash{i}, make([]byte, 20))
		}
		b.put(core.Hash{200}, make([]byte, 20))
		time.Sleep(waitMost + time.Second) // nobody wanted them: they make room
		b.put(core.Hash{201}, make([]byte, 20))
		if b.by[core.Hash{200}] != nil || b.by[core.Hash{201}] == nil || b.held != 400 {
			t.Errorf("old blobs keep new ones out: %d bytes wait", b.held)
		}
	})
}

// A step with a limit of its own keeps it when its job's limit is told again, and lasts no longer than the job.
func TestSetLimitHasThoseOfSteps(t *testing.T) {
	t.Parallel()
	j := with(job("a"), func(j *core.Job) {
		j.Spec = &core.Spec{TimeLimit: 600}
		j.Start = core.At(time.Unix(1000, 0))
	})
	step := func(id int32, limit core.Seconds, after time.Duration) *core.Step {
		return &core.Step{
			ID: id, Attempt: j.Attempt, State: core.Running, Start: j.Start.Add(after),
			Options: core.StepOptions{TimeLimit: limit},
		}
	}
	ended := step(4, 60, 0)
	ended.State = core.Completed
	got := setLimit(j, []*core.Step{
		step(0, 60, 0), step(1, 0, 0), step(2, 540, 2*time.Minute), step(3, core.Forever, time.Minute), ended,
	}).header.(wire.SetLimit)
	want := map[string]time.Duration{"0": time.Minute, "2": 8 * time.Minute, "3": 9 * time.Minute}
	if got.Limit != 10*time.Minute || !maps.Equal(got.Steps, want) {
		t.Errorf("limit %v, steps %v, want 10m and %v", got.Limit, got.Steps, want)
	}
}
