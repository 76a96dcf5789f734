package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/store/sqlstore"
)

// What is committed while zeros are written ahead of the log, before its end and at it, is there after a crash.
func TestCommitsBesideTheGrowerSurvive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := openEngine(filepath.Join(dir, "a.db"), usualLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	exec := func(text string, args ...any) {
		t.Helper()
		err := e.Write(t.Context(), func(x sqlstore.Tx) error {
			_, err := x.Exec(text, args...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE t (n INTEGER PRIMARY KEY, b BLOB)`)
	zeros := make([]byte, growChunk)
	const rows = 200
	for i := range rows {
		if i%20 == 10 { // as the grower does, whatever the size of the file is
			f, err := os.OpenFile(e.path+"-wal", os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(zeros[:10_000]); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		exec(`INSERT INTO t VALUES ($1, $2)`, int64(i), make([]byte, 1000*(i%30)))
	}
	for _, name := range []string{"a.db", "a.db-wal"} { // what a crash leaves
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "copy"+name[1:]), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := openEngine(filepath.Join(dir, "copy.db"), usualLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var n, bytes int64
	var check string
	err = again.Read(context.Background(), func(x sqlstore.Tx) error {
		sum := `SELECT COUNT(*), SUM(LENGTH(b)) FROM t`
		if err := x.Query(sum, nil, []any{&n, &bytes}, func() error { return nil }); err != nil {
			return err
		}
		return x.Query(`PRAGMA integrity_check`, nil, []any{&check}, func() error { return nil })
	})
	want := int64(0)
	for i := range rows {
		want += int64(1000 * (i % 30))
	}
	if err != nil || n != rows || bytes != want || check != "ok" {
		t.Errorf("%d rows of %d bytes, %s, %v", n, bytes, check, err)
	}
}

// The file is kept longer than the log by the grower, and by it alone only as far as it is to be.
func TestGrowerStaysAhead(t *testing.T) {
	t.Parallel()
	g := &grower{file: filepath.Join(t.TempDir(), "log")}
	zeros := make([]byte, growChunk)
	if more, _ := g.step(zeros, 0); more {
		t.Error("a log that is not there grew")
	}
	if err := os.WriteFile(g.file, []byte("frames"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for more := true; more; steps++ {
		more, _ = g.step(zeros, 6)
	}
	size := func() int64 {
		st, err := os.Stat(g.file)
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	if got := size(); got < 6+growAhead || got > 6+growAhead+growChunk || got != g.size.Load() {
		t.Errorf("%d bytes after %d steps, noted %d", got, steps, g.size.Load())
	}
	f, err := os.OpenFile(g.file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprint(f, "commits that were faster")
	before := size()
	if more, pause := g.step(zeros, before); more || pause != growRetry || size() != before {
		t.Errorf("zeros were written behind faster commits: %v, %v, %d bytes", more, pause, size()-before)
	}
	if more, _ := g.step(zeros, before); !more || size() != before+growChunk {
		t.Errorf("the log did not grow after a while")
	}
}
