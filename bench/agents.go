package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// How the server is watched while agents beat.
const (
	agentBeat   = 10 * time.Second // the default of timers.heartbeat
	agentWindow = 4 * agentBeat
)

// fakeAgent is a node without a machine: of an agent it has the certificate, the connection and the heartbeat. It is
// there so that thousands fit on one machine; what it costs itself says nothing of a real one.
type fakeAgent struct {
	name core.NodeName
	cert tls.Certificate
	conn atomic.Pointer[wire.Conn] // nil: not connected yet

	holds bool // it takes jobs, which run without end
	mu    sync.Mutex
	jobs  []wire.JobUse
}

// agents measures a server with thousands of connected nodes that have nothing to do, and one real idle agent.
func (s *suite) agents(ctx context.Context) error {
	dir, err := os.MkdirTemp(scratch, "agents-")
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(s.bin)
	if err != nil {
		return err
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server := exec.Command(filepath.Join(bin, "biremed"), "server", "--dir", filepath.Join(dir, "srv"), "--listen", "",
		"--agent-listen", addr)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	server.Stderr = log
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	sock := filepath.Join(dir, "srv", "bireme.sock")
	c, err := client.New(client.Settings{Servers: []string{"unix:" + sock}, Timeout: time.Minute})
	if err != nil {
		return err
	}
	if err := untilServing(ctx, c); err != nil {
		return err
	}
	if err := s.idleAgent(ctx, c, bin, dir, addr); err != nil {
		return err
	}
	pid := server.Process.Pid
	empty := rss(pid)
	list, pool, err := joinFakes(ctx, c, s.nodes)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	defer func() { // when nobody beats any more
		for _, a := range list {
			if c := a.conn.Load(); c != nil {
				c.Close()
			}
		}
	}()
	drum, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	defer beating.Wait()
	defer stop()
	beating.Go(func() { beatFakes(drum, list) }) // who has connected must be heard from then on
	before, _ := procCPU(pid)
	began := time.Now()
	err = connectFakes(ctx, list, pool, addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	took := time.Since(began)
	after, _ := procCPU(pid)
	n := fmt.Sprintf("%d fake agents", s.nodes)
	s.add(row{what: n + " of one server, all connect", value: fmt.Sprintf("%.1f s", took.Seconds())})
	s.add(row{
		what:  "  CPU of the server for each",
		value: fmt.Sprintf("%.2f ms", (after-before).Seconds()*1e3/float64(s.nodes)),
	})
	if err := rest(ctx, agentBeat); err != nil { // one round that is not counted
		return err
	}
	wait := s.profileSocket(sock, "agents", agentWindow)
	before, _ = procCPU(pid)
	if err := rest(ctx, agentWindow); err != nil {
		return err
	}
	after, _ = procCPU(pid)
	wait()
	s.add(row{
		what:  "  CPU of the server, a heartbeat of each every 10 s",
		value: fmt.Sprintf("%.3f of a core", (after-before).Seconds()/agentWindow.Seconds()), budget: "0.5",
	})
	s.add(row{
		what:  "  memory of the server for each, resident",
		value: fmt.Sprintf("%.1f KB", float64(rss(pid)-empty)/1e3/float64(s.nodes)),
	})
	return allHeard(ctx, c, s.nodes)
}

// freeAddr gives a loopback address nobody listens on at this moment.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func untilServing(ctx context.Context, c *client.Client) error {
	for {
		if _, err := c.Nodes(ctx); err == nil {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// idleAgent measures one real agent with its keeper that has nothing to do.
func (s *suite) idleAgent(ctx context.Context, c *client.Client, bin, dir, addr string) error {
	made, err := c.NewToken(ctx, &client.NewToken{Kind: "join", Node: "real"})
	if err != nil {
		return err
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, []byte(made.CA), 0o600); err != nil {
		return err
	}
	agent := exec.Command(filepath.Join(bin, "biremed"), "agent", "--dir", filepath.Join(dir, "real"), "--server", addr,
		"--token", made.Secret, "--ca", ca, "--node", "real")
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	agent.Stderr = log
	if err := agent.Start(); err != nil {
		return err
	}
	cl := &cluster{dir: filepath.Join(dir, "real")}
	defer func() {
		for _, pid := range cl.procs() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = agent.Wait()
	}()
	for known := false; !known; {
		list, err := c.Nodes(ctx)
		if err != nil {
			return err
		}
		known = len(list.Nodes) == 1 && list.Nodes[0].Connected
		if err := pause(ctx); err != nil {
			return err
		}
		if rss(agent.Process.Pid) == 0 {
			text, _ := os.ReadFile(log.Name()) // the better part of the message, if it can be had
			return fmt.Errorf("the agent ended: %s", text)
		}
	}
	if err := rest(ctx, agentBeat); err != nil { // what it did to start is not what it does
		return err
	}
	before := cl.cpu()
	const window = 3 * agentBeat
	if err := rest(ctx, window); err != nil {
		return err
	}
	spent := cl.cpu().sub(before)
	share := func(d time.Duration) float64 { return d.Seconds() / window.Seconds() * 100 }
	s.add(row{what: "an idle agent, CPU", value: fmt.Sprintf("%.2f %% of a core, its keeper %.2f %%",
		share(spent.agents), share(spent.keepers)), budget: "0.2 %"})
	s.add(row{what: "  resident", value: fmt.Sprintf("%.1f MB", float64(rss(agent.Process.Pid))/1e6), budget: "25 MB"})
	return nil
}

// joinFakes gives every fake agent a certificate, by a token of its own as for real ones.
func joinFakes(ctx context.Context, c *client.Client, n int) ([]*fakeAgent, *x509.CertPool, error) {
	list, pool := make([]*fakeAgent, n), x509.NewCertPool()
	var once sync.Once
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range n {
		g.Go(func() error {
			name := core.NodeName(fmt.Sprintf("fake%05d", i))
			made, err := c.NewToken(ctx, &client.NewToken{Kind: "join", Node: name})
			if err != nil {
				return err
			}
			once.Do(func() { pool.AppendCertsFromPEM([]byte(made.CA)) })
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				return err
			}
			der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
			if err != nil {
				return err
			}
			csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
			joined, err := c.Join(ctx, &client.Join{Token: made.Secret, Node: name, CSR: string(csr)})
			if err != nil {
				return err
			}
			block, _ := pem.Decode([]byte(joined.Cert))
			if block == nil {
				return fmt.Errorf("the certificate of %s is not in PEM form", name)
			}
			list[i] = &fakeAgent{name: name, cert: tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}}
			return nil
		})
	}
	return list, pool, g.Wait()
}

func connectFakes(ctx context.Context, list []*fakeAgent, pool *x509.CertPool, addr string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for _, a := range list {
		g.Go(func() error { return a.connect(ctx, pool, addr) })
	}
	return g.Wait()
}

// connect dials as an agent does: TLS with the node's certificate, an upgrade, hello and welcome.
func (a *fakeAgent) connect(ctx context.Context, pool *x509.CertPool, addr string) error {
	d := tls.Dialer{Config: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{a.cert}, ServerName: "127.0.0.1",
		MinVersion: tls.VersionTLS13,
	}}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(raw, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: bireme-agent\r\n\r\n",
		wire.PathAgent, addr); err != nil {
		return err
	}
	// The answer ends with an empty line; nothing follows before the hello.
	var answer strings.Builder
	for b := make([]byte, 1); !strings.HasSuffix(answer.String(), "\r\n\r\n"); answer.Write(b) {
		if _, err := raw.Read(b); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(answer.String(), "HTTP/1.1 101 ") {
		return fmt.Errorf("%s: %s", a.name, answer.String())
	}
	c := wire.NewSmallConn(raw)
	if err := c.Send(wire.TypeNodeHello, &wire.NodeHello{
		Protocol: wire.AgentProtocol, Version: "fake", Node: a.name, Now: core.At(time.Now()),
		Hardware: core.Hardware{CPUs: 64, Sockets: 2, Cores: 32, Threads: 1, Memory: 256 * core.GiB},
		Host:     core.Host{Hostname: string(a.name), BootID: "boot-" + string(a.name), Root: true, Containment: "cgroup-v2"},
	}); err != nil {
		return err
	}
	f, err := c.Next()
	if err != nil {
		return err
	}
	if f.Type != wire.TypeWelcome {
		return fmt.Errorf("%s: a frame of type %d for a welcome", a.name, f.Type)
	}
	a.conn.Store(c)
	go func() { // ends with the connection; pongs are what comes
		for {
			f, err := c.Next()
			if err != nil {
				return
			}
			a.take(c, f)
		}
	}()
	return nil
}

// beatFakes has every agent beat once a round, evenly spread over it, until ctx ends.
func beatFakes(ctx context.Context, list []*fakeAgent) {
	const slice = 10 * time.Millisecond
	tick := time.NewTicker(slice)
	defer tick.Stop()
	began, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := int(time.Since(began) * time.Duration(len(list)) / agentBeat); sent < due; sent++ {
			a := list[sent%len(list)]
			c := a.conn.Load()
			if c == nil {
				continue
			}
			if err := c.Send(wire.TypeHeartbeat, wire.Heartbeat{
				Load: 0.5, FreeMem: 200 * core.GiB,
				Now: core.At(time.Now()),
			}); err != nil && ctx.Err() == nil {
				progress("%s: %v", a.name, err)
			}
			a.sample(c)
		}
	}
}

// allHeard fails when the server thinks that one of the fakes is not there: then what was measured is less than was
// said.
func allHeard(ctx context.Context, c *client.Client, n int) error {
	list, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	heard := 0
	for i := range list.Nodes {
		if x := &list.Nodes[i]; x.Name != "real" && x.Connected && x.State == "IDLE" {
			heard++
		}
	}
	if heard != n {
		return fmt.Errorf("%d of %d agents are connected and idle", heard, n)
	}
	return nil
}
