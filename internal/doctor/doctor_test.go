package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Each fact has its level, and what is not well says what to do.
func TestFindings(t *testing.T) {
	t.Parallel()
	well := Store{
		Name:   "db",
		Schema: 12,
		Known:  12,
		Shared: true,
		Holder: "a:/x:1",
		Left:   time.Second,
		Clock:  now,
		Read:   now,
	}
	store := func(change func(*Store)) func(*Report) {
		return func(r *Report) {
			s := well
			change(&s)
			r.Store(s)
		}
	}
	node := func(change func(*client.Node)) func(*Report) {
		return func(r *Report) {
			n := client.Node{Connected: true, State: "IDLE", LastHeard: core.At(now.Add(-time.Hour))}
			n.Name, n.Host.Version = "n1", "1.0"
			change(&n)
			r.Nodes([]client.Node{n}, "1.0", now)
		}
	}
	tests := map[string]struct {
		do    func(*Report)
		level Level
		says  string
	}{
		"store":             {store(func(*Store) {}), OK, "a leads"},
		"damaged":           {store(func(s *Store) { s.Faults = []string{"page 7"} }), Fail, "biremed restore"},
		"newer schema":      {store(func(s *Store) { s.Schema, s.Oldest = 13, 13 }), Fail, "knows up to 12"},
		"newer additions":   {store(func(s *Store) { s.Schema, s.Oldest = 13, 12 }), Warn, "may write"},
		"older schema":      {store(func(s *Store) { s.Schema = 11 }), Warn, "brings it to 12"},
		"empty store":       {store(func(s *Store) { s.Schema = 0 }), Warn, "no server has used it"},
		"nobody leads":      {store(func(s *Store) { s.Left = -time.Hour }), Fail, "ended 1h0m0s ago"},
		"one server's file": {store(func(s *Store) { s.Left, s.Shared = -time.Hour, false }), OK, "no damage"},
		"database's clock":  {store(func(s *Store) { s.Clock = now.Add(time.Hour) }), Fail, "off by 1h0m0s"},
		"clock a bit off":   {store(func(s *Store) { s.Clock = now.Add(-3 * time.Second) }), Warn, "NTP"},
		"disk":              {func(r *Report) { r.Disk("/d", 10<<30, 1<<30) }, OK, "10.0 GiB"},
		"disk low":          {func(r *Report) { r.Disk("/d", 2<<30, 1<<30) }, Warn, "make room soon"},
		"disk full":         {func(r *Report) { r.Disk("/d", 5<<20, 1<<30) }, Fail, "5 MiB"},
		"CA ended": {
			func(r *Report) { r.Certificate("CA", now.Add(-72*time.Hour), now, false, "ca rotate") }, Fail, "3 days ago",
		},
		"CA ends": {
			func(r *Report) { r.Certificate("CA", now.Add(720*time.Hour), now, false, "ca rotate") },
			Warn,
			"ca rotate",
		},
		"node's certificate": {
			func(r *Report) { r.Certificate("it", now.Add(480*time.Hour), now, true, "") }, OK, "2026-03-21",
		},
		"node":      {node(func(*client.Node) {}), OK, "1 connected, 0 not"},
		"node away": {node(func(n *client.Node) { n.Connected = false }), Fail, "last heard of 1h0m0s ago"},
		"node sleeps": {
			node(func(n *client.Node) { n.Connected, n.State = false, "IDLE+POWERED_DOWN" }),
			OK,
			"0 connected",
		},
		"node's version": {node(func(n *client.Node) { n.Host.Version = "0.9" }), Warn, "restart its agent"},
		"node's clock":   {node(func(n *client.Node) { n.Skew = -3600 }), Fail, "node n1 is off"},
		"no nodes":       {func(r *Report) { r.Nodes(nil, "1.0", now) }, Warn, "setup --nodes"},
		"read-only":      {func(r *Report) { r.Server(&client.Cluster{ReadOnly: "disk full"}, "") }, Fail, "disk full"},
		"old server": {
			func(r *Report) { r.Server(&client.Cluster{Version: "1"}, "2") },
			Warn,
			"1 runs, 2 is installed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Report
			tc.do(&r)
			var text, data strings.Builder
			if err := r.Write(&text, false); err != nil {
				t.Fatal(err)
			}
			if r.Worst() != tc.level || !strings.Contains(text.String(), tc.says) {
				t.Errorf("%s, want %s with %q:\n%s", r.Worst(), tc.level, tc.says, text.String())
			}
			for _, f := range r.Findings {
				if f.Level == Fail && f.Remedy == "" {
					t.Errorf("%s says not what to do", f.Check)
				}
			}
			if err := r.Write(&data, true); err != nil || !json.Valid([]byte(data.String())) {
				t.Errorf("as JSON: %v\n%s", err, data.String())
			}
		})
	}
}

// What a node says cannot reach the terminal.
func TestControlCharacters(t *testing.T) {
	t.Parallel()
	var r Report
	n := client.Node{Connected: true, Warning: "\x1b[2Jhello"}
	r.Nodes([]client.Node{n}, "", now)
	var text strings.Builder
	if err := r.Write(&text, false); err != nil || strings.Contains(text.String(), "\x1b") {
		t.Errorf("%q, %v", text.String(), err)
	}
}
