package server

import (
	"log/slog"
	"os"
	"testing"
)

// A database that lacks events which this server has seen is an older copy: ids continue at the mark. Any other one
// knows its next id itself.
func TestJobMark(t *testing.T) {
	m := newJobMark(t.TempDir(), slog.New(slog.DiscardHandler))
	if n := m.least(0); n != 0 {
		t.Errorf("without a mark the least id is %d", n)
	}
	m.write(markFile{Seq: 100, NextJob: 57})
	again := newJobMark(t.TempDir(), m.log) // another life of the server
	again.path = m.path
	for seq, want := range map[int64]int64{0: 57, 99: 57, 100: 0, 101: 0} {
		if n := again.least(seq); int64(n) != want {
			t.Errorf("over a database with %d events the least id is %d, want %d", seq, n, want)
		}
	}
	if err := os.WriteFile(m.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := again.least(0); n != 0 {
		t.Errorf("with half a mark the least id is %d", n)
	}
}
