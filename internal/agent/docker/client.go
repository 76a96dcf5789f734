package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"bireme.dev/bireme/internal/core"
)

// Sockets are where engines listen, in the order they are looked for: Docker, then Podman's service.
var Sockets = []string{"/var/run/docker.sock", "/run/podman/podman.sock"}

// Socket is the first of them that is there; Docker's where none is.
func Socket() string {
	for _, s := range Sockets {
		if st, err := os.Stat(s); err == nil && st.Mode()&os.ModeSocket != 0 {
			return s
		}
	}
	return Sockets[0]
}

// Client calls one engine.
type Client struct {
	socket string
	http   *http.Client
	info   atomic.Pointer[Info] // what the engine once said of itself
}

// New makes a client; nothing is dialled yet.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{
		socket: socket,
		http:   &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 4}},
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is what an engine answered instead of doing it.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Is makes an answer of 404 a missing thing for errors.Is.
func (e *Error) Is(target error) bool {
	return target == os.ErrNotExist && e.Status == http.StatusNotFound
}

func isStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// call makes one call. in goes out as JSON unless it is nil; the answer is read into out unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	r, err := c.open(ctx, method, path, nil, in)
	if err != nil {
		return err
	}
	defer r.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, r)
		return err
	}
	if err := json.NewDecoder(r).Decode(out); err != nil {
		return fmt.Errorf("answer of the container engine to %s: %w", path, err)
	}
	_, err = io.Copy(io.Discard, r) // to its end, so that the connection is used again
	return err
}

// open makes a call whose answer is a stream.
func (c *Client) open(ctx context.Context, method, path string, header http.Header, in any) (io.ReadCloser, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.away(err)
	}
	if resp.StatusCode < 300 || resp.StatusCode == http.StatusNotModified {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is all there is to tell
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &m) != nil || m.Message == "" {
		m.Message = strings.TrimSpace(string(text))
	}
	if m.Message == "" {
		m.Message = resp.Status
	}
	return nil, &Error{Status: resp.StatusCode, Message: m.Message}
}

// away words what it means that the engine does not answer.
func (c *Client) away(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return &core.Error{Code: core.Unavailable, Message: "no container engine listens on " + c.socket, Err: err}
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return &core.Error{Code: core.Denied, Message: "the container engine's socket " + c.socket +
			" may not be used by this agent", Err: err}
	}
	return &core.Error{Code: core.Unavailable, Message: "the container engine on " + c.socket + " broke off", Err: err}
}

// Away reports whether an error means that the engine is not there at the moment.
func Away(err error) bool { return core.CodeOf(err) == core.Unavailable }
