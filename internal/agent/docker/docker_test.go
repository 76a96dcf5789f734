package docker

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string][3]string{
		"ubuntu":                {"ubuntu", "latest", "https://index.docker.io/v1/"},
		"ubuntu:24.04":          {"ubuntu", "24.04", "https://index.docker.io/v1/"},
		"org/app:1":             {"org/app", "1", "https://index.docker.io/v1/"},
		"host:5000/app":         {"host:5000/app", "latest", "host:5000"},
		"ghcr.io/o/app:2":       {"ghcr.io/o/app", "2", "ghcr.io"},
		"localhost/app":         {"localhost/app", "latest", "localhost"},
		"ghcr.io/app@sha256:ab": {"ghcr.io/app", "sha256:ab", "ghcr.io"},
	} {
		name, tag := split(ref)
		if got := [3]string{name, tag, registryOf(ref)}; got != want {
			t.Errorf("%s: %v, want %v", ref, got, want)
		}
	}
}

// TestFollow reads what Docker 20.10 told of a pull of two layers.
func TestFollow(t *testing.T) {
	t.Parallel()
	const told = `{"status":"Pulling from team/box","id":"2"}
{"status":"Pulling fs layer","progressDetail":{},"id":"a"}
{"status":"Pulling fs layer","progressDetail":{},"id":"b"}
{"status":"Already exists","progressDetail":{},"id":"c"}
{"status":"Downloading","progressDetail":{"current":10,"total":100},"id":"a"}
{"status":"Downloading","progressDetail":{"current":5,"total":50},"id":"b"}
{"status":"Download complete","progressDetail":{},"id":"a"}
{"status":"Extracting","progressDetail":{"current":60,"total":100},"id":"a"}
{"status":"Pull complete","progressDetail":{},"id":"a"}
{"status":"Status: Downloaded newer image"}
`
	var got []Progress
	if err := follow(strings.NewReader(told), func(p Progress) { got = append(got, p) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Progress{
		{},
		{Done: 10, Total: 100},
		{Done: 15, Total: 150, Final: true},
		{Done: 105, Total: 150, Final: true},
		{Done: 105, Total: 150, Extracted: 60, Final: true},
		{Done: 105, Total: 150, Extracted: 100, Final: true},
	}, got); diff != "" {
		t.Error(diff)
	}
	if err := follow(strings.NewReader(`{"error":"manifest unknown"}`), nil); err == nil ||
		err.Error() != "manifest unknown" {
		t.Errorf("an error in the stream: %v", err)
	}
}

// engine serves answers on a socket.
func engine(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handle}
	go srv.Serve(l) // until Close
	c := New(socket)
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

func TestCreateReplacesItsNamesake(t *testing.T) {
	t.Parallel()
	var calls []string
	there := true
	c := engine(t, func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.Path)
		switch {
		case r.Method == http.MethodDelete:
			there = false
		case there:
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"message":"Conflict. The container name is already in use"}`))
		default:
			_, _ = w.Write([]byte(`{"Id":"abc"}`))
		}
	})
	id, err := c.Create(t.Context(), "n", &Spec{})
	if id != "abc" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if diff := cmp.Diff([]string{"POST /containers/create", "DELETE /containers/n", "POST /containers/create"},
		calls); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	c := engine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"No such image: x"}`))
	})
	if _, err := c.Create(t.Context(), "n", &Spec{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing image: %v", err)
	}
	if err := c.Remove(t.Context(), "n"); err != nil {
		t.Errorf("what is not there is removed: %v", err)
	}
	_, err := New(filepath.Join(t.TempDir(), "none")).Info(t.Context())
	if !Away(err) || core.CodeOf(err) != core.Unavailable ||
		!strings.Contains(err.Error(), "no container engine listens on") {
		t.Errorf("no engine: %v", err)
	}
	for text, want := range map[string]string{
		"unauthorized: authentication required": "refused user me",
		"manifest for x not found":              "there is no such image",
	} {
		if err := pullError("x", &Auth{Username: "me", Password: "hidden"}, &Error{500, text}); !strings.Contains(
			err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
