// Package socket serves a node's local socket: it passes calls of the node's users on to the server, each with the
// uid and gid that the kernel reports for the caller.
package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/local"
)

// PeerHeader carries the kernel's record of the caller. The server accepts it from a node's certificate only. The
// socket sets it itself and drops what a caller sends.
const PeerHeader = "Bireme-Peer"

// agentsOwn are calls of the users' API that agents make for their nodes: with them a user would get the node's
// certificate.
var agentsOwn = []string{"/api/v1/join", "/api/v1/renew"}

// Deadlines of a call, as the server has them for its own sockets.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = time.Minute
	writeTimeout  = 30 * time.Second // for each write
	bodyTimeout   = 30 * time.Second // for each read of a body
	maxHeader     = 64 << 10
)

// Socket passes calls of the node's users on to the server.
type Socket struct {
	path      string
	conns     conns
	proxy     *httputil.ReverseProxy
	closeIdle func() // closes unused connections to servers
	log       *slog.Logger
}

// New makes a socket at path. dial connects to a server with the node's certificate.
func New(path string, dial func(ctx context.Context) (net.Conn, error), log *slog.Logger) *Socket {
	s := &Socket{path: path, log: log}
	s.conns.init()
	transport := &http.Transport{
		DialTLSContext:      func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
		// Commands of Slurm's users send compressed bodies as they are; nothing is unpacked on the way.
		DisableCompression: true,
	}
	s.closeIdle = transport.CloseIdleConnections
	target := &url.URL{Scheme: "https", Host: "bireme"} // a name for the pool of connections: DialTLSContext chooses
	s.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = "bireme"
			peer := r.In.Context().Value(peerKey{}).(*unix.Ucred) // ServeHTTP has checked it
			r.Out.Header.Set(PeerHeader, fmt.Sprintf("%d:%d:%s", peer.Uid, peer.Gid, userName(peer.Uid)))
		},
		Transport:     transport,
		FlushInterval: -1, // logs and events are passed on as they come
		ErrorHandler:  s.serverAway,
	}
	return s
}

// SetLimit bounds the connections that one user has open; 0 means no bound but the node's own.
func (s *Socket) SetLimit(perUser int64) { s.conns.perUser.Store(perUser) }

// ServeHTTP passes calls to the users' API on, and nothing else: a call goes out under the node's certificate, which
// opens the agents' side of the server, too. A call without a known caller would look like the agent's own.
func (s *Socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := r.URL.Path; path.Clean(p) != p || !strings.HasPrefix(p, "/api/v1/") || slices.Contains(agentsOwn, p) {
		refuse(w, http.StatusNotFound, core.Errorf(core.NotFound, "there is no %s %s on a node's socket", r.Method, p))
		return
	}
	if _, ok := r.Context().Value(peerKey{}).(*unix.Ucred); !ok {
		refuse(w, http.StatusUnauthorized, core.Errorf(core.Unknown, "the kernel does not say who calls").Because(
			"no_identity"))
		return
	}
	out := &timedWriter{w}
	if r.Body != nil && r.Body != http.NoBody {
		body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
		defer body.end() // the transport may read on for a moment
		r.Body = body
	}
	s.proxy.ServeHTTP(out, r)
}

// serverAway answers for a server that does not.
func (s *Socket) serverAway(w http.ResponseWriter, r *http.Request, err error) {
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
	_ = json.NewEncoder(w).Encode(errorBody{err}) // the caller may have left
}

type errorBody struct {
	Error *core.Error `json:"error"`
}

type peerKey struct{}

// Listen opens the socket to everybody.
func (s *Socket) Listen() (net.Listener, error) {
	l, err := local.Listen(s.path, 0o666)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, conns: &s.conns}, nil
}

// Serve answers on l until ctx ends.
func (s *Socket) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if c, ok := c.(*conn); ok && c.peer != nil {
				return context.WithValue(ctx, peerKey{}, c.peer)
			}
			return ctx // ServeHTTP refuses what comes by it
		},
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	defer s.closeIdle()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// timedWriter gives the caller writeTimeout to take each write: a caller who does not read holds no connection to the
// server for longer.
type timedWriter struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) extend() {
	// A writer without deadlines is one of a test.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
}

func (w *timedWriter) Write(b []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(b)
}

// FlushError sends what is buffered.
func (w *timedWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack takes the connection over, without deadlines: a stream may be silent for long.
func (w *timedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// timedBody gives the caller bodyTimeout for each read of a body. At its end the deadline goes: net/http reads on, to
// see the caller leave.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController

	mu    sync.Mutex
	ended bool // the connection belongs to the next call
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.deadline(time.Now().Add(bodyTimeout))
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.deadline(time.Time{})
	}
	return n, err
}

func (b *timedBody) deadline(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		_ = b.control.SetReadDeadline(at) // as in extend
	}
}

func (b *timedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// userName returns the name of a uid as the header carries it, or "".
func userName(uid uint32) string {
	u, err := account.ByUID(uid)
	if err != nil || strings.ContainsAny(u.Name, ":\r\n") {
		return ""
	}
	return u.Name
}
