package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"bireme": func() {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
			code := Real("1.2.3", []string{"sbatch", "squeue"}, func() map[string]string {
				return map[string]string{"sbatch": ".TH SBATCH 1\n"}
			}).Run(ctx, os.Args[1:])
			stop()
			os.Exit(code)
		},
	})
}

// TestScripts runs each script of testdata/script against a server of its own that answers from the script's files.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			s := &canned{dir: e.WorkDir, count: map[string]int{}}
			h := httptest.NewServer(s)
			e.Defer(h.Close)
			url := strings.Replace(h.URL, "http://", "http+insecure://", 1)
			e.Setenv("BIREME_SERVER", url)
			e.Setenv("BIREME_TIMEOUT", "300ms")
			e.Setenv("TZ", "UTC")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("URL", url)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// waitfor FILE TEXT: blocks until the file holds the text.
			"waitfor": func(ts *testscript.TestScript, _ bool, args []string) {
				deadline := time.After(10 * time.Second)
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for {
					if data, _ := os.ReadFile(ts.MkAbs(args[0])); strings.Contains(string(data), args[1]) {
						return
					}
					select {
					case <-deadline:
						ts.Fatalf("%s never held %q", args[0], args[1])
					case <-tick.C:
					}
				}
			},
			// status N COMMAND…: the command ends with exit status N.
			"status": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				code := 0
				var exit interface{ ExitCode() int }
				if errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if fmt.Sprint(code) != args[0] {
					ts.Fatalf("exit status %d, want %s", code, args[0])
				}
			},
		},
	})
}

// canned is a server whose answers are files: api/GET_jobs_12 answers GET /api/v1/jobs/12; with api/GET_jobs_12.1, .2,
// … the n-th request gets the n-th, and the last one forever. A first line "HTTP 409" sets the status, "HANG" keeps
// the answer open until the caller leaves. What was asked is written to the file requests. What has no file is not
// found.
type canned struct {
	dir   string
	mu    sync.Mutex
	count map[string]int
}

func (s *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/v1"), "/")
	line := strings.TrimSpace(fmt.Sprintf("%s /%s %s %s", r.Method, path, r.URL.RawQuery, bytes.TrimSpace(body)))
	if f, err := os.OpenFile(filepath.Join(s.dir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
		fmt.Fprintln(f, line)
		f.Close()
	}
	if auth := r.Header.Get("Authorization"); auth == "Bearer bad" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"code":"unknown_user","message":"the token is not known"}}`)
		return
	}
	name := filepath.Join(s.dir, "api", r.Method+"_"+strings.ReplaceAll(path, "/", "_"))
	data, err := os.ReadFile(name)
	for ; err != nil && s.count[name] >= 0; s.count[name]-- { // the n-th, or the last there is
		if data, err = os.ReadFile(fmt.Sprintf("%s.%d", name, s.count[name]+1)); err == nil {
			break
		}
	}
	s.count[name]++
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":{"code":"not_found","message":"there is no /%s"}}`, path)
		return
	}
	if first, rest, ok := bytes.Cut(data, []byte("\n")); ok && bytes.HasPrefix(first, []byte("HTTP ")) {
		var status int
		fmt.Sscanf(string(first), "HTTP %d", &status)
		w.WriteHeader(status)
		data = rest
	}
	rest, hang := bytes.CutPrefix(data, []byte("HANG\n"))
	w.Write(rest)
	if hang {
		s.mu.Unlock()
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		s.mu.Lock()
	}
}

// TestCtrlCAtAQuestion: it ends the program at once with 130, whatever waits for an answer, and nothing is done.
func TestCtrlCAtAQuestion(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			posts.Add(1)
		}
		fmt.Fprint(w, `{"jobs":[{"id":7,"spec_id":7,"attempt":1,"state":"RUNNING","submit":1}]}`)
	}))
	defer h.Close()
	never, typing := io.Pipe()
	defer typing.Close()
	signals := make(chan os.Signal, 1)
	var said bytes.Buffer
	a := &App{
		App: app.App{
			In: never, Out: io.Discard, Err: &said, Terminal: true, Now: time.Now,
			Connect: func() (*client.Client, error) {
				return client.New(client.Settings{
					Servers: []string{strings.Replace(h.URL, "http://", "http+insecure://", 1)}, Timeout: time.Second,
				})
			},
			Interrupts: func() (<-chan os.Signal, func()) { return signals, func() {} },
		},
	}
	signals <- os.Interrupt
	if code := a.Run(t.Context(), []string{"stop", "7", "8"}); code != app.ExitInterrupted {
		t.Errorf("exit status %d: %s", code, said.String())
	}
	if posts.Load() != 0 || strings.Count(said.String(), "y/N") != 1 {
		t.Errorf("%d calls that change something; it said %q", posts.Load(), said.String())
	}
}
