package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// Record is a line of the journal. The journal guards against the death of the keeper, not of the machine (a machine
// that went down took its processes along, and comes back with another boot id), so a write is enough and nothing is
// synced.
type Record struct {
	T      string       `json:"t"`
	Key    *wire.Key    `json:"k,omitempty"`
	Launch *Launch      `json:"l,omitempty"`
	Exit   *wire.Exited `json:"x,omitempty"`
	Keys   []wire.Key   `json:"a,omitempty"`
	Job    *wire.JobRef `json:"j,omitempty"`
	Dir    string       `json:"d,omitempty"`
}

// Kinds of records.
const (
	KindLaunch = "L" // about to run
	KindExit   = "X" // ended
	KindAck    = "A" // forgotten
	KindTmp    = "T" // a job's temporary directory has another name than the usual
	KindDone   = "D" // a job is gone from the node
)

// Launch is what a successor must know to clean up after a step.
type Launch struct {
	At    time.Duration `json:"at"` // boottime of the launch
	Boot  string        `json:"boot"`
	Tmp   string        `json:"tmp,omitempty"`
	Log   string        `json:"log,omitempty"`
	Hooks *wire.Hooks   `json:"hooks,omitempty"` // where there is an epilog
}

// Journal is an append-only file of records, compacted when most of it is about what nobody asks for any more.
type Journal struct {
	Path string

	mu   sync.Mutex
	f    *os.File
	size int64
	buf  bytes.Buffer
	// live holds, by key, the records that still matter.
	Live map[wire.Key]*Entry
	Jobs map[wire.JobRef]*Launch // not yet gone from the node
	Bad  []error                 // lines that could not be read; the file with them is at path.bad
}

type Entry struct {
	Launch Launch
	Exit   *wire.Exited
}

const (
	smallJournal = 1 << 20  // not worth compacting
	largeJournal = 64 << 20 // compacted even if much of it lives
)

// Open reads a journal, or begins one. A torn last line, from a death in the middle of a write, counts as not written.
// What a machine's sudden end may do to a file that is never synced must not keep the node from working: lines that
// cannot be read are left out, and the whole is set aside for people.
func Open(path string) (*Journal, error) {
	j := &Journal{Path: path, Live: map[wire.Key]*Entry{}, Jobs: map[wire.JobRef]*Launch{}}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(b) {
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			break
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			j.Bad = append(j.Bad, err)
			continue
		}
		j.apply(&r)
	}
	if len(j.Bad) > 0 {
		aside := path + ".bad"
		_ = os.Remove(aside)
		if err := os.Link(path, aside); err != nil { // rewrite puts another file in its place
			j.Bad = append(j.Bad, fmt.Errorf("set the journal aside: %w", err))
		}
	}
	return j, j.rewrite()
}

func (j *Journal) apply(r *Record) {
	switch r.T {
	case KindLaunch:
		if r.Key != nil && r.Launch != nil {
			j.Live[*r.Key] = &Entry{Launch: *r.Launch}
			ref := JobOf(*r.Key)
			if j.Jobs[ref] == nil {
				j.Jobs[ref] = r.Launch
			}
		}
	case KindExit:
		if r.Exit != nil {
			e := j.Live[r.Exit.Key]
			if e == nil {
				e = &Entry{}
				j.Live[r.Exit.Key] = e
			}
			e.Exit = r.Exit
			if r.Exit.JobDone {
				delete(j.Jobs, JobOf(r.Exit.Key))
			}
		}
	case KindAck:
		for _, k := range r.Keys {
			delete(j.Live, k)
		}
	case KindTmp:
		if r.Job != nil && j.Jobs[*r.Job] != nil {
			j.Jobs[*r.Job].Tmp = r.Dir
		}
	case KindDone:
		if r.Job != nil {
			delete(j.Jobs, *r.Job)
		}
	}
}

func JobOf(k wire.Key) wire.JobRef { return wire.JobRef{Job: k.Job, Attempt: k.Attempt} }

// Add writes one record, in one write.
func (j *Journal) Add(r *Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.buf.Reset()
	if err := json.NewEncoder(&j.buf).Encode(r); err != nil {
		return err
	}
	n, err := j.f.Write(j.buf.Bytes())
	if err != nil {
		if n > 0 { // full disk: take back the torn line, or every later one would be unreadable
			_ = j.f.Truncate(j.size)
		}
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(n)
	j.apply(r)
	if j.size > smallJournal && len(j.Live) == 0 && len(j.Jobs) == 0 {
		if err := j.f.Truncate(0); err == nil {
			j.size = 0
		}
		return nil
	}
	// About 400 bytes a live record: rewrite when three quarters of the file are dead.
	if j.size > smallJournal && j.size > int64(len(j.Live)+len(j.Jobs))*1600 || j.size > largeJournal {
		return j.rewrite()
	}
	return nil
}

// rewrite replaces the file by one with only what matters.
func (j *Journal) rewrite() error {
	j.buf.Reset()
	enc := json.NewEncoder(&j.buf)
	var fault error
	put := func(r *Record) { fault = errors.Join(fault, enc.Encode(r)) }
	told := map[wire.JobRef]bool{}
	for key, e := range j.Live {
		l := e.Launch
		if rec := j.Jobs[JobOf(key)]; rec != nil {
			l.Tmp, l.Hooks = rec.Tmp, rec.Hooks
		}
		told[JobOf(key)] = true
		put(&Record{T: KindLaunch, Key: &key, Launch: &l})
		if e.Exit != nil {
			put(&Record{T: KindExit, Exit: e.Exit})
		}
	}
	for ref := range told { // the launch has made the job known again
		if j.Jobs[ref] == nil {
			put(&Record{T: KindDone, Job: &ref})
		}
	}
	for ref, rec := range j.Jobs {
		if !told[ref] { // all its steps are acknowledged, but it is still here
			key := wire.Key{Job: ref.Job, Attempt: ref.Attempt}
			put(&Record{T: KindLaunch, Key: &key, Launch: rec})
			put(&Record{T: KindAck, Keys: []wire.Key{key}})
		}
	}
	if fault != nil {
		return fault
	}
	tmp := j.Path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(j.buf.Bytes())
	if err == nil {
		err = os.Rename(tmp, j.Path)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("rewrite journal in %s: %w", filepath.Dir(j.Path), err)
	}
	if j.f != nil {
		j.f.Close()
	}
	j.f, j.size = f, int64(n)
	return nil
}

// Close ends writing.
func (j *Journal) Close() error { return j.f.Close() }
