package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/limit"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/open"
	"bireme.dev/bireme/internal/wire/local"
)

// openStore opens the store of a URL.
func openStore(ctx context.Context, url string) (store.Store, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		if err := os.MkdirAll(filepath.Dir(strings.TrimPrefix(path, "//")), 0o700); err != nil {
			return nil, err
		}
	}
	return open.Store(ctx, url)
}

// openDoors listens on the unix socket, for the API and for agents.
func (s *server) openDoors() (doors []*door, err error) {
	defer func() {
		if err != nil {
			for _, d := range doors {
				_ = d.l.Close() // the error that stopped us is the one to tell
			}
		}
	}()
	cfg := s.Config
	// Who calls is known from the kernel, so everybody may.
	l, err := s.ports.lend("socket", func() (net.Listener, error) { return local.Listen(cfg.Socket(), 0o666) })
	if err != nil {
		return nil, err
	}
	doors = append(doors, s.newDoor("socket", l, nil))
	conf := s.authority.TLS(s.certNames)
	s.tunnels = s.newDoor("tunnels", nil, conf)
	if cfg.Server.Listen != "" {
		if l, err = s.ports.tcp("api", cfg.Server.Listen); err != nil {
			return doors, core.Errorf(core.Unavailable, "the API's door: %v", err)
		}
		c := conf
		if cfg.Server.PlainHTTP { // of a listener on loopback only, the settings have seen to that
			c = nil
		}
		doors = append(doors, s.newDoor("api", l, c))
	}
	if cfg.Server.AgentListen != "" {
		if l, err = s.ports.tcp("agents", cfg.Server.AgentListen); err != nil {
			return doors, core.Errorf(core.Unavailable, "the agents' door: %v", err)
		}
		doors = append(doors, s.newDoor("agents", l, conf))
	}
	if d, err := s.openDstackDoor(); err != nil {
		return doors, err
	} else if d != nil {
		doors = append(doors, d)
	}
	return doors, nil
}

func (s *server) newDoor(kind string, l net.Listener, conf *tls.Config) *door {
	return &door{kind: kind, l: l, tls: conf != nil, http: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		WriteTimeout:      2 * time.Minute, // api renews it with each write
		MaxHeaderBytes:    64 << 10,
		TLSConfig:         conf,
		// no HTTP/2: streams take connections over
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if in, ok := c.(*insideConn); ok {
				ctx = context.WithValue(ctx, call.KeyUser{}, in.user)
			}
			return limit.WithConn(call.ConnContext(ctx, c), c)
		},
		ConnState: s.countConn,
		ErrorLog:  slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}}
}

// countConn counts connections and closes those over a limit. net/http calls it before it reads from a new one.
func (s *server) countConn(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
	case http.StateHijacked, http.StateClosed: // a stream is counted as one
		s.conns.Remove(c)
		return
	default:
		return
	}
	if _, ok := c.(*insideConn); ok {
		return // the SSH listener has counted who is at its other end
	}
	limits := &s.live.Load().Limits
	if uid, ok := call.PeerUID(c); ok {
		if uid != 0 && int(uid) != os.Geteuid() && !s.conns.AddUser(c, uid, int(limits.Connections)) {
			s.refuseConn(c, fmt.Sprintf("uid %d has %d connections open, the most there may be (limits.connections "+
				"in the server's settings)", uid, limits.Connections))
		}
		return
	}
	if _, unix := c.RemoteAddr().(*net.UnixAddr); unix {
		return
	}
	cut, ok := s.conns.AddAddress(c, limit.Address(c.RemoteAddr().String()), int(limits.UnknownConnections), time.Now())
	if cut != nil {
		_ = cut.Close() // its caller has had time to say who they are
	}
	if !ok {
		_ = c.Close() // likewise: nobody is known to be there who could be told
	}
}

// refuseConn tells a caller why the connection ends.
func (s *server) refuseConn(c net.Conn, why string) {
	body, err := json.Marshal(
		client.ErrorBody{Error: *core.Errorf(core.Exhausted, "%s", why).Because("limit_connections")})
	if err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"+
			"Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	}
	_ = c.Close() // whether it was told or not
}

// certNames are the names and addresses the server may be reached under.
func (s *server) certNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
		if short, _, dotted := strings.Cut(host, "."); dotted {
			names = append(names, short)
		}
	}
	names = append(names, s.Config.Server.Names...)
	for _, a := range append([]string{s.Config.Server.Listen, s.Config.Server.AgentListen}, s.Config.Server.Advertise...) {
		if host, _, err := net.SplitHostPort(a); err == nil && host != "" && host != "0.0.0.0" && host != "::" {
			names = append(names, host)
		}
	}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
				names = append(names, ip.IP.String())
			}
		}
	}
	return names
}

func (s *server) door(kind string) *door {
	for _, d := range s.doors {
		if d.kind == kind {
			return d
		}
	}
	return nil
}

// agentServers is what agents are told to dial.
func (s *server) agentServers() []string {
	if a := s.Config.Server.Advertise; len(a) > 0 {
		return a
	}
	list := s.members.addresses()
	if addr := s.agentAddr(); addr != "" {
		list = append([]string{addr}, list...)
	}
	return list
}

// agentAddr is the agents' door under a name other machines can use.
func (s *server) agentAddr() string {
	if d := s.door("agents"); d != nil {
		return d.address()
	}
	return ""
}

// address is where other machines reach a door.
func (d *door) address() string {
	host, port, err := net.SplitHostPort(d.l.Addr().String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}

func (s *server) info() Info {
	i := Info{Agents: s.agentAddr(), Dstack: s.door("dstack").url(), Socket: s.Config.Socket(), CAFile: s.Config.CAFile()}
	if s.sshListener != nil {
		i.SSH = s.sshListener.Addr().String()
	}
	if d := s.door("api"); d != nil {
		scheme := "http+insecure://"
		if d.tls {
			scheme = "https://"
		}
		i.API = scheme + d.l.Addr().String()
	}
	return i
}
