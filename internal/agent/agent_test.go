package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/agent/socket"
	"bireme.dev/bireme/internal/agent/uplink"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

func key(job int64) wire.Key {
	return wire.Key{Job: core.JobID(job), Attempt: 1, Step: wire.BatchStep, Node: "n1"}
}

// told waits until the agent has taken all the keeper has sent.
func told(keeper, server *peer) {
	keeper.t.Helper()
	keeper.send(wire.TypeReply, wire.Reply{Ref: 77})
	var r wire.Reply
	server.want(wire.TypeReply, &r)
}

func TestJoinKeepsTheCertificatePrivate(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	ca := filepath.Join(dir, "given.pem")
	if err := os.WriteFile(ca, s.ca.pem, 0o644); err != nil {
		t.Fatal(err)
	}
	err := Join(t.Context(), dir, []string{s.URL}, "n1", "wrong", ca)
	if core.CodeOf(err) != core.Denied {
		t.Errorf("a wrong token gave %v, want denied", err)
	}
	if HasJoined(dir, ca) {
		t.Error("joined with a wrong token")
	}
	if err := Join(t.Context(), dir, []string{"127.0.0.1:1", s.URL}, "n1", "once", ca); err != nil {
		t.Fatalf("the second of two servers was not asked: %v", err)
	}
	if !HasJoined(dir, ca) {
		t.Error("not joined")
	}
	for _, f := range []string{keyFile, certFile} {
		st, err := os.Stat(filepath.Join(dir, f))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, st.Mode(), err)
		}
	}
	other := filepath.Join(dir, "other.pem")
	if err := os.WriteFile(other, newAuthority(t).pem, 0o644); err != nil {
		t.Fatal(err)
	}
	if HasJoined(dir, other) {
		t.Error("the certificate counts for another cluster")
	}
}

func TestJobsLifePassesThrough(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{Settings: wire.NodeSettings{
		Prolog:   []string{"/bin/prolog"},
		KillWait: 3 * time.Second, MaxPids: 99, ConstrainMem: true, LogTail: 7,
	}})
	h := server.hello
	if h.Node != "n1" || h.Hardware.CPUs != 2 || h.Hardware.Memory != core.GiB || h.Host.BootID != "boot-1" ||
		h.Host.Containment != "weak" {
		t.Errorf("hello is %+v", h)
	}
	l := &wire.Launch{
		Key: key(1), Script: []byte("#!/bin/sh\n"), Env: wire.JoinEnv([]string{"A=1", "BIREME_SERVER=elsewhere"}),
		Limits: wire.Limits{Memory: 5, CPUs: "0"},
	}
	if err := server.SendLaunch(l); err != nil {
		t.Fatal(err)
	}
	server.send(wire.TypeKill, wire.Kill{Ref: 4, Job: 1, Attempt: 1})
	var raw wire.Launch
	got, err := wire.DecodeLaunch(keeper.want(wire.TypeLaunch, &raw))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"A=1", "BIREME_SERVER=unix:" + filepath.Join(dir, "agent.sock")}; !cmp.Equal(want, got.Environ()) {
		t.Errorf("environment %q, want %q", got.Environ(), want)
	}
	if string(got.Script) != "#!/bin/sh\n" || got.Time.KillGrace != 3*time.Second || got.Limits.PIDs != 99 ||
		got.Limits.Memory != 5 ||
		got.Limits.CPUs != "" || got.TmpBase != filepath.Join(dir, "tmp") || got.Stdio.KeepTail != 7 ||
		len(got.Hooks.Prolog) != 1 {
		t.Errorf("launch is %+v", got)
	}
	var kill wire.Kill
	if keeper.want(wire.TypeKill, &kill); kill.Job != 1 || kill.Ref != 4 {
		t.Errorf("kill is %+v", kill)
	}
	keeper.send(wire.TypeReply, wire.Reply{Ref: 4})
	var reply wire.Reply
	if server.want(wire.TypeReply, &reply); reply.Ref != 4 {
		t.Errorf("reply is %+v", reply)
	}
	keeper.send(wire.TypeStarted, wire.Started{Key: key(1), PID: 42})
	keeper.send(wire.TypeExited, wire.Exited{Key: key(1), ExitCode: 3, LogSize: 5}, []byte("hello"))
	var x wire.Exited
	f := server.want(wire.TypeExited, &x)
	if x.ExitCode != 3 || string(f.Payload) != "hello" {
		t.Errorf("end is %+v with output %q", x, f.Payload)
	}
	server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
	var ack wire.AckExit
	if keeper.want(wire.TypeAckExit, &ack); len(ack.Keys) != 1 || ack.Keys[0] != key(1) {
		t.Errorf("acknowledged %+v", ack)
	}
}

func TestEndsWaitForTheServer(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	for job := range int64(2) {
		if err := server.SendLaunch(&wire.Launch{Key: key(job + 1)}); err != nil {
			t.Fatal(err)
		}
		var l wire.Launch
		keeper.want(wire.TypeLaunch, &l)
		keeper.send(wire.TypeStarted, wire.Started{Key: key(job + 1)})
	}
	told(keeper, server)
	s.deaf.Store("deaf", true)
	server.Close()
	keeper.send(wire.TypeExited, wire.Exited{Key: key(1), ExitCode: 7})
	keeper.send(wire.TypeList, nil) // a marker: it is unknown to agents, so it is dropped after the end was read
	s.deaf.Delete("deaf")
	var again *peer
	for again == nil || len(again.hello.Ended) == 0 { // the agent may have come back before the end
		again = s.session(wire.Welcome{Kill: []wire.Key{key(2)}})
		if len(again.hello.Ended) == 0 {
			var x wire.Exited
			again.want(wire.TypeExited, &x)
			again.Close()
		}
	}
	if len(again.hello.Running) != 1 || again.hello.Running[0] != key(2) || again.hello.Ended[0].ExitCode != 7 {
		t.Errorf("the hello tells %+v running, %+v ended", again.hello.Running, again.hello.Ended)
	}
	var kill wire.Kill
	if keeper.want(wire.TypeKill, &kill); kill.Job != 2 || kill.Grace >= 0 {
		t.Errorf("kill of what is not wanted: %+v", kill)
	}
	again.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
	var ack wire.AckExit
	if keeper.want(wire.TypeAckExit, &ack); ack.Keys[0] != key(1) {
		t.Errorf("acknowledged %+v", ack)
	}
}

func TestAgentRestartFindsWhatRuns(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	k.hello.Running = []wire.Running{{Key: key(5), PID: 9}}
	k.hello.Ended = []wire.Exited{{Key: key(4), Signal: 9}}
	stop := startAgent(t, s, k, dir)
	first := s.session(wire.Welcome{})
	stop()
	startAgent(t, s, k, dir)
	second := s.session(wire.Welcome{})
	for _, h := range []wire.NodeHello{first.hello, second.hello} {
		if len(h.Running) != 1 || h.Running[0] != key(5) || len(h.Ended) != 1 || h.Ended[0].Signal != 9 {
			t.Errorf("hello tells %+v running, %+v ended", h.Running, h.Ended)
		}
	}
}

func TestLaunchesGoToTheNextKeeper(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	var l wire.Launch
	for job := range int64(3) {
		if err := server.SendLaunch(&wire.Launch{Key: key(job + 1)}); err != nil {
			t.Fatal(err)
		}
		keeper.want(wire.TypeLaunch, &l)
	}
	keeper.send(wire.TypeStarted, wire.Started{Key: key(1)})
	told(keeper, server)
	// The keeper dies. It had recorded that it would run 1 and 2, not 3; its successor reports them as lost.
	k.l.Close()
	keeper.Close()
	<-k.done
	server.send(wire.TypeKill, wire.Kill{Job: 3, Attempt: 1})
	k.start(wire.KeeperHello{Instance: "two", Ended: []wire.Exited{{Key: key(2), Cause: wire.CauseKeeperLost}}})
	keeper = take(t, k.conns, "the agent at the second keeper")
	if keeper.want(wire.TypeLaunch, &l); l.Key != key(3) {
		t.Errorf("the second keeper was told to run %v", l.Key)
	}
	var kill wire.Kill
	if keeper.want(wire.TypeKill, &kill); kill.Job != 3 {
		t.Errorf("the second keeper was told to kill %+v", kill)
	}
	lost := map[core.JobID]wire.Cause{}
	for range 2 {
		var x wire.Exited
		server.want(wire.TypeExited, &x)
		lost[x.Key.Job] = x.Cause
	}
	if lost[1] != wire.CauseKeeperLost || lost[2] != wire.CauseKeeperLost {
		t.Errorf("lost are %v", lost)
	}
}

func TestLogsAreStreamedFromWhereTheStoreIs(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	if err := server.SendLaunch(&wire.Launch{Key: key(1), Stdio: wire.Stdio{Mode: wire.StdioLog}}); err != nil {
		t.Fatal(err)
	}
	content := "one two three"
	answer := func(to *peer, upto int, ended bool) wire.ReadLog {
		var q wire.ReadLog
		to.want(wire.TypeReadLog, &q)
		to.send(wire.TypeLog, wire.Log{Ref: q.Ref, Key: q.Key, Offset: q.Offset, Size: int64(upto), Ended: ended},
			[]byte(content[q.Offset:upto]))
		return q
	}
	answer(keeper, 3, false)
	var c wire.LogChunk
	f := server.want(wire.TypeLogChunk, &c)
	if c.Offset != 0 || string(f.Payload) != "one" || c.End {
		t.Errorf("first piece %+v %q", c, f.Payload)
	}
	var q wire.ReadLog
	keeper.want(wire.TypeReadLog, &q) // the next piece is waited for
	server.Close()                    // before the acknowledgement
	server = s.session(wire.Welcome{Logs: []wire.LogAck{{Key: key(1), Offset: 2}}})
	if q := answer(keeper, 13, true); q.Offset != 2 {
		t.Errorf("reads on from %d", q.Offset)
	}
	f = server.want(wire.TypeLogChunk, &c)
	if c.Offset != 2 || string(f.Payload) != content[2:] || !c.End {
		t.Errorf("second piece %+v %q", c, f.Payload)
	}
	keeper.send(wire.TypeExited, wire.Exited{Key: key(1), LogSize: 13})
	var x wire.Exited
	server.want(wire.TypeExited, &x)
	server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
	// The keeper may forget the step when its log is safe, not before.
	notForgotten(server, keeper)
	server.send(wire.TypeLogAck, wire.LogAck{Key: key(1), Offset: 13})
	var ack wire.AckExit
	keeper.want(wire.TypeAckExit, &ack)
}

func TestLongOutputIsFetched(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	output := bytes.Repeat([]byte("0123456789abcdef"), 20<<10) // 320 KiB
	keeper.send(wire.TypeExited, wire.Exited{Key: key(1), LogFrom: 16, LogSize: int64(len(output))})
	go func() {
		for f := range keeper.frames {
			var q wire.ReadLog
			if f.Type != wire.TypeReadLog || f.Decode(&q) != nil {
				continue
			}
			to := min(int(q.Offset)+q.Max, len(output))
			if keeper.Send(wire.TypeLog, wire.Log{Ref: q.Ref, Offset: q.Offset, Size: int64(len(output)), Ended: true},
				output[q.Offset:to]) != nil {
				return
			}
		}
	}()
	var got []byte
	for {
		var c wire.LogChunk
		f := server.want(wire.TypeLogChunk, &c)
		if c.Offset != 16+int64(len(got)) || !c.Tail {
			t.Fatalf("piece %+v after %d bytes", c, len(got))
		}
		if got = append(got, f.Payload...); c.End {
			break
		}
	}
	if !bytes.Equal(got, output[16:]) {
		t.Errorf("%d bytes came, %d were written, or they differ", len(got), len(output)-16)
	}
	var x wire.Exited
	server.want(wire.TypeExited, &x) // after its output
}

func TestFenceKillsAfterSilence(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	stop := startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{Fence: time.Hour})
	const fence = 3 * time.Second // the launch comes in time on a slow machine, too
	for job := range int64(2) {
		if err := server.SendLaunch(
			&wire.Launch{Key: key(job + 1), Fence: []time.Duration{0, fence}[job]}); err != nil {
			t.Fatal(err)
		}
		var l wire.Launch
		keeper.want(wire.TypeLaunch, &l)
		keeper.send(wire.TypeStarted, wire.Started{Key: key(job + 1)})
	}
	var kill wire.Kill
	keeper.want(wire.TypeKill, &kill)
	if kill.Job != 2 || kill.Cause != causeFenced || kill.Grace >= 0 ||
		!strings.Contains(kill.Reason, "no word from the server") {
		t.Errorf("the fence killed with %+v", kill)
	}
	// A launch that comes only now may run elsewhere already: it is not carried out; its connection ends.
	if err := server.SendLaunch(&wire.Launch{Key: key(3), Fence: fence}); err != nil {
		t.Fatal(err)
	}
	s.session(wire.Welcome{Fence: time.Hour, Fences: []wire.JobFence{{Job: 2, Fence: fence}}})
	// An agent that starts again, with the server away, remembers the fence.
	s.deaf.Store("deaf", true)
	stop()
	k.mu.Lock()
	k.hello.Running = []wire.Running{{Key: key(2)}, {Key: key(3)}}
	k.mu.Unlock()
	startAgent(t, s, k, dir)
	keeper = take(t, k.conns, "the second agent at the keeper")
	if keeper.want(wire.TypeKill, &kill); kill.Job != 2 || kill.Cause != causeFenced {
		t.Errorf("after a restart the fence killed with %+v", kill)
	}
}

// TestAgentFindsTheLeader: a server that does not lead refuses, and the agent tries the next; one that says goodbye is
// left for another.
func TestAgentFindsTheLeader(t *testing.T) {
	t.Parallel()
	s, other, dir := newFakeServer(t), newFakeServer(t), shortDir(t)
	other.ca = s.ca
	other.Server = s.ca.server(t, http.HandlerFunc(other.serve))
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	take(t, k.conns, "the agent at the keeper")
	first := s.session(wire.Welcome{Servers: []string{s.URL, other.URL}})
	s.deaf.Store("deaf", true) // it leads no more
	first.send(wire.TypeBye, struct{}{})
	second := other.session(wire.Welcome{})
	s.deaf.Delete("deaf") // it leads again, and the other one is silent to new connections
	other.deaf.Store("deaf", true)
	second.Close()
	s.session(wire.Welcome{})
}

func TestHeartbeatsAndSilentServer(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	server := s.session(wire.Welcome{Heartbeat: 150 * time.Millisecond})
	for i := range int64(3) {
		var b wire.Heartbeat
		server.want(wire.TypeHeartbeat, &b)
		if b.FreeMem == 0 || b.Now == 0 {
			t.Errorf("heartbeat %+v", b)
		}
		server.send(wire.TypePong, wire.Pong{Seq: i + 1})
	}
	// From here on the server says nothing: the agent comes again.
	s.session(wire.Welcome{})
}

func TestStepStream(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	step := wire.Key{Job: 1, Attempt: 1, Step: "0", Node: "n1"}
	l := &wire.Launch{
		Key: step, Stdio: wire.Stdio{Mode: wire.StdioStream},
		Program: wire.Program{Tasks: []wire.Task{{Rank: 4}, {Rank: 5}}},
	}
	if err := server.SendLaunch(l); err != nil {
		t.Fatal(err)
	}
	var got wire.Launch
	keeper.want(wire.TypeLaunch, &got)
	keeper.send(wire.TypeStarted, wire.Started{Key: step, PIDs: []int{11, 12}})
	keeper.send(wire.TypeData, wire.Data{Key: step, Task: 1, FD: 1}, []byte("early "))
	server.send(wire.TypeOpenStream, wire.OpenStream{Key: step, Token: "tok"})
	srun := take(t, s.streams, "the step's stream")
	if srun.path != wire.PathStream+"tok" {
		t.Errorf("the stream is %s", srun.path)
	}
	for _, rank := range []int32{4, 5} { // srun sends no input before
		var start wire.TaskExit
		if srun.want(wire.TypeTaskStart, &start); start.Rank != rank {
			t.Errorf("started %+v, want %d", start, rank)
		}
	}
	var io wire.IOHeader
	if f := srun.want(wire.TypeIO, &io); io.Rank != 5 || io.FD != 1 || string(f.Payload) != "early " {
		t.Errorf("output %+v %q", io, f.Payload)
	}
	var ack wire.DataAck
	if keeper.want(wire.TypeDataAck, &ack); ack.Task != 1 || ack.FD != 1 || ack.Offset != 6 {
		t.Errorf("acknowledged %+v", ack)
	}
	// What is repeated is dropped.
	keeper.send(wire.TypeData, wire.Data{Key: step, Task: 1, FD: 1, Offset: 3, EOF: true}, []byte("ly late"))
	if f := srun.want(wire.TypeIO, &io); string(f.Payload) != "late" {
		t.Errorf("output %q", f.Payload)
	}
	if f := srun.want(wire.TypeIO, &io); len(f.Payload) != 0 {
		t.Errorf("end of file is %q", f.Payload)
	}
	srun.send(wire.TypeInput, wire.IOHeader{Rank: 5}, []byte("typed"))
	srun.send(wire.TypeInput, wire.IOHeader{Rank: 5})
	var in wire.Data
	if f := keeper.want(wire.TypeData, &in); in.Task != 1 || string(f.Payload) != "typed" || in.EOF {
		t.Errorf("input %+v %q", in, f.Payload)
	}
	if keeper.want(wire.TypeData, &in); in.Offset != 5 || !in.EOF {
		t.Errorf("end of input %+v", in)
	}
	srun.send(wire.TypeStepSignal, wire.StepSignal{Signal: 2})
	var sig wire.Signal
	if keeper.want(wire.TypeSignal, &sig); sig.Number != 2 || sig.Step != "0" {
		t.Errorf("signal %+v", sig)
	}
	keeper.send(wire.TypeTaskExited, wire.TaskExited{Key: step, Task: 0, ExitCode: 1})
	var x wire.TaskExit
	if srun.want(wire.TypeTaskExit, &x); x.Rank != 4 || x.Exit.Code != 1 {
		t.Errorf("task's end %+v", x)
	}
	keeper.send(wire.TypeExited, wire.Exited{Key: step, ExitCode: 1})
	if srun.want(wire.TypeStepExit, &x); x.Node != "n1" || x.Exit.Code != 1 {
		t.Errorf("step's end %+v", x)
	}
}

func TestInputKeepsToTheWindow(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	step := wire.Key{Job: 1, Attempt: 1, Step: "0", Node: "n1"}
	l := &wire.Launch{
		Key: step, Stdio: wire.Stdio{Mode: wire.StdioStream},
		Program: wire.Program{Tasks: []wire.Task{{Rank: 0}, {Rank: 1}}},
	}
	if err := server.SendLaunch(l); err != nil {
		t.Fatal(err)
	}
	server.send(wire.TypeOpenStream, wire.OpenStream{Key: step, Token: "tok"})
	srun := take(t, s.streams, "the step's stream")
	piece := make([]byte, wire.StreamWindow/2)
	for range 3 {
		srun.send(wire.TypeInput, wire.IOHeader{Rank: -1}, piece)
	}
	var in wire.Data
	keeper.want(wire.TypeData, &in)
	keeper.want(wire.TypeData, &in)
	// Both halves of the window are out; one of two tasks taking them is not enough.
	keeper.send(wire.TypeDataAck, wire.DataAck{Key: step, Task: 0, Offset: wire.StreamWindow})
	server.send(wire.TypeStat, wire.Stat{Ref: 1, Job: 1, Attempt: 1})
	for f := range keeper.frames {
		if f.Type == wire.TypeData {
			t.Fatal("input beyond the window of the slower task")
		}
		if f.Type == wire.TypeStat {
			break
		}
	}
	keeper.send(wire.TypeDataAck, wire.DataAck{Key: step, Task: 1, Offset: wire.StreamWindow / 2})
	if keeper.want(wire.TypeData, &in); in.Offset != wire.StreamWindow || in.Task != -1 {
		t.Errorf("third piece %+v", in)
	}
}

// localClient calls the node's socket.
func localClient(dir string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(dir, "agent.sock"))
		},
	}}
}

func TestLocalSocketTellsWhoCalls(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	flow := make(chan string)
	s.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "no certificate", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "%s %s %q %s\n", r.Method, r.URL, r.Header.Values(socket.PeerHeader),
			r.TLS.PeerCertificates[0].Subject.CommonName)
		if r.URL.Path == "/api/v1/flow" {
			w.(http.Flusher).Flush()
			for line := range flow {
				io.WriteString(w, line)
				w.(http.Flusher).Flush()
			}
		}
	})
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	s.session(wire.Welcome{}) // the socket is open by now, or soon
	client := localClient(dir)
	call := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(socket.PeerHeader, "0:0:root") // a lie
		return client.Do(req)
	}
	resp, err := call("/api/v1/jobs?user=x")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	user, err := account.ByUID(uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	me := fmt.Sprintf("%d:%d:%s", os.Getuid(), os.Getgid(), user.Name)
	if want := fmt.Sprintf("GET /api/v1/jobs?user=x [%q] n1\n", me); string(b) != want {
		t.Errorf("the server saw %q, want %q", b, want)
	}
	// The node's certificate opens the agents' side of the server; nobody on the node may use it for that.
	for _, path := range []string{
		wire.PathAgent, wire.PathStream + "x", "/api/v1/../../agent/v1/connect",
		"//agent/v1/connect", "/api/v1/renew", "/api/v1/join", "/api/v1/%72enew",
	} {
		refused, err := call(path)
		if err != nil {
			t.Fatal(err)
		}
		refused.Body.Close()
		if refused.StatusCode != http.StatusNotFound {
			t.Errorf("%s was answered with %s", path, refused.Status)
		}
	}
	// What flows is passed on as it comes.
	if resp, err = call("/api/v1/flow"); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 4096)
	if _, err := resp.Body.Read(buf); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"first", "second"} {
		flow <- line
		n, err := io.ReadAtLeast(resp.Body, buf, len(line))
		if err != nil || string(buf[:n]) != line {
			t.Errorf("got %q, %v", buf[:n], err)
		}
	}
	close(flow)
}

func TestLocalSocketWithoutServer(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	startAgent(t, s, k, dir)
	p := s.session(wire.Welcome{})
	s.deaf.Store("deaf", true)
	s.Listener.Close()
	p.Close()
	resp, err := localClient(dir).Get("http://node/api/v1/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
		core.CodeOf(uplink.Refusal(resp)) != core.Unavailable {
		t.Errorf("answer %s", resp.Status)
	}
}
