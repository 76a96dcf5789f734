package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/store/sqlite"
)

// countIn counts a text in the database's files.
func countIn(t *testing.T, s *servertest.Server, text string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, "db", "bireme.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database: %v %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(data, []byte(text))
	}
	return n
}

// awaitSealed waits until everything is under one key. Sealing makes no events, so it asks again and again.
func awaitSealed(t *testing.T, s *servertest.Server, key int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var seals client.Seals
		s.Must("GET", "/api/v1/seals", nil, &seals)
		if seals.Done && seals.Key == key && len(seals.Keys) == 1 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not everything is under key %d: %+v", key, seals)
		case <-tick.C:
		}
	}
}

// TestStoreIsSealed: scripts, environments, configurations and keys lie sealed, before, during and after rotations of
// the key, with and without a server.
func TestStoreIsSealed(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, _, _, _ := people(s)
	const marker = "MARKER-1d7c0a55"
	key := sshKey(t)
	s.Submit(func(in *client.Submit) {
		in.Script, in.Env = "#!/bin/sh\n# script "+marker, []string{"TOKEN=" + marker}
		in.Run, in.Config = "secret-run", "env: {TOKEN: "+marker+"}"
	})
	s.Must("PUT", "/api/v1/fleets/lab", &client.FleetSpec{
		Keys: map[string]string{"k": key}, Env: []string{"AGENT_TOKEN=" + marker},
		Hosts: []client.FleetHostSpec{{SSHLogin: client.SSHLogin{Hostname: "127.0.0.1", Port: 1, User: "root", Key: "k"}}},
	}, nil)
	body := strings.Split(key, "\n")[1]
	check := func(when string) {
		t.Helper()
		for _, text := range []string{marker, body, base64.StdEncoding.EncodeToString([]byte(marker))[:16]} {
			if n := countIn(t, s, text); n > 0 {
				t.Fatalf("%s: %q lies in the database %d times", when, text, n)
			}
		}
	}
	readable := func(when string) {
		t.Helper()
		var env []byte
		s.Must("GET", "/api/v1/jobs/1/env", nil, &env)
		if !strings.Contains(string(env), marker) {
			t.Fatalf("%s: the environment is %q", when, env)
		}
		var f client.Fleet
		s.Await(when+": the host is tried with its key", func() bool {
			s.Must("GET", "/api/v1/fleets/lab", nil, &f)
			return strings.Contains(f.Instances[0].Cause, "refuses connections")
		})
	}
	awaitSealed(t, s, 1)
	check("at first")
	if status, err := s.Call("POST", "/api/v1/seals/rotate", ann, nil, nil); status != 403 || err == nil {
		t.Fatalf("ann rotates: %d %v", status, err)
	}
	if status, err := s.Call("GET", "/api/v1/seals", ann, nil, nil); status != 403 || err == nil {
		t.Fatalf("ann looks: %d %v", status, err)
	}
	s.Must("POST", "/api/v1/seals/rotate", nil, nil)
	awaitSealed(t, s, 2)
	readable("after a rotation")
	check("after a rotation")
	s.Stop()
	check("stopped")

	if _, err := server.RotateSeals(context.Background(), s.Cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	check("after a rotation without a server")
	ring, err := seal.Open(s.Cfg.SealKey(), false)
	if err != nil || ring.Current() != 3 || len(ring.IDs()) != 1 {
		t.Fatalf("%v %v", ring, err)
	}
	s.Start()
	awaitSealed(t, s, 3)
	readable("after a restart")
	s.Stop()

	// The file of before the rotation does not open the store, and the message says which key is missing.
	other := filepath.Join(t.TempDir(), "other")
	if _, err := seal.Open(other, true); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Cfg.SealKey(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	err = s.Try()
	if err == nil || !strings.Contains(err.Error(), "does not have key 3") {
		t.Fatalf("with another ring: %v", err)
	}
}

// TestOlderStoreIsSealed: what an earlier version left unsealed is sealed by the first start, and nothing of it stays
// in the files.
func TestOlderStoreIsSealed(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	if err := os.MkdirAll(filepath.Join(s.Dir, "db"), 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(t.Context(), filepath.Join(s.Dir, "db", "bireme.db"))
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := st.Lead(t.Context(), "old", 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= 200; seq++ {
		data := []byte(strings.Repeat("OLD-MARKER-77e1 ", 1000))
		data = append(data, byte(seq))
		err := st.Commit(t.Context(), epoch, &core.Changes{
			Now: core.Time(seq), NextJob: 1, NextNode: 1,
			Events: []core.Event{{Seq: seq, At: core.Time(seq), Kind: core.NodeChanged}},
			Blobs:  []core.Blob{{Hash: core.Hash{byte(seq), 1}, Data: data}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	before := countIn(t, s, "OLD-MARKER-77e1")
	if before < 100_000 {
		t.Fatalf("the old store has the text %d times", before)
	}
	s.Start()
	awaitSealed(t, s, 1)
	// A page that was once written may keep a remnant in a part that is not used, until the database is written again.
	if left := countIn(t, s, "OLD-MARKER-77e1"); left > before/100 {
		t.Fatalf("of %d %d are left", before, left)
	}
	s.Stop()
	if _, err := server.RotateSeals(t.Context(), s.Cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if left := countIn(t, s, "OLD-MARKER-77e1"); left > 0 {
		t.Fatalf("%d are left after a rotation without a server", left)
	}
	s.Start()
	awaitSealed(t, s, 2)
}
