package server_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// The database of the build before scripts were sealed and keys pinned, recorded while its server was killed: one job
// has failed, one runs, an array has one task that runs and three that wait, one is held, one depends on the one that
// runs.
const (
	recordedKey   = "ee15048a467a07064df5b4aa67fcfb253c77735cfee9f4e31361e275a19bca89\n"
	recordedToken = "bm_ApkS_DKNTBdgdhe3U0B_QFbGP5jqkJ9vBLYbvRcQUME"
)

// recorded makes a server that is to start on the recorded database.
func recorded(t *testing.T) *servertest.Server {
	t.Helper()
	s := servertest.New(t, "retention.jobs=0", "retention.events=0", "retention.tokens=0")
	packed, err := os.Open("testdata/recorded.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"db/bireme.db": string(data), "seal.key": recordedKey} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestTakesOverRecordedDatabase: jobs, what waits for what, nodes, tokens and the authority of an older build are
// there, what it stored in clear is sealed, and a second start finds the same.
func TestTakesOverRecordedDatabase(t *testing.T) {
	t.Parallel()
	s := recorded(t)
	s.Start()
	check := func(when string) {
		t.Helper()
		for id, want := range map[string]core.JobState{
			"1": core.Failed, "2": core.Running, "3_0": core.Running, "3_3": core.Pending, "5": core.Pending, "6": core.Pending,
		} {
			var list client.JobList
			s.Must("GET", "/api/v1/jobs/"+id, nil, &list)
			if len(list.Jobs) == 0 || list.Jobs[0].State != want {
				t.Errorf("%s: job %s is %+v, want %s", when, id, list.Jobs, want)
			}
		}
		var env, script []byte
		s.Must("GET", "/api/v1/jobs/1/env", nil, &env)
		s.Must("GET", "/api/v1/jobs/6/script", nil, &script)
		if !strings.Contains(string(env), "SECRET=of-the-job") || !strings.Contains(string(script), "echo dep") {
			t.Errorf("%s: environment %q, script %q", when, env, script)
		}
		if state := nodeState(s, "n1"); state == "" {
			t.Errorf("%s: the node has no state", when)
		}
		if status, err := s.Call("GET", "/api/v1/jobs/2/env", recordedToken, nil, nil); status != 200 {
			t.Errorf("%s: the token gets %d %v", when, status, err)
		}
	}
	check("at first")
	awaitSealed(t, s, 1)
	s.Stop()
	s.Start()
	check("after another start")
}
