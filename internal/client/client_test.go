package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

// insecure makes of a test server's address one that a client takes.
func insecure(url string) string { return strings.Replace(url, "http://", insecureScheme+"://", 1) }

func noWait(context.Context, time.Duration) error { return nil }

func fail(w http.ResponseWriter, status int, code core.Code) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(ErrorBody{Error: core.Error{Code: code, Message: "no"}})
}

func testClient(t *testing.T, servers ...string) *Client {
	t.Helper()
	c, err := New(Settings{Servers: servers, Token: "secret", Timeout: time.Minute}, WithSleep(noWait))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWaitingIsToldOnce(t *testing.T) {
	t.Parallel()
	tries, told := 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries < 20 {
			fail(w, 503, core.Unavailable)
			return
		}
		json.NewEncoder(w).Encode(Whoami{User: "ann"})
	}))
	defer srv.Close()
	c, err := New(Settings{Servers: []string{insecure(srv.URL)}, Timeout: time.Hour}, WithSleep(noWait),
		WithNotice(func(err error, left time.Duration) {
			if told++; core.CodeOf(err) != core.Unavailable || left <= 0 || tries < 3 {
				t.Errorf("told %v after %d tries, %v are left", err, tries, left)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Whoami(t.Context()); err != nil || told != 1 {
		t.Errorf("got %v, told %d times", err, told)
	}
}

func TestSubmitIsSentAgainUnderTheSameKey(t *testing.T) {
	t.Parallel()
	var got []Submit
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var s Submit
		json.NewDecoder(r.Body).Decode(&s)
		got = append(got, s)
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("no token: %v", r.Header)
		}
		switch len(got) {
		case 1:
			fail(w, 429, core.Exhausted)
		case 2:
			fail(w, 503, core.Unavailable)
		case 3: // the answer is lost
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		default:
			json.NewEncoder(w).Encode(Submitted{ID: 7})
		}
	}))
	defer srv.Close()
	out, err := testClient(t, insecure(srv.URL)).Submit(t.Context(), &Submit{Script: "#!/bin/sh\n"})
	if err != nil || out.ID != 7 {
		t.Fatalf("got %v, %v", out, err)
	}
	var retry []bool
	for _, s := range got {
		if s.Key == "" || s.Key != got[0].Key {
			t.Errorf("key %q differs from %q", s.Key, got[0].Key)
		}
		retry = append(retry, s.Retry)
	}
	if d := cmp.Diff([]bool{false, false, true, true}, retry); d != "" {
		t.Errorf("retry marks (-want +got)\n%s", d)
	}
}

func TestStepIsNotSentAgainWhenItMayHaveBeenReceived(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			fail(w, 429, core.Exhausted)
			return
		}
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	}))
	defer srv.Close()
	_, err := testClient(t, insecure(srv.URL)).NewStep(t.Context(), "1", &NewStep{})
	if !Unreachable(err) || calls.Load() != 2 {
		t.Fatalf("%d calls, %v", calls.Load(), err)
	}
}

func TestEndpointsAreTriedInTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"user":"alice","uid":5}`))
		})}}
	srv.Start()
	defer srv.Close()
	c := testClient(t, "http+insecure://127.0.0.1:1", "unix:"+filepath.Join(dir, "s"))
	for range 2 {
		who, err := c.Whoami(t.Context())
		if err != nil || who.User != "alice" {
			t.Fatalf("got %v, %v", who, err)
		}
	}
	if c.current.Load() != 1 {
		t.Errorf("it does not stay with the endpoint that answers: %d", c.current.Load())
	}
}

func TestErrorsKeepCodeAndReason(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/jobs/9" {
			w.WriteHeader(404)
			json.NewEncoder(w).Encode(ErrorBody{Error: core.Error{
				Code: core.NotFound, Reason: "invalid_job_id",
				Message: "there is no job 9",
			}})
			return
		}
		http.Error(w, "go away", http.StatusForbidden)
	}))
	defer srv.Close()
	c := testClient(t, insecure(srv.URL))
	_, err := c.Job(t.Context(), "9")
	if core.CodeOf(err) != core.NotFound || core.ReasonOf(err) != "invalid_job_id" || err.Error() != "there is no job 9" {
		t.Errorf("got %#v", err)
	}
	if _, err = c.Cluster(t.Context()); core.CodeOf(err) != core.Denied || err.Error() != "go away" {
		t.Errorf("got %#v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	c := testClient(t, "unix:"+filepath.Join(t.TempDir(), "no", "such.sock"))
	tries := 0
	c.sleep = func(context.Context, time.Duration) error { tries++; return errors.New("stop") }
	_, err := c.Cluster(t.Context())
	if !Unreachable(err) || core.CodeOf(err) != core.Unavailable || tries != 0 {
		t.Fatalf("after %d waits: %v", tries, err)
	}
	c.set.Servers, c.ends = nil, nil
	e, _ := newEndpoint("unix:"+filepath.Join(t.TempDir(), "gone.sock"), "")
	c.ends = []*endpoint{e} // the directory is there: the server may be starting
	if _, err = c.Cluster(t.Context()); !Unreachable(err) || tries != 1 {
		t.Fatalf("after %d waits: %v", tries, err)
	}
}

func TestTLSNeedsTheCA(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{}`))
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	_, err := testClient(t, insecure(srv.URL)).Cluster(t.Context())
	if core.ReasonOf(err) != ReasonUntrusted {
		t.Errorf("without a CA: %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600)
	c, err := New(Settings{Servers: []string{insecure(srv.URL)}, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cluster(t.Context()); err != nil {
		t.Errorf("with the CA: %v", err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") != "4" {
			t.Errorf("after = %q", r.FormValue("after"))
		}
		w.Write([]byte(": hello\n\nid: 5\nevent: job.started\ndata: {\"seq\":5,\"kind\":\"job.started\",\"job\":3}\n" +
			"\nid: 6\ndata: {\"seq\":6,\"kind\":\"job.ended\",\"job\":3}\n\n"))
	}))
	defer srv.Close()
	var seqs []int64
	done := errors.New("done")
	err := testClient(t, insecure(srv.URL)).Watch(t.Context(), 4, func(e *core.Event) error {
		seqs = append(seqs, e.Seq)
		if e.Kind == core.JobEnded {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) || len(seqs) != 2 {
		t.Fatalf("got %v, %v", seqs, err)
	}
}

func TestStreamUpgrades(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "bireme-stream" || r.URL.Path != "/api/v1/streams/k1" {
			t.Errorf("got %s %v", r.URL.Path, r.Header)
		}
		conn, rw, _ := w.(http.Hijacker).Hijack()
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bireme-stream\r\n\r\nhello")
		rw.Flush()
		b := make([]byte, 2)
		rw.Read(b)
		rw.Write(b)
		rw.Flush()
	}))
	defer srv.Close()
	s, err := testClient(t, insecure(srv.URL)).Stream(t.Context(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := make([]byte, 5)
	if _, err := s.Read(b); err != nil || string(b) != "hello" {
		t.Fatalf("got %q, %v", b, err)
	}
	s.Write([]byte("ok"))
	if n, _ := s.Read(b); string(b[:n]) != "ok" {
		t.Fatalf("got %q", b[:n])
	}
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yml")
	os.WriteFile(file, []byte("# mine\nserver:\n  - https://a:6817 # first\n  - 'https://b:6817'\n"+
		"ca: \"/etc/ca.pem\"\ntoken: abc\nproject: main\nother:\n  server: no\n"), 0o600)
	for _, key := range []string{"BIREME_SERVER", "BIREME_CA", "BIREME_TOKEN", "BIREME_PROJECT", "BIREME_TIMEOUT"} {
		t.Setenv(key, "")
	}
	t.Setenv("BIREME_CONFIG", file)
	got, err := SettingsFromEnv()
	want := Settings{
		Servers: []string{"https://a:6817", "https://b:6817"}, CA: "/etc/ca.pem", Token: "abc",
		Project: "main", Timeout: DefaultTimeout,
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("file: %v (-want +got)\n%s", err, d)
	}
	t.Setenv("BIREME_SERVER", "unix:/run/a folder/x.sock, https://h:1")
	t.Setenv("BIREME_TIMEOUT", "1500ms")
	got, err = SettingsFromEnv()
	want = Settings{
		Servers: []string{"unix:/run/a folder/x.sock", "https://h:1"}, Project: "main",
		Timeout: 1500 * time.Millisecond,
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("environment: %v (-want +got)\n%s", err, d)
	}
	t.Setenv("BIREME_TIMEOUT", "soon")
	if _, err := SettingsFromEnv(); err == nil {
		t.Error("a bad timeout is accepted")
	}
	if _, err := New(Settings{Servers: []string{"ftp://x"}}); err == nil {
		t.Error("a bad server is accepted")
	}
}

// A long history comes in pages, and the caller sees one list.
func TestJobsFollowPages(t *testing.T) {
	t.Parallel()
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("after")+"/"+q.Get("limit"))
		switch q.Get("after") {
		case "":
			fmt.Fprint(w, `{"jobs":[{"id":1},{"id":2}],"seq":7,"more":true}`)
		case "2":
			fmt.Fprint(w, `{"jobs":[{"id":3},{"id":5}],"seq":9,"more":true}`)
		default:
			fmt.Fprint(w, `{"jobs":[{"id":6}],"seq":9}`)
		}
	}))
	defer srv.Close()
	c := testClient(t, insecure(srv.URL))
	full, err := c.Jobs(t.Context(), JobsQuery{History: true})
	if err != nil || len(full.Jobs) != 5 || full.Jobs[4].ID != 6 || full.Seq != 7 || full.More {
		t.Errorf("full: %+v, %v", full, err)
	}
	brief, err := c.Briefs(t.Context(), JobsQuery{History: true, Limit: 4})
	if err != nil || len(brief.Jobs) != 4 || brief.Jobs[3].ID != 5 {
		t.Errorf("brief: %+v, %v", brief, err)
	}
	if want := []string{"/", "2/", "5/", "/4", "2/2"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// A job whose cancel met a store that was away is asked for again, alone; the others are done.
func TestCancelAsksAgainForWhatWasUnavailable(t *testing.T) {
	t.Parallel()
	var asked [][]string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in Cancel
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		asked = append(asked, in.IDs)
		out := Cancelled{}
		for _, id := range in.IDs {
			res := CancelResult{ID: id}
			if id == "2" && len(asked) == 1 {
				res.Error = core.Errorf(core.Unavailable, "the store is away")
			}
			out.Results = append(out.Results, res)
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	defer srv.Close()
	out, err := testClient(t, insecure(srv.URL)).Cancel(t.Context(), &Cancel{IDs: []string{"1", "2", "3"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"1", "2", "3"}, {"2"}}; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	for _, r := range out.Results {
		if r.Error != nil {
			t.Errorf("job %s: %v", r.ID, r.Error)
		}
	}
	if len(out.Results) != 3 {
		t.Errorf("%d answers", len(out.Results))
	}
}
