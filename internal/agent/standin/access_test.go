package standin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

const (
	imageID = "sha256:1111"
	private = "registry.example/team/model:1"
	evil    = "evil.example/copy:1"
)

// registry is a container engine and what registries give it: one image, private by the password "right", and under the
// attacker's own name to anybody.
type registry struct {
	mu    sync.Mutex
	names []string // of the image; none: the engine does not have it
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case q.Method == http.MethodGet && q.URL.Path == "/images/json":
		list := []map[string]any{}
		if len(r.names) > 0 {
			list = append(list, map[string]any{"Id": imageID, "RepoTags": r.names})
		}
		_ = json.NewEncoder(w).Encode(list)
	case q.Method == http.MethodPost && q.URL.Path == "/images/create":
		ref := q.URL.Query().Get("fromImage") + ":" + q.URL.Query().Get("tag")
		if ref == private && q.Header.Get("X-Registry-Auth") == "" {
			http.Error(w, `{"message":"pull access denied"}`, http.StatusNotFound)
			return
		}
		r.names = append(r.names, ref)
		fmt.Fprintln(w, `{"status":"done"}`)
	case q.Method == http.MethodDelete:
		r.names = r.names[:max(0, len(r.names)-1)]
	default:
		http.Error(w, `{"message":"no"}`, http.StatusNotFound)
	}
}

// launches makes stand-ins of one node.
func launches(t *testing.T, r *registry) func(user string, uid uint32, image, password string) *standIn {
	t.Helper()
	dir, err := os.MkdirTemp("", "bireme")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: r}
	go srv.Serve(l) // until Close
	t.Cleanup(func() { srv.Close(); os.RemoveAll(dir) })
	return func(user string, uid uint32, image, password string) *standIn {
		engine := docker.New(filepath.Join(dir, "s"))
		t.Cleanup(engine.Close)
		s := &standIn{
			l: &wire.Launch{Identity: wire.Identity{Name: user, UID: uid}}, engine: engine, folder: dir,
			c: &wire.Container{Container: core.Container{Image: image}, Dir: filepath.Join(dir, "containers")},
		}
		if password != "" {
			s.auth = &docker.Auth{Username: user, Password: password}
		}
		return s
	}
}

// TestKilledPullLeavesNothingToOthers: an image that came by credentials is private, also when the stand-in that pulled
// it was killed before it could say so.
func TestKilledPullLeavesNothingToOthers(t *testing.T) {
	t.Parallel()
	launch := launches(t, &registry{})
	killed := launch("alice", 1, private, "right")
	if err := killed.pull(t.Context(), func(docker.Progress) {}); err != nil {
		t.Fatal(err)
	}
	killed.fetching.Close() // as the kernel does when it dies
	mallory := launch("mallory", 2, private, "")
	if _, err := mallory.allowed(t.Context(), imageID); err == nil || !strings.Contains(err.Error(), "is private") {
		t.Errorf("another user is told %v", err)
	}
	copied := launch("mallory", 2, evil, "")
	if err := copied.pull(t.Context(), func(docker.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if err := copied.noteAccess(t.Context(), imageID); err == nil || !strings.Contains(err.Error(), "is private") {
		t.Errorf("another user with a manifest of their own is told %v", err)
	}
	alice := launch("alice", 1, private, "right")
	if again, err := alice.allowed(t.Context(), imageID); err != nil || !again {
		t.Fatalf("its owner is told %v, %v", again, err)
	}
	if err := alice.noteAccess(t.Context(), imageID); err != nil {
		t.Fatal(err)
	}
	if err := alice.endPull(); err != nil {
		t.Fatal(err)
	}
	if again, err := launch("alice", 1, private, "right").allowed(t.Context(), imageID); err != nil || again {
		t.Errorf("its owner, again, is told %v, %v", again, err)
	}
	if _, err := launch("mallory", 2, private, "").allowed(t.Context(), imageID); err == nil {
		t.Error("another user may have it later")
	}
	left, err := filepath.Glob(filepath.Join(alice.accessDir(), pullPrefix+"*"))
	if err != nil || len(left) != 1 { // the one that was cut, for a while
		t.Errorf("notes of pulls: %v, %v", left, err)
	}
	old := time.Now().Add(-2 * pullKept)
	if err := os.Chtimes(left[0], old, old); err != nil {
		t.Fatal(err)
	}
	if err := alice.settlePulls(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left[0]); !os.IsNotExist(err) {
		t.Errorf("the note of a pull of long ago is still there: %v", err)
	}
	if _, err := launch("mallory", 2, private, "").allowed(t.Context(), imageID); err == nil {
		t.Error("another user may have it when the note is gone")
	}
}

// TestPublicImagesStayPublic: a pull with credentials that was killed takes nothing from others that they had.
func TestPublicImagesStayPublic(t *testing.T) {
	t.Parallel()
	launch := launches(t, &registry{names: []string{"docker.io/library/base:1"}})
	killed := launch("alice", 1, private, "right")
	if err := killed.pull(t.Context(), func(docker.Progress) {}); err != nil {
		t.Fatal(err)
	}
	killed.fetching.Close()
	if again, err := launch("bob", 2, "docker.io/library/base:1", "").allowed(t.Context(), imageID); err != nil || again {
		t.Errorf("a user of what was everybody's is told %v, %v", again, err)
	}
}

// TestAccessFilesWithoutARepository: a file of a version that did not write down where an image came from keeps nobody
// out who may have it, and lets nobody in who may not.
func TestAccessFilesWithoutARepository(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		user, image, password string
		uid                   uint32
		names                 []string
		ok                    bool
	}{
		{"alice", private, "right", 1, []string{private}, true},
		{"alice", private, "right", 1, []string{private, "docker.io/library/base:1"}, true}, // shown before
		{"alice", private, "newer", 1, []string{private}, true},
		{"alice", private, "newer", 1, []string{private, evil}, false},
		{"mallory", evil, "", 2, []string{private}, false},
		{"mallory", evil, "", 2, []string{private, evil}, false},
	} {
		launch := launches(t, &registry{names: tc.names})
		old := launch("alice", 1, private, "right")
		if err := os.MkdirAll(old.accessDir(), 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"proofs":{%q:"2020-01-01T00:00:00Z"}}`, old.proof())
		if err := os.WriteFile(old.accessFile(imageID), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := launch(tc.user, tc.uid, tc.image, tc.password)
		if err := s.pull(t.Context(), func(docker.Progress) {}); err != nil {
			t.Fatal(err)
		}
		err := s.noteAccess(t.Context(), imageID)
		if (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
		if a, readErr := s.accessOf(imageID); tc.ok && (readErr != nil || a == nil || a.Ref != private) {
			t.Errorf("%+v: the file is now %+v, %v", tc, a, readErr)
		}
	}
}
