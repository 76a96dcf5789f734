package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// A call over a local socket is answered, is cut short when its caller gives up, and says where nobody listens.
func TestSocketCalls(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	heard, done := make(chan struct{}), make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			body, _ := io.ReadAll(r.Body)
			w.Write(body)
			return
		}
		close(heard)
		<-done
	})}
	go srv.Serve(ln)
	t.Cleanup(func() { close(done); srv.Close() })
	c, err := New(Settings{Servers: []string{"unix:" + path}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var out Release
	if err := c.do(t.Context(), call{method: "POST", path: "/x", body: Release{Exit: core.Exit{Code: 3}}},
		&out); err != nil || out.Exit.Code != 3 {
		t.Errorf("%v, %+v", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-heard; cancel() }()
	if err := c.do(ctx, call{method: "GET", path: "/x", again: always}, nil); !errors.Is(err, context.Canceled) ||
		!Unreachable(err) {
		t.Errorf("after a cancel: %v", err)
	}
	gone, err := New(Settings{Servers: []string{"unix:" + path + "/nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.do(t.Context(), call{method: "GET", path: "/x"}, nil); !errors.Is(err, syscall.ENOTDIR) ||
		!Unreachable(err) {
		t.Errorf("where nobody listens: %v", err)
	}
}
