package server_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "jobs.max_script=1K", "jobs.max_env=1K")
	submit := func(f func(*client.Submit)) *client.Submit {
		b := submitBody()
		f(b)
		return b
	}
	cases := []struct {
		what   string
		method string
		path   string
		body   any
		status int
		reason string
		text   string
	}{
		{"malformed JSON", "POST", "/api/v1/jobs", "{\"spec\":{\n  \"name\": x\n}}", 400, "bad_json", "line 2, column 11"},
		{"cut JSON", "POST", "/api/v1/jobs", `{"spec":{"name":"x"`, 400, "bad_json", "line 1"},
		{"a wrong type", "POST", "/api/v1/jobs", `{"spec":{"name":12}}`, 400, "bad_json", "spec.name"},
		{
			"a key of the request that is none", "POST", "/api/v1/jobs", `{"scirpt":"#!/bin/sh"}`, 400, "bad_json",
			"scirpt: there is no such key; did you mean script?",
		},
		{
			"a key of the job that is none", "POST", "/api/v1/jobs",
			"{\"script\":\"#!/bin/sh\",\n\"spec\":{\"nmae\":\"x\"}}", 400, "bad_json",
			"line 2, column 9: nmae: there is no such key; did you mean name?",
		},
		{
			"a key of the job beside it", "POST", "/api/v1/jobs", `{"script":"#!/bin/sh","dependency":"afterok:1"}`, 400,
			"bad_json", "dependency: there is no such key here: dependency is a key of spec",
		},
		{
			"a key of the request in the job", "POST", "/api/v1/jobs", `{"spec":{"Strict":true}}`, 400,
			"bad_json", "Strict: there is no such key here: strict is a key of the request itself",
		},
		{
			"a key of an update that is none", "PATCH", "/api/v1/jobs/1", `{"nicer":1}`, 400, "bad_json",
			"nicer: there is no such key; did you mean nice?",
		},
		{"nothing", "POST", "/api/v1/jobs", "", 400, "bad_json", "no body"},
		{"no script", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Script = "" }), 400, "no_script", ""},
		{
			"no interpreter", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Script = "echo" }), 400,
			"invalid_script", "#!",
		},
		{"a large script", "POST", "/api/v1/jobs", submit(func(b *client.Submit) {
			b.Script = "#!" + strings.Repeat("x", 2000)
		}), 413, "script_too_large", "1K"},
		{"a large environment", "POST", "/api/v1/jobs", submit(func(b *client.Submit) {
			b.Env = []string{"A=" + strings.Repeat("x", 2000)}
		}), 413, "environment_too_large", "1K"},
		{"an enormous request", "POST", "/api/v1/jobs", submit(func(b *client.Submit) {
			b.Script = strings.Repeat("x", 3*parcel.Max)
		}), 413, "request_too_large", ""},
		{
			"many files", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Files = make([]byte, parcel.Max+1) }),
			413, "files_too_large", "8388608",
		},
		{
			"NUL in a variable", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Env = []string{"A=\x00b"} }),
			400, "bad_environment", `"A"`,
		},
		{
			"NUL in a name", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Spec.Name = "a\x00b" }), 400,
			"bad_json", "NUL",
		},
		{"NUL in an update", "PATCH", "/api/v1/jobs/1", `{"comment":"\\\u0000"}`, 400, "bad_json", "NUL"},
		{"the word for NUL in an update", "PATCH", "/api/v1/jobs/1", `{"comment":"\\u0000"}`, 404, "invalid_job_id", ""},
		{"a long story", "POST", "/api/v1/jobs", submit(func(b *client.Submit) {
			b.Spec.Name = strings.Repeat("x", 1<<17)
		}), 413, "request_too_large", ""},
		{
			"a long key", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Key = strings.Repeat("x", 1000) }),
			400, "submit_key", "",
		},
		{
			"a run nobody can type", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Run = "a\x7f" }), 400,
			"invalid_name", "",
		},
		{"a user nobody can type", "POST", "/api/v1/users", core.User{Name: "a,b"}, 400, "invalid_name", ""},
		{
			"an unknown partition", "POST", "/api/v1/jobs", submit(func(b *client.Submit) {
				b.Spec.Partition = core.ListPartitions("gpu")
			}),
			400, "invalid_partition", "gpu",
		},
		{
			"a bad array", "POST", "/api/v1/jobs", submit(func(b *client.Submit) { b.Spec.Array = "1-" }), 400,
			"invalid_array", "",
		},
		{"an id that is none", "GET", "/api/v1/jobs/abc", nil, 400, "invalid_job_id", "abc"},
		{"a job that is not there", "GET", "/api/v1/jobs/77", nil, 404, "invalid_job_id", "77"},
		{"a node that is not there", "GET", "/api/v1/nodes/zz", nil, 404, "invalid_node", "zz"},
		{"a state that is none", "GET", "/api/v1/jobs?state=BORED", nil, 400, "invalid_job_state", "BORED"},
		{"a time that is none", "GET", "/api/v1/jobs?history=1&since=yesterday", nil, 400, "", "yesterday"},
		{"a path that is none", "GET", "/api/v1/nothing", nil, 404, "", "/api/v1/nothing"},
		{"cancel of all", "POST", "/api/v1/jobs/cancel", client.Cancel{}, 400, "no_jobs", ""},
		{
			"a step in nothing", "POST", "/api/v1/jobs/77/steps",
			client.NewStep{Argv: []string{"true"}},
			404,
			"invalid_job_id", "",
		},
		{"a stream without its key", "GET", "/api/v1/streams/abc", nil, 410, "", ""},
		{"an agent without a certificate", "GET", "/agent/v1/connect", nil, 401, "no_identity", ""},
	}
	for _, c := range cases {
		status, err := s.Call(c.method, c.path, "", c.body, nil)
		if err == nil || status != c.status || err.Reason != c.reason || !strings.Contains(err.Message, c.text) {
			t.Errorf("%s: %d %+v, want %d %s %q", c.what, status, err, c.status, c.reason, c.text)
		}
	}
	var list client.JobList
	s.Must("GET", "/api/v1/jobs?history=1", nil, &list)
	if len(list.Jobs) != 0 {
		t.Errorf("something was half-done: %+v", list.Jobs)
	}
}

func TestDuplicateSubmitGivesTheSameJob(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	b := submitBody()
	b.Key = "k1"
	var first, second, other client.Submitted
	s.Must("POST", "/api/v1/jobs", b, &first)
	s.Must("POST", "/api/v1/jobs", b, &second)
	b.Key = "k2"
	s.Must("POST", "/api/v1/jobs", b, &other)
	if first.ID != second.ID || first.Duplicate || !second.Duplicate || other.ID == first.ID {
		t.Errorf("%+v %+v %+v", first, second, other)
	}
	s.Stop()
	s.Start()
	b.Key, b.Retry = "k1", true
	s.Must("POST", "/api/v1/jobs", b, &second)
	if second.ID != first.ID || !second.Duplicate {
		t.Errorf("after a restart: %+v", second)
	}
	uid := uint32(1)
	ann := s.Token(core.User{Name: "ann", UnixName: "daemon", UID: &uid})
	if _, err := s.Call("POST", "/api/v1/jobs", ann, b, &second); err != nil || second.ID == first.ID {
		t.Errorf("another's key: %+v %v", second, err)
	}
}

func TestInboxFullIs429(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "server.inbox=16")
	type result struct {
		status int
		err    *core.Error
	}
	out := make(chan result)
	const callers = 64
	for range callers {
		go func() {
			r := result{status: 200}
			for i := 0; i < 50 && r.status == 200; i++ {
				r.status, r.err = s.Call("POST", "/api/v1/jobs", "", submitBody(), nil)
			}
			out <- r
		}()
	}
	refused := 0
	for range callers {
		r := <-out
		if r.status == 200 {
			continue
		}
		if r.status != 429 || r.err.Code != core.Exhausted {
			t.Errorf("%d %v", r.status, r.err)
		}
		refused++
	}
	if refused == 0 {
		t.Error("a quarter of an inbox of 16 held 64 callers")
	}
}

// watch collects events of a stream until it has n of them.
func watch(t *testing.T, s *servertest.Server, token, after string) (*bufio.Reader, func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
	req, err := http.NewRequestWithContext(ctx, "GET", s.Info.API+"/api/v1/watch?after="+after, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.Far().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("watch: %s", resp.Status)
	}
	return bufio.NewReader(resp.Body), func() { cancel(); resp.Body.Close() }
}

// nextEvent reads one event as "id kind".
func nextEvent(t *testing.T, r *bufio.Reader) (id, kind string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "event: "):
			kind = line[7:]
		case line == "" && kind != "":
			return id, kind
		}
	}
}

func TestWatchResumesWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	boss := s.Token(core.User{Name: "boss", Role: core.RoleAdmin})
	for range 1500 { // more than one page of the past
		s.Submit(func(in *client.Submit) { in.Spec.Hold = true })
	}
	last := 0
	for round := range 3 {
		r, stop := watch(t, s, boss, itoa(last))
		if round == 1 {
			s.Submit(func(in *client.Submit) { in.Spec.Hold = true }) // while somebody watches
		}
		for range 520 {
			id, kind := nextEvent(t, r)
			if id != itoa(last+1) {
				t.Fatalf("event %s (%s) follows %d", id, kind, last)
			}
			last++
			if round == 2 && last == 1501 {
				break
			}
		}
		stop()
	}
}

func itoa(n int) string { return idText(core.JobID(n)) }

func TestWatchShowsUsersTheirOwn(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	uid := uint32(1)
	ann := s.Token(core.User{Name: "ann", UnixName: "daemon", UID: &uid})
	r, stop := watch(t, s, ann, "0")
	defer stop()
	s.Submit(func(in *client.Submit) { in.Spec.Hold = true })
	var made client.Submitted
	if _, err := s.Call("POST", "/api/v1/jobs", ann, submitBody(), &made); err != nil {
		t.Fatal(err)
	}
	for {
		_, kind := nextEvent(t, r)
		if kind == string(core.JobSubmitted) {
			break // had ann seen the other's, it would have come first
		}
	}
	s.Stop()
	for {
		if _, kind := nextEvent(t, r); kind == "bye" {
			return
		}
	}
}

func TestLogsFollowWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(func(in *client.Submit) { in.Spec.IO.Stream, in.Run, in.Config = true, "task-1", "type: task\n" })
	k := n.AwaitLaunch(id, 1, wire.BatchStep)
	l, err := wire.DecodeLaunch(n.AwaitFrame(wire.TypeLaunch))
	if err != nil || l.Stdio.Mode != wire.StdioLog {
		t.Fatalf("%+v %v", l, err)
	}
	body, _, err := s.Client().Logs(t.Context(), idText(id), client.LogQuery{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	r := bufio.NewReader(body)
	var offset int64
	say := func(text string) {
		n.Send(wire.TypeLogChunk, wire.LogChunk{Key: k, Offset: offset}, []byte(text))
		offset += int64(len(text))
	}
	for _, text := range []string{"one\n", "two\n", "three\n"} {
		say(text)
		if got, err := r.ReadString('\n'); err != nil || got != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	n.AwaitLogAck(k, offset)
	n.Disconnect()
	n.Connect()
	if w := n.Welcome(); len(w.Logs) != 1 || w.Logs[0].Offset != offset {
		t.Errorf("the agent is not told how far its log is: %+v", w.Logs)
	}
	say("four\n")
	n.End(k, func(x *wire.Exited) { x.LogSize = offset })
	rest := make([]byte, 100)
	m, _ := r.Read(rest)
	if string(rest[:m]) != "four\n" {
		t.Errorf("%q", rest[:m])
	}
	began := time.Now()
	if _, err := r.ReadByte(); err == nil {
		t.Error("the log does not end")
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the follower was let go only after %s", took)
	}
	s.AwaitState(id, core.Completed)
	var runs client.RunList
	s.Must("GET", "/api/v1/runs?name=task-1", nil, &runs)
	if len(runs.Runs) != 1 || runs.Runs[0].State != "done" || runs.Runs[0].Views[0].ID != id {
		t.Errorf("run %+v", runs.Runs)
	}
}

func TestNodesWriteIntoTheOutputOfTheirOwnJobsOnly(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	own := s.Join("n1", core.Compute, false)
	own.Connect()
	id := s.Submit(nil)
	k := own.AwaitLaunch(id, 1, wire.BatchStep)
	other := s.Join("n2", core.Compute, false)
	other.Connect()
	forge := func() {
		other.Send(wire.TypeLogChunk, wire.LogChunk{Key: k, Tail: true, End: true}, []byte("forged"))
		other.AwaitLogAck(k, 6) // and is told to continue
	}
	forge()
	own.End(k, func(x *wire.Exited) { x.LogSize = 5 }) // with its output to come
	own.AwaitAck(k)
	s.AwaitState(id, core.Completed)
	forge()
	own.Send(wire.TypeLogChunk, wire.LogChunk{Key: k, Tail: true, End: true}, []byte("right"))
	own.AwaitLogAck(k, 5)
	body, _, err := s.Client().Logs(t.Context(), idText(id), client.LogQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != "right" {
		t.Errorf("the job's output is %q, %v", got, err)
	}
}

func TestRunNamesAreTakenWhileOpen(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	b := submitBody()
	b.Run, b.Config = "train", "type: task\n"
	s.Must("POST", "/api/v1/jobs", b, nil)
	if status, err := s.Call("POST", "/api/v1/jobs", "", b, nil); status != 409 || err.Reason != "run_exists" {
		t.Errorf("%d %v", status, err)
	}
	s.Must("POST", "/api/v1/runs/train/stop", nil, nil)
	if status, err := s.Call("POST", "/api/v1/runs/train/stop", "", nil, nil); status != 404 {
		t.Errorf("stopped twice: %d %v", status, err)
	}
	s.Must("POST", "/api/v1/jobs", b, nil)
	var runs client.RunList
	s.Must("GET", "/api/v1/runs", nil, &runs)
	if len(runs.Runs) != 2 || runs.Runs[0].State != "submitted" || runs.Runs[1].State != "terminated" {
		t.Errorf("%+v", runs.Runs)
	}
}
