package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

func key(n int) wire.Key { return wire.Key{Job: core.JobID(n), Step: wire.BatchStep} }

func launched(t *testing.T, j *Journal, n int) {
	t.Helper()
	k := key(n)
	put(t, j, &Record{T: KindLaunch, Key: &k, Launch: &Launch{Boot: "b", Tmp: fmt.Sprint("/tmp/", n)}})
}

func put(t *testing.T, j *Journal, r *Record) {
	t.Helper()
	if err := j.Add(r); err != nil {
		t.Fatal(err)
	}
}

// state is what a journal says, in comparable form.
func state(j *Journal) map[string]string {
	m := map[string]string{}
	for k, e := range j.Live {
		m[k.String()] = "running"
		if e.Exit != nil {
			m[k.String()] = fmt.Sprint("exit ", e.Exit.ExitCode)
		}
	}
	for ref, rec := range j.Jobs {
		m[fmt.Sprint("job ", ref.Job)] = rec.Tmp
	}
	return m
}

func reopen(t *testing.T, j *Journal) *Journal {
	t.Helper()
	j.Close()
	again, err := Open(j.Path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestJournalRemembers(t *testing.T) {
	t.Parallel()
	j, err := Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		launched(t, j, n)
	}
	put(t, j, &Record{T: KindTmp, Job: &wire.JobRef{Job: 1}, Dir: "/tmp/other"})
	put(t, j, &Record{T: KindExit, Exit: &wire.Exited{Key: key(2), ExitCode: 7, JobDone: true}})
	put(t, j, &Record{T: KindExit, Exit: &wire.Exited{Key: key(3), ExitCode: 8}})
	put(t, j, &Record{T: KindExit, Exit: &wire.Exited{Key: key(4), JobDone: true}})
	put(t, j, &Record{T: KindExit, Exit: &wire.Exited{Key: key(5)}})
	put(t, j, &Record{T: KindAck, Keys: []wire.Key{key(4), key(5)}}) // 5 has ended, its job has not
	want := map[string]string{
		"1.0.batch": "running", "job 1": "/tmp/other", "2.0.batch": "exit 7", "3.0.batch": "exit 8", "job 3": "/tmp/3",
		"job 5": "/tmp/5",
	}
	for range 3 { // reading rewrites it, which must change nothing
		if diff := cmp.Diff(want, state(j)); diff != "" {
			t.Fatal(diff)
		}
		j = reopen(t, j)
	}
}

func TestJournalForgetsATornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	launched(t, j, 1)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"t":"X","x":{"key":{"jo`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	j = reopen(t, j)
	launched(t, j, 2)
	if got := len(reopen(t, j).Live); got != 2 {
		t.Errorf("%d launches", got)
	}
}

func TestJournalSkipsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	launched(t, j, 1)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x00\x00\x00\x00\n{\"t\":\"X\",\"x\":7}\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	launched(t, j, 2)
	j = reopen(t, j)
	if len(j.Bad) != 2 {
		t.Errorf("%d bad lines: %v", len(j.Bad), j.Bad)
	}
	want := map[string]string{"1.0.batch": "running", "job 1": "/tmp/1", "2.0.batch": "running", "job 2": "/tmp/2"}
	if diff := cmp.Diff(want, state(j)); diff != "" {
		t.Error(diff)
	}
	if b, err := os.ReadFile(path + ".bad"); err != nil || !strings.Contains(string(b), "\x00") {
		t.Errorf("set aside: %q %v", b, err)
	}
	if j = reopen(t, j); len(j.Bad) != 0 || len(j.Live) != 2 {
		t.Errorf("the next time: %v, %d launches", j.Bad, len(j.Live))
	}
}

func TestJournalStaysSmall(t *testing.T) {
	t.Parallel()
	j, err := Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	launched(t, j, 1) // one that lives through it all
	for n := 2; n < 20000; n++ {
		launched(t, j, n)
		put(t, j, &Record{T: KindExit, Exit: &wire.Exited{Key: key(n), JobDone: true}})
		put(t, j, &Record{T: KindAck, Keys: []wire.Key{key(n)}})
	}
	if j.size > 2*smallJournal {
		t.Errorf("%d bytes for one running job", j.size)
	}
	if diff := cmp.Diff(map[string]string{"1.0.batch": "running", "job 1": "/tmp/1"}, state(reopen(t, j))); diff != "" {
		t.Error(diff)
	}
}
