package srun

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
	"bireme.dev/bireme/internal/wire"
)

// play is a fake cluster: one job, one step, and a script of frames as its nodes would send them.
type play struct {
	*slurmtest.Cluster
	step     client.StepMade
	frames   func(c *wire.Conn, in func() string)
	asked    client.NewStep
	released *client.Release
	cancels  []client.Cancel
	direct   bool // nothing comes by the server

	siteProlog, siteEpilog string
}

func newPlay(t *testing.T, id core.JobID, ranks [][]int32, frames func(c *wire.Conn, in func() string)) *play {
	var nodes []core.NodeName
	var alloc []core.NodeAlloc
	var tasks []int32
	for i, r := range ranks {
		n := core.NodeName([]string{"n001", "n002"}[i])
		nodes, tasks = append(nodes, n), append(tasks, int32(len(r)))
		alloc = append(alloc, slurmtest.On(n, int32(len(r))))
	}
	p := &play{Cluster: &slurmtest.Cluster{}, frames: frames}
	p.step = client.StepMade{Step: core.Step{Job: id, ID: 0, Nodes: nodes, Tasks: tasks}, Key: "k", Ranks: ranks}
	p.Jobs = []client.Job{slurmtest.Job(id, "bash", "01:00:00", slurmtest.Running("01:00:00", alloc...))}
	p.Handle = p.serve
	p.Start(t)
	return p
}

func (p *play) serve(w http.ResponseWriter, r *http.Request) bool {
	switch key := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v1"); {
	case key == "POST /jobs" && p.Refuse == nil:
		json.NewEncoder(w).Encode(client.Submitted{ID: p.step.Step.Job})
	case p.siteProlog != "" && key == "GET /jobs/"+strconv.Itoa(int(p.step.Step.Job)):
		json.NewEncoder(w).Encode(client.JobList{Jobs: p.Jobs, SrunProlog: p.siteProlog, SrunEpilog: p.siteEpilog})
	case key == "POST /jobs/cancel":
		var b client.Cancel
		json.NewDecoder(r.Body).Decode(&b)
		p.cancels = append(p.cancels, b)
		w.Write([]byte("{}"))
	case strings.HasSuffix(key, "/steps") && r.Method == "POST" && p.Refuse == nil:
		json.NewDecoder(r.Body).Decode(&p.asked)
		json.NewEncoder(w).Encode(p.step)
	case strings.HasSuffix(key, "/release"):
		p.released = &client.Release{}
		json.NewDecoder(r.Body).Decode(p.released)
		w.Write([]byte("{}"))
	case key == "GET /streams/k":
		conn, rw, _ := w.(http.Hijacker).Hijack()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bireme-stream\r\n\r\n")
		rw.Flush()
		c := wire.NewConn(conn)
		go func() { // ends when its frames are sent; srun closes its end then
			defer c.Close()
			for i, ranks := range p.step.Ranks {
				for _, k := range ranks {
					if p.direct {
						continue
					}
					c.Send(wire.TypeTaskStart, wire.TaskExit{Rank: k, Node: p.step.Step.Nodes[i]})
				}
			}
			p.frames(c, func() string { return input(c) })
		}()
	default:
		return false
	}
	return true
}

// input reads srun's standard input to its end.
func input(c *wire.Conn) string {
	text := ""
	for {
		f, err := c.Next()
		if err != nil || f.Type != wire.TypeInput {
			return text + "!"
		}
		if len(f.Payload) == 0 {
			return text
		}
		text += string(f.Payload)
	}
}

func say(c *wire.Conn, rank int32, fd int8, text string) {
	c.Send(wire.TypeIO, wire.IOHeader{Rank: rank, FD: fd}, []byte(text))
}

func exit(c *wire.Conn, node core.NodeName, code, signal int32, ranks ...int32) {
	for _, r := range ranks {
		c.Send(wire.TypeTaskExit, wire.TaskExit{Rank: r, Node: node, Exit: core.Exit{Code: code, Signal: signal}})
	}
}

func last(c *wire.Conn, node core.NodeName) {
	c.Send(wire.TypeStepExit, wire.TaskExit{Rank: -1, Node: node})
}

func one() [][]int32 { return [][]int32{{0}} }

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	two := func() [][]int32 { return [][]int32{{0, 1, 2}, {3}} }
	for name, tc := range map[string]struct {
		args   []string
		job    core.JobID
		ranks  [][]int32
		frames func(c *wire.Conn, in func() string)
		refuse *core.Error
		stdin  string
		rc     int // the recordings with several commands end in rc=
		drop   []string
	}{
		"srun-exit-code": {
			args: []string{"bash", "-c", "exit 5"}, ranks: one(), rc: 5,
			frames: func(c *wire.Conn, _ func() string) {
				exit(c, "n001", 5, 0, 0)
				last(c, "n001")
			},
		},
		"srun-exit-codes-mixed": {
			args: []string{"-N2", "-n4", "bash"}, ranks: two(), rc: 3,
			frames: func(c *wire.Conn, _ func() string) {
				exit(c, "n002", 3, 0, 3)
				last(c, "n002")
				exit(c, "n001", 0, 0, 0)
				exit(c, "n001", 1, 0, 1)
				exit(c, "n001", 2, 0, 2)
				last(c, "n001")
			},
		},
		"srun-segv": {args: []string{"bash"}, ranks: one(), rc: 139, frames: func(c *wire.Conn, _ func() string) {
			exit(c, "n001", 0, 11, 0)
			last(c, "n001")
		}},
		"srun-signal": {args: []string{"bash"}, job: 45, ranks: one(), rc: 137, frames: func(c *wire.Conn, _ func() string) {
			exit(c, "n001", 0, 9, 0)
			last(c, "n001")
		}},
		"srun-K-kill": {
			args: []string{"-n4", "-K", "bash"}, job: 47, ranks: [][]int32{{0, 1, 2, 3}}, rc: 143,
			drop: []string{"slurmstepd"},
			frames: func(c *wire.Conn, _ func() string) {
				exit(c, "n001", 9, 0, 1)
				exit(c, "n001", 0, 15, 0, 2, 3)
				last(c, "n001")
			},
		},
		"srun-hostname": {args: []string{"hostname"}, ranks: one(), frames: func(c *wire.Conn, _ func() string) {
			say(c, 0, 1, "vm\n")
			exit(c, "n001", 0, 0, 0)
			last(c, "n001")
		}},
		"srun-stdin": {
			args: []string{"-n3", "-l", "cat"}, ranks: [][]int32{{0, 1, 2}}, stdin: "hello\n",
			frames: func(c *wire.Conn, in func() string) {
				text := in()
				for _, r := range []int32{0, 1, 2} {
					say(c, r, 1, text[:2])
					say(c, r, 1, text[2:])
				}
				exit(c, "n001", 0, 0, 0, 1, 2)
				last(c, "n001")
			},
		},
		"srun-no-command": {},
		"srun-bad-option": {args: []string{"--nonsense", "true"}},
		"srun-bad-partition": {args: []string{"-p", "nope", "true"}, refuse: core.Errorf(core.Invalid, "no").Because(
			"invalid_partition")},
		"srun-bad-jobid": {args: []string{"--jobid=999999", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			if strings.Contains(want, "rc=") {
				want, code = slurmtest.Without(want, "rc="), tc.rc
			}
			want = slurmtest.Without(want, append(tc.drop, "\x00")...)
			p := newPlay(t, max(1, tc.job), tc.ranks, tc.frames)
			p.Refuse = tc.refuse
			got := p.Run(t, "srun", Run, tc.args, func(w *cmd.World) { w.In = strings.NewReader(tc.stdin) })
			w, g := slurmtest.Lines(want), slurmtest.Lines(got.Err+got.Out)
			if name == "srun-exit-codes-mixed" { // nodes end in any order
				slices.Sort(w)
				slices.Sort(g)
			}
			if d := cmp.Diff(w, g); d != "" || got.Code != code {
				t.Errorf("code %d, want %d (-want +got)\n%s", got.Code, code, d)
			}
			if tc.frames != nil && p.released == nil {
				t.Error("the allocation was not given back")
			}
			if name == "srun-K-kill" && (len(p.cancels) != 1 || p.cancels[0].Step != "0") {
				t.Errorf("cancelled %+v", p.cancels)
			}
		})
	}
}

func TestStepInsideAJob(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 7, [][]int32{{0, 1}}, func(c *wire.Conn, _ func() string) {
		say(c, 1, 2, "oops\n")
		exit(c, "n001", 0, 0, 0, 1)
		last(c, "n001")
	})
	got := p.Run(t, "srun", Run, []string{"-n2", "-c2", "-i", "none", "prog", "-x"}, func(w *cmd.World) {
		w.Environ = append(w.Environ, "SLURM_JOB_ID=7", "SLURM_JOB_NAME=batchname", "SLURM_LABELIO=1", "SLURM_NNODES=1")
	})
	if got.Err != "1: oops\n" || got.Code != 0 || p.released != nil || len(p.Submits) != 0 {
		t.Errorf("got %+v, released %v", got, p.released)
	}
	a := p.asked
	if a.Name != "prog" || a.Tasks != 2 || a.CPUsPerTask != 2 || a.Nodes != 1 ||
		!slices.Equal(a.Argv, []string{"prog", "-x"}) || !slices.Contains(a.Env, "PATH=/usr/bin:/bin") {
		t.Errorf("asked for %+v", a)
	}
}

func TestTooManyNodesInAJob(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 7, one(), nil)
	got := p.Run(t, "srun", Run, []string{"-N3", "true"}, func(w *cmd.World) {
		w.Environ = append(w.Environ, "SLURM_JOB_ID=7")
	})
	if got.Err != "srun: error: Only allocated 1 nodes asked for 3\n" || got.Code != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 7, one(), func(c *wire.Conn, _ func() string) {
		c.Send(wire.TypeStepExit, wire.TaskExit{Rank: -1, Node: "n001", Exit: core.Exit{Signal: 9}, Cause: "oom"})
	})
	if got := p.Run(t, "srun", Run, []string{"hog"}); got.Code != exitOOM ||
		!strings.HasPrefix(got.Err, "srun: error: n001: task 0: Out Of Memory\n") {
		t.Errorf("got %+v", got)
	}
	if p.released == nil || p.released.Exit != core.ExitOOM {
		t.Errorf("the job is given back with %+v", p.released)
	}
}

func TestBrokenStream(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 7, one(), func(*wire.Conn, func() string) {})
	got := p.Run(t, "srun", Run, []string{"true"})
	if got.Code != 1 || !strings.HasPrefix(got.Err, "srun: error: Lost the streams of step 7.0: ") || p.released == nil {
		t.Errorf("got %+v", got)
	}
}

func TestOutputFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPlay(t, 51, [][]int32{{0}, {1}}, func(c *wire.Conn, _ func() string) {
		say(c, 0, 1, "a\n")
		say(c, 1, 1, "b\n")
		say(c, 1, 2, "e\n")
		last(c, "n001")
		last(c, "n002")
	})
	got := p.Run(t, "srun", Run, []string{"-N2", "-o", "out.%j.%t.%N", "x"}, func(w *cmd.World) { w.Dir = dir })
	read := func(name string) string { b, _ := os.ReadFile(filepath.Join(dir, name)); return string(b) }
	if read("out.51.0.n001") != "a\n" || read("out.51.1.n002") != "b\ne\n" || got.Out+got.Err != "" {
		t.Errorf("got %q %q, %+v", read("out.51.0.n001"), read("out.51.1.n002"), got)
	}
}

// %A and %a are the array's, of which the job is a task.
func TestOutputFilesOfAnArray(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPlay(t, 52, one(), func(c *wire.Conn, _ func() string) {
		say(c, 0, 1, "a\n")
		last(c, "n001")
	})
	p.Jobs[0].Array = &core.ArrayRef{Base: 51, Task: 3}
	got := p.Run(t, "srun", Run, []string{"-o", "%A_%a_%t.out", "x"}, func(w *cmd.World) {
		w.Dir, w.Environ = dir, append(w.Environ, "SLURM_JOB_ID=52")
	})
	if b, err := os.ReadFile(filepath.Join(dir, "51_3_0.out")); string(b) != "a\n" || got.Out+got.Err != "" {
		t.Errorf("got %q, %v, %+v", b, err, got)
	}
}

func TestQueuedJobIsTold(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 40, one(), func(c *wire.Conn, _ func() string) { last(c, "n001") })
	running := p.Jobs[0]
	p.Jobs[0] = slurmtest.Job(40, "true", "01:00:00", slurmtest.Waits(core.ReasonResources))
	watches := 0
	inner := p.Handle
	p.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/watch" {
			return inner(w, r)
		}
		if watches++; watches == 1 {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // nothing happens until srun is tired of waiting in silence
			return true
		}
		p.Jobs[0] = running
		w.Write([]byte("data: {\"seq\":2,\"kind\":\"job.started\",\"job\":40}\n\n"))
		return true
	}
	got := p.Run(t, "srun", Run, []string{"true"})
	if want := "srun: job 40 queued and waiting for resources\nsrun: job 40 has been allocated resources\n"; got.Err !=
		want || got.Code != 0 {
		t.Errorf("got %+v", got)
	}
}

// A job that can never start waits all the same, until somebody ends it.
func TestJobThatCannotStart(t *testing.T) {
	t.Parallel()
	want, _ := slurmtest.Golden(t, "srun-too-many-nodes")
	p := newPlay(t, 38, one(), nil)
	p.Jobs[0] = slurmtest.Job(38, "true", "01:00:00", slurmtest.Waits(core.ReasonPartitionNodes))
	watches := 0
	inner := p.Handle
	p.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/watch" {
			return inner(w, r)
		}
		if watches++; watches == 1 {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
		slurmtest.Ended("01:00:02", core.Cancelled, core.Exit{})(&p.Jobs[0])
		w.Write([]byte("data: {\"seq\":2,\"kind\":\"job.ended\",\"job\":38}\n\n"))
		return true
	}
	got := p.Run(t, "srun", Run, []string{"-N99", "true"})
	if d := cmp.Diff(want, got.Err+got.Out); d != "" || got.Code != 1 {
		t.Errorf("code %d (-want +got)\n%s", got.Code, d)
	}
}

func TestImmediate(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 40, one(), nil)
	p.Jobs[0] = slurmtest.Job(40, "true", "01:00:00", slurmtest.Waits(core.ReasonResources))
	inner := p.Handle
	p.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api/v1/watch" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
		return inner(w, r)
	}
	got := p.Run(t, "srun", Run, []string{"-I1", "true"})
	if want := "srun: error: Unable to allocate resources: Immediate execution impossible, insufficient " +
		"priority\n"; got.Err != want || got.Code != 1 || len(p.cancels) != 1 {
		t.Errorf("got %+v, %d cancels", got, len(p.cancels))
	}
}

// TestResultByFirst: srun ends with the highest signal or code of its tasks; for a caller that stands for the step it
// is that of the task that failed first.
func TestResultByFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ends  []core.Exit
		code  int // as srun
		first int
	}{
		"one fails, the other is ended": {[]core.Exit{{Code: 5}, {Signal: 15}}, 143, 5},
		"one is killed":                 {[]core.Exit{{}, {Signal: 9}, {Code: 3}}, 137, 137},
		"all is well":                   {[]core.Exit{{}, {}}, 0, 0},
	} {
		for _, byFirst := range []bool{false, true} {
			x := exits{ended: map[int32]bool{}, bad: map[int32]bool{}, byFirst: byFirst}
			for rank, e := range tc.ends {
				x.add(wire.TaskExit{Rank: int32(rank), Exit: e})
			}
			want := tc.code
			if byFirst {
				want = tc.first
			}
			if got, _ := x.result(); got != want {
				t.Errorf("%s, by first %v: %d, want %d", name, byFirst, got, want)
			}
		}
	}
}
