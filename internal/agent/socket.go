package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/local"
)

// PeerHeader carries the kernel's word for who calls. The server believes it from a node's certificate only, and the
// socket below sets it itself: what a caller sends is dropped.
const PeerHeader = "Bireme-Peer"

// agentsOwn are calls of the users' API that agents make for their nodes: with them a user would get the node's certificate.
var agentsOwn = []string{"/api/v1/join", "/api/v1/renew"}

// localSocket passes calls of the node's users on to the server.
type localSocket struct {
	path  string
	proxy *httputil.ReverseProxy
	idle  func() // closes connections to servers that nobody uses
	log   *slog.Logger
}

func newLocalSocket(path string, up *uplink, log *slog.Logger) *localSocket {
	s := &localSocket{path: path, log: log}
	transport := &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, _, err := up.dial(ctx)
			return c, err
		},
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
		// Commands of Slurm's users send compressed bodies as they are; nothing is unpacked on the way.
		DisableCompression: true,
	}
	s.idle = transport.CloseIdleConnections
	target := &url.URL{Scheme: "https", Host: "bireme"} // a name for the pool of connections: DialTLSContext chooses
	s.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = "bireme"
			peer := r.In.Context().Value(peerKey{}).(*unix.Ucred) // ServeHTTP has seen to it
			r.Out.Header.Set(PeerHeader, fmt.Sprintf("%d:%d:%s", peer.Uid, peer.Gid, userName(peer.Uid)))
		},
		Transport:     transport,
		FlushInterval: -1, // logs and events are passed on as they come
		ErrorHandler:  s.away,
	}
	return s
}

// ServeHTTP passes calls to the users' API on, and nothing else: a call goes out under the node's certificate, which
// opens the agents' side of the server, too. A call of which nobody knows whose it is would look like the agent's own.
func (s *localSocket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := r.URL.Path; path.Clean(p) != p || !strings.HasPrefix(p, "/api/v1/") || slices.Contains(agentsOwn, p) {
		refuse(w, http.StatusNotFound, core.Errorf(core.NotFound, "there is no %s %s on a node's socket", r.Method, p))
		return
	}
	if _, ok := r.Context().Value(peerKey{}).(*unix.Ucred); !ok {
		refuse(w, http.StatusUnauthorized, core.Errorf(core.Unknown, "the kernel does not say who calls").Because("no_identity"))
		return
	}
	s.proxy.ServeHTTP(w, r)
}

// away answers for a server that does not.
func (s *localSocket) away(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the caller left
	}
	s.log.Debug("call not passed on", "path", r.URL.Path, "err", err)
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusServiceUnavailable, core.Errorf(core.Unavailable, "this node's agent cannot reach the server"))
}

// refuse answers in the server's place.
func refuse(w http.ResponseWriter, status int, err *core.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := struct {
		Error *core.Error `json:"error"`
	}{err}
	_ = json.NewEncoder(w).Encode(body) // the caller may have left
}

type peerKey struct{}

// listen opens the socket to everybody.
func (s *localSocket) listen() (net.Listener, error) { return local.Listen(s.path, 0o666) }

// serve answers on l until ctx ends.
func (s *localSocket) serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if peer, err := peerOf(c); err == nil {
				return context.WithValue(ctx, peerKey{}, peer)
			}
			return ctx // ServeHTTP refuses what comes by it
		},
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	defer s.idle()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func peerOf(c net.Conn) (*unix.Ucred, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	return cred, credErr
}

// userName gives the name of a uid as the header carries it, or "".
func userName(uid uint32) string {
	u, err := account.ByUID(uid)
	if err != nil || strings.ContainsAny(u.Name, ":\r\n") {
		return ""
	}
	return u.Name
}
