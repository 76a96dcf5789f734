package servertest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Agent is a fake node agent. It holds what a real one's keeper would: what runs, and ends that are not acknowledged.
type Agent struct {
	t    testing.TB
	s    *Server
	Name core.NodeName
	cert tls.Certificate
	Boot string

	// Auto ends every launch at once with exit code 0, as a cluster of `true`.
	Auto bool
	// Quiet keeps no frames for AwaitFrame.
	Quiet bool
	// Mute sends no heartbeats: the connection looks half-open.
	Mute bool

	mu      sync.Mutex
	conn    *wire.Conn
	done    chan struct{}
	running []wire.Key
	ended   []wire.Exited
	started map[wire.Key]int
	Frames  chan wire.Frame // what came, except for Pong, LogAck and AckExit
	welcome wire.Welcome
	acked   map[wire.Key]bool
	logAcks map[wire.Key]int64
	killed  map[core.JobID]bool
	changed chan struct{}
}

// Join makes a node known and gives its agent, not connected yet.
func (s *Server) Join(name core.NodeName, roles core.NodeRole, trustRoot bool) *Agent {
	s.t.Helper()
	var made client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "join", Node: name, Roles: roles, TrustRoot: trustRoot}, &made)
	a, err := s.JoinWith(name, made.Secret)
	if err != nil {
		s.t.Fatalf("join %s: %v", name, err)
	}
	return a
}

// JoinWith joins with a token, under a key of its own.
func (s *Server) JoinWith(name core.NodeName, token string) (*Agent, *core.Error) {
	s.t.Helper()
	key, csr := NewCSR(s.t)
	var joined client.Joined
	if _, err := s.Call("POST", "/api/v1/join", "", client.Join{Token: token, Node: name, CSR: csr}, &joined); err != nil {
		return nil, err
	}
	return s.NewAgent(name, key, joined.Cert), nil
}

// NewAgent returns the agent of a node that has a key and a certificate.
func (s *Server) NewAgent(name core.NodeName, key *ecdsa.PrivateKey, certPEM string) *Agent {
	block, _ := pem.Decode([]byte(certPEM))
	return &Agent{
		t: s.t, s: s, Name: name, cert: tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}, Boot: "boot-1",
		started: map[wire.Key]int{}, acked: map[wire.Key]bool{}, logAcks: map[wire.Key]int64{}, killed: map[core.JobID]bool{},
		Frames: make(chan wire.Frame, 100_000), changed: make(chan struct{}),
	}
}

// NewCSR makes a key and its signing request.
func NewCSR(t testing.TB) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// Renew asks for another certificate for a key (nil: the agent's own), and uses it. shown reports whether the present
// certificate is shown.
func (a *Agent) Renew(key *ecdsa.PrivateKey, shown bool) error {
	a.t.Helper()
	if key == nil {
		key = a.cert.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		a.t.Fatal(err)
	}
	body, err := json.Marshal(
		client.Renew{Node: a.Name, CSR: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
	if err != nil {
		a.t.Fatal(err)
	}
	conf := a.TLS()
	if !shown {
		conf.Certificates = nil
	}
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}
	resp, err := h.Post("https://"+a.s.Info.Agents+"/api/v1/renew", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var e client.ErrorBody
		if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
			return err
		}
		return &e.Error
	}
	var joined client.Joined
	if err := json.NewDecoder(resp.Body).Decode(&joined); err != nil {
		return err
	}
	block, _ := pem.Decode([]byte(joined.Cert))
	a.cert = tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
	return nil
}

// Copy returns another agent with the same certificate, as somebody has who copied it.
func (a *Agent) Copy() *Agent {
	return a.s.NewAgent(a.Name, a.cert.PrivateKey.(*ecdsa.PrivateKey),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Certificate[0]})))
}

// Cert is the certificate it has.
func (a *Agent) Cert() *x509.Certificate {
	a.t.Helper()
	c, err := x509.ParseCertificate(a.cert.Certificate[0])
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// TLS returns the settings of a connection with the node's certificate.
func (a *Agent) TLS() *tls.Config {
	a.t.Helper()
	text, err := os.ReadFile(a.s.CA())
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{a.cert}, ServerName: "127.0.0.1"}
}

// Dial opens an upgraded stream with the node's certificate.
func (a *Agent) Dial(path, protocol string) (net.Conn, *http.Response, error) {
	c, err := tls.Dial("tcp", a.s.Info.Agents, a.TLS())
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: bireme\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", path,
		protocol); err != nil {
		return nil, nil, err
	}
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return c, resp, fmt.Errorf("upgrade: %s", resp.Status)
	}
	return &buffered{Conn: c, r: br}, resp, nil
}

type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// Connect dials, says hello with all the agent holds and waits for the welcome. It disconnects with the test.
func (a *Agent) Connect() {
	a.t.Helper()
	if err := a.TryConnect(); err != nil {
		a.t.Fatalf("connect %s: %v", a.Name, err)
	}
}

// TryConnect is Connect that may fail.
func (a *Agent) TryConnect() error {
	raw, _, err := a.Dial(wire.PathAgent, "bireme-agent")
	if err != nil {
		if raw != nil {
			_ = raw.Close()
		}
		return err
	}
	c := wire.NewConn(raw)
	a.mu.Lock()
	hello := wire.NodeHello{
		Protocol: wire.AgentProtocol, Version: "fake", Node: a.Name,
		Hardware: core.Hardware{CPUs: 4, Sockets: 1, Cores: 4, Threads: 1, Memory: 8 * core.GiB},
		Host:     core.Host{Hostname: string(a.Name), BootID: a.Boot, Root: true, Containment: "cgroup-v2"},
		Running:  slices.Clone(a.running), Ended: slices.Clone(a.ended), Now: core.At(time.Now()),
	}
	a.mu.Unlock()
	if err := c.Send(wire.TypeNodeHello, hello); err != nil {
		return err
	}
	f, err := c.Next()
	if err != nil {
		return err
	}
	if f.Type != wire.TypeWelcome {
		return fmt.Errorf("frame of type %d for a welcome", f.Type)
	}
	var w wire.Welcome
	if err := f.Decode(&w); err != nil {
		return err
	}
	a.mu.Lock()
	a.conn, a.done, a.welcome = c, make(chan struct{}), w
	for _, k := range w.Kill {
		a.killed[k.Job] = true
		a.running = slices.DeleteFunc(a.running, func(r wire.Key) bool { return same(r, k) })
	}
	done := a.done
	a.mu.Unlock()
	beat, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if !a.Mute {
		wg.Go(func() { a.beat(beat, c, w.Heartbeat) })
	}
	go func() {
		defer close(done)
		a.read(c)
		stop()
		wg.Wait()
		_ = c.Close()
	}()
	a.t.Cleanup(a.Disconnect)
	return nil
}

func same(x, y wire.Key) bool { return x.Job == y.Job && x.Attempt == y.Attempt && x.Step == y.Step }

// Welcome is what the server said at the last connect.
func (a *Agent) Welcome() wire.Welcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.welcome
}

// Disconnect cuts the connection and waits for its goroutines.
func (a *Agent) Disconnect() {
	a.mu.Lock()
	c, done := a.conn, a.done
	a.conn = nil
	a.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
	if done != nil {
		<-done
	}
}

func (a *Agent) beat(ctx context.Context, c *wire.Conn, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = c.Send(wire.TypeHeartbeat, wire.Heartbeat{Load: 0.5, FreeMem: core.GiB, Now: core.At(time.Now())})
		}
	}
}

func (a *Agent) read(c *wire.Conn) {
	for {
		f, err := c.Next()
		if err != nil {
			return
		}
		a.take(c, f)
	}
}

func (a *Agent) take(c *wire.Conn, f wire.Frame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.announce()
	switch f.Type {
	case wire.TypePong:
		return
	case wire.TypeLogAck:
		var ack wire.LogAck
		if f.Decode(&ack) == nil {
			a.logAcks[bare(ack.Key)] = ack.Offset
		}
		return
	case wire.TypeAckExit:
		var ack wire.AckExit
		if f.Decode(&ack) == nil {
			for _, k := range ack.Keys {
				a.acked[bare(k)] = true
				a.ended = slices.DeleteFunc(a.ended, func(x wire.Exited) bool { return same(x.Key, k) })
			}
		}
		return
	case wire.TypeLaunch:
		if l, err := wire.DecodeLaunch(f); err == nil {
			a.launch(c, l)
		}
	case wire.TypeStat:
		var ask wire.Stat
		if f.Decode(&ask) == nil {
			_ = c.Send(wire.TypeUsage, a.usage(&ask))
		}
	case wire.TypeKill:
		var kill wire.Kill
		if f.Decode(&kill) == nil {
			a.killed[kill.Job] = true
		}
	case wire.TypeFinish:
		var fin wire.Finish
		if f.Decode(&fin) == nil {
			a.running = slices.DeleteFunc(a.running, func(r wire.Key) bool {
				return r.Job == fin.Job && r.Attempt == fin.Attempt
			})
			_ = c.Send(wire.TypeJobDone, wire.JobDone{Job: fin.Job, Attempt: fin.Attempt})
		}
	}
	if a.Quiet {
		return
	}
	select {
	case a.Frames <- f:
	default:
		a.t.Error("the fake agent's queue is full")
	}
}

func bare(k wire.Key) wire.Key { k.Node = ""; return k }

func (a *Agent) launch(c *wire.Conn, l *wire.Launch) {
	a.started[bare(l.Key)]++
	if slices.ContainsFunc(a.running, func(r wire.Key) bool { return same(r, l.Key) }) {
		return
	}
	if a.Auto {
		x := wire.Exited{Key: l.Key, Started: true, JobDone: true, Usage: wire.Used{UserCPU: 1000, MaxRSS: 4096}}
		a.ended = append(a.ended, x)
		_ = c.Send(wire.TypeExited, x)
		return
	}
	a.running = append(a.running, l.Key)
	_ = c.Send(wire.TypeStarted, wire.Started{Key: l.Key, PID: 1})
}

// announce wakes Await. a.mu is held.
func (a *Agent) announce() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Await waits until f, called with the agent's lock held, holds.
func (a *Agent) await(what string, f func() bool) {
	a.t.Helper()
	late := time.After(Timeout)
	for {
		a.mu.Lock()
		ok, changed := f(), a.changed
		a.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			a.t.Fatalf("%s: waiting for %s", a.Name, what)
		}
	}
}

// AwaitLaunch waits until a step of a job was launched here.
func (a *Agent) AwaitLaunch(job core.JobID, attempt int32, step string) wire.Key {
	a.t.Helper()
	k := wire.Key{Job: core.JobID(job), Attempt: attempt, Step: step}
	a.await("launch "+k.String(), func() bool { return a.started[k] > 0 })
	return k
}

// Launches counts how often a launch came.
func (a *Agent) Launches(k wire.Key) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started[bare(k)]
}

// AwaitFrame takes frames until one of a type comes.
func (a *Agent) AwaitFrame(t wire.Type) wire.Frame {
	a.t.Helper()
	late := time.After(Timeout)
	for {
		select {
		case f := <-a.Frames:
			if f.Type == t {
				return f
			}
		case <-late:
			a.t.Fatalf("%s: no frame of type %d came", a.Name, t)
		}
	}
}

// End ends a step; while the agent is not connected the end is kept, as a keeper does.
func (a *Agent) End(k wire.Key, change func(*wire.Exited)) {
	x := wire.Exited{
		Key: k, Started: true, JobDone: k.Step == wire.BatchStep,
		Usage: wire.Used{UserCPU: 2_000_000, SysCPU: 500_000, MaxRSS: 1 << 20},
	}
	if change != nil {
		change(&x)
	}
	a.mu.Lock()
	a.running = slices.DeleteFunc(a.running, func(r wire.Key) bool { return same(r, k) })
	a.ended = append(a.ended, x)
	c := a.conn
	a.mu.Unlock()
	if c != nil {
		_ = c.Send(wire.TypeExited, x) // a broken connection has it in the next hello
	}
}

// Send sends a frame of the test's own.
func (a *Agent) Send(t wire.Type, header any, payload []byte) {
	a.t.Helper()
	a.mu.Lock()
	c := a.conn
	a.mu.Unlock()
	if err := c.Send(t, header, payload); err != nil {
		a.t.Fatal(err)
	}
}

// AwaitAck waits until an end was acknowledged.
func (a *Agent) AwaitAck(k wire.Key) {
	a.t.Helper()
	a.await("acknowledgement of "+k.String(), func() bool { return a.acked[bare(k)] })
}

// AwaitLogAck waits until the log store has a log up to offset.
func (a *Agent) AwaitLogAck(k wire.Key, offset int64) {
	a.t.Helper()
	a.await("log of "+k.String(), func() bool { return a.logAcks[bare(k)] >= offset })
}

// Unacked counts ends that were not acknowledged.
func (a *Agent) Unacked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ended)
}

// Crash is Disconnect with the loss of everything the node held, and a new boot.
func (a *Agent) Crash(boot string) {
	a.Disconnect()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Boot, a.running, a.ended = boot, nil, nil
}

// Forget drops a running step without an end.
func (a *Agent) Forget(k wire.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = slices.DeleteFunc(a.running, func(r wire.Key) bool { return same(r, k) })
}

// Holds has the agent tell an end again at its next connection.
func (a *Agent) Holds(x wire.Exited) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, x)
}

// Killed reports whether the server asked for the end of a job.
func (a *Agent) Killed(k wire.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.killed[k.Job]
}

// AwaitKill waits for that.
func (a *Agent) AwaitKill(k wire.Key) {
	a.t.Helper()
	a.await("kill of "+k.String(), func() bool { return a.killed[k.Job] })
}

// AwaitLaunches waits until a launch came so many times.
func (a *Agent) AwaitLaunches(k wire.Key, n int) {
	a.t.Helper()
	a.await("another launch of "+k.String(), func() bool { return a.started[bare(k)] >= n })
}

// AwaitCut waits until the server has cut the connection.
func (a *Agent) AwaitCut() {
	a.t.Helper()
	a.mu.Lock()
	done := a.done
	a.mu.Unlock()
	select {
	case <-done:
	case <-time.After(Timeout):
		a.t.Fatalf("%s: the server does not cut the connection", a.Name)
	}
}

// Move points the agent, with the certificate it has, at another server.
func (a *Agent) Move(s *Server) { a.s = s }

// usage answers what a step uses: its one task has used 61 s of CPU and has 4 MiB of memory of 8 it had.
// a.mu is held.
func (a *Agent) usage(ask *wire.Stat) *wire.Usage {
	u := &wire.Usage{Ref: ask.Ref}
	for _, k := range a.running {
		if k.Job == ask.Job && k.Attempt == ask.Attempt && (ask.Step == "" || k.Step == ask.Step) {
			u.Found, u.RSS, u.PIDs = true, 4<<20, append(u.PIDs, 4711)
			u.Used = wire.Used{UserCPU: 61e6, MaxRSS: 8 << 20}
			u.Tasks = append(u.Tasks, wire.TaskUse{
				CPU: 61e6, RSS: 4 << 20, MaxRSS: 8 << 20, VM: 5000 << 10, MaxVM: 6001 << 10, Pages: 3, Read: 1000, Write: 200,
			})
		}
	}
	return u
}
