// Package uplink connects a node's agent to the cluster: the servers are tried in turn, the one that took the agent
// last first.
package uplink

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/direct"
)

// Uplink dials the servers: all replicas are tried in turn, the one that answered last first.
type Uplink struct {
	tls func() *tls.Config

	mu      sync.Mutex
	servers []string
	good    int // index of the one that answered last
}

// New makes one for servers; settings are those of a connection, as they are when it is made.
func New(settings func() *tls.Config, servers []string) *Uplink {
	u := &Uplink{tls: settings}
	u.Learn(servers)
	return u
}

// Learn takes the list of replicas a server told, behind those given by hand.
func (u *Uplink) Learn(servers []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range servers {
		if s = URL(s); !slices.Contains(u.servers, s) {
			u.servers = append(u.servers, s)
		}
	}
}

// URL accepts HOST:PORT for https://HOST:PORT. unix:PATH is a socket that somebody carries to a server.
func URL(s string) string {
	if !strings.Contains(s, "://") && !strings.HasPrefix(s, unixPrefix) {
		s = "https://" + s
	}
	return strings.TrimSuffix(s, "/")
}

const unixPrefix = "unix:"

// order returns the servers, the one that answered last first.
func (u *Uplink) order() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]string, 0, len(u.servers))
	list = append(list, u.servers[u.good:]...)
	return append(list, u.servers[:u.good]...)
}

func (u *Uplink) answered(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, s := range u.servers {
		if s == server {
			u.good = i
		}
	}
}

// Left has the servers behind one tried before it.
func (u *Uplink) Left(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.servers[u.good] == server {
		u.good = (u.good + 1) % len(u.servers)
	}
}

// Dial connects to any server.
func (u *Uplink) Dial(ctx context.Context) (net.Conn, string, error) {
	var last error
	for _, server := range u.order() {
		c, err := u.dialOne(ctx, server)
		if err == nil {
			u.answered(server)
			return c, server, nil
		}
		last = err
	}
	return nil, "", last
}

func (u *Uplink) dialOne(ctx context.Context, server string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(server, unixPrefix); ok {
		return u.dialTLS(ctx, server, "unix", path, "localhost")
	}
	at, err := url.Parse(server)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return nil, core.Errorf(core.Invalid, "%s: agents speak to https://HOST:PORT", server)
	}
	addr := at.Host
	if at.Port() == "" {
		addr = net.JoinHostPort(at.Hostname(), "443")
	}
	return u.dialTLS(ctx, server, "tcp", addr, at.Hostname())
}

func (u *Uplink) dialTLS(ctx context.Context, server, network, addr, name string) (net.Conn, error) {
	conf := u.tls()
	conf.ServerName = name
	away := func(err error) error {
		return &core.Error{Code: core.Unavailable, Message: "server " + server, Err: err}
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	raw, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, away(err)
	}
	c := direct.Client(raw, conf)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, away(err)
	}
	return c, nil
}

// Upgrade turns a connection to the first server that takes it into a stream of the given protocol. One that does not
// lead answers that it does not.
func (u *Uplink) Upgrade(ctx context.Context, path, protocol string) (conn net.Conn, server string, err error) {
	for _, server := range u.order() {
		var c net.Conn
		if c, err = u.dialOne(ctx, server); err != nil {
			continue
		}
		if conn, err = upgradeOn(ctx, c, server, path, protocol); err == nil {
			u.answered(server)
			return conn, server, nil
		}
	}
	return nil, "", err
}

func upgradeOn(ctx context.Context, c net.Conn, server, path, protocol string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	up, err := handshake(c, server, path, protocol)
	if err != nil {
		c.Close()
		return nil, err
	}
	return up, nil
}

func handshake(c net.Conn, server, path, protocol string) (net.Conn, error) {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	host := strings.TrimPrefix(server, "https://")
	if strings.HasPrefix(server, unixPrefix) {
		host = "localhost"
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", path, host,
		protocol); err != nil {
		return nil, err
	}
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade at %s: %w", server, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, fmt.Errorf("upgrade at %s: %w", server, Refusal(resp))
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if n := br.Buffered(); n > 0 {
		early, err := br.Peek(n)
		if err != nil {
			return nil, err
		}
		return &prefixed{Conn: c, r: io.MultiReader(strings.NewReader(string(early)), c)}, nil
	}
	return c, nil
}

// prefixed is a connection whose first bytes came with the answer to the upgrade.
type prefixed struct {
	net.Conn
	r io.Reader
}

func (p *prefixed) Read(b []byte) (int, error) { return p.r.Read(b) }

// Refusal reads the error out of an answer that is not what was hoped for.
func Refusal(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct{ Error *core.Error }
	if err == nil && json.Unmarshal(b, &body) == nil && body.Error != nil && body.Error.Code != "" {
		return body.Error
	}
	return core.Errorf(core.Unavailable, "the server answered %s", resp.Status)
}
