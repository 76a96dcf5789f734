package step

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

// record is a line of the journal. The journal guards against the death of the keeper, not of the machine (a machine that
// went down took its processes along, and comes back with another boot id), so a write is enough and nothing is synced.
type record struct {
	T      string        `json:"t"`
	Key    *wire.Key     `json:"k,omitempty"`
	Launch *launchRecord `json:"l,omitempty"`
	Exit   *wire.Exited  `json:"x,omitempty"`
	Keys   []wire.Key    `json:"a,omitempty"`
	Job    *wire.JobRef  `json:"j,omitempty"`
	Dir    string        `json:"d,omitempty"`
}

// Kinds of records.
const (
	recLaunch = "L" // about to run
	recExit   = "X" // ended
	recAck    = "A" // forgotten
	recTmp    = "T" // a job's temporary directory has another name than the usual
	recDone   = "D" // a job is gone from the node
)

// launchRecord is what a successor must know to clean up after a step.
type launchRecord struct {
	At    time.Duration `json:"at"` // boottime of the launch
	Boot  string        `json:"boot"`
	Tmp   string        `json:"tmp,omitempty"`
	Log   string        `json:"log,omitempty"`
	Hooks *wire.Hooks   `json:"hooks,omitempty"` // where there is an epilog
}

// journal is an append-only file of records, compacted when most of it is about what nobody asks for any more.
type journal struct {
	path string

	mu   sync.Mutex
	f    *os.File
	size int64
	buf  bytes.Buffer
	// live holds, by key, the records that still matter.
	live map[wire.Key]*entry
	jobs map[wire.JobRef]*launchRecord // not yet gone from the node
	bad  []error                       // lines that could not be read; the file with them is at path.bad
}

type entry struct {
	launch launchRecord
	exit   *wire.Exited
}

const (
	smallJournal = 1 << 20  // not worth compacting
	largeJournal = 64 << 20 // compacted even if much of it lives
)

// openJournal reads a journal, or begins one. A torn last line, from a death in the middle of a write, counts as not written.
// What a machine's sudden end may do to a file that is never synced must not keep the node from working: lines that cannot be
// read are left out, and the whole is set aside for people.
func openJournal(path string) (*journal, error) {
	j := &journal{path: path, live: map[wire.Key]*entry{}, jobs: map[wire.JobRef]*launchRecord{}}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(b) {
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			break
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			j.bad = append(j.bad, err)
			continue
		}
		j.apply(&r)
	}
	if len(j.bad) > 0 {
		aside := path + ".bad"
		_ = os.Remove(aside)
		if err := os.Link(path, aside); err != nil { // rewrite puts another file in its place
			j.bad = append(j.bad, fmt.Errorf("set the journal aside: %w", err))
		}
	}
	return j, j.rewrite()
}

func (j *journal) apply(r *record) {
	switch r.T {
	case recLaunch:
		if r.Key != nil && r.Launch != nil {
			j.live[*r.Key] = &entry{launch: *r.Launch}
			ref := jobOf(*r.Key)
			if j.jobs[ref] == nil {
				j.jobs[ref] = r.Launch
			}
		}
	case recExit:
		if r.Exit != nil {
			e := j.live[r.Exit.Key]
			if e == nil {
				e = &entry{}
				j.live[r.Exit.Key] = e
			}
			e.exit = r.Exit
			if r.Exit.JobDone {
				delete(j.jobs, jobOf(r.Exit.Key))
			}
		}
	case recAck:
		for _, k := range r.Keys {
			delete(j.live, k)
		}
	case recTmp:
		if r.Job != nil && j.jobs[*r.Job] != nil {
			j.jobs[*r.Job].Tmp = r.Dir
		}
	case recDone:
		if r.Job != nil {
			delete(j.jobs, *r.Job)
		}
	}
}

func jobOf(k wire.Key) wire.JobRef { return wire.JobRef{Job: k.Job, Attempt: k.Attempt} }

// add writes one record, in one write.
func (j *journal) add(r *record) error {
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
	if j.size > smallJournal && len(j.live) == 0 && len(j.jobs) == 0 {
		if err := j.f.Truncate(0); err == nil {
			j.size = 0
		}
		return nil
	}
	// About 400 bytes a live record: rewrite when three quarters of the file are dead.
	if j.size > smallJournal && j.size > int64(len(j.live)+len(j.jobs))*1600 || j.size > largeJournal {
		return j.rewrite()
	}
	return nil
}

// rewrite replaces the file by one with only what matters.
func (j *journal) rewrite() error {
	j.buf.Reset()
	enc := json.NewEncoder(&j.buf)
	var fault error
	put := func(r *record) { fault = errors.Join(fault, enc.Encode(r)) }
	told := map[wire.JobRef]bool{}
	for key, e := range j.live {
		l := e.launch
		if rec := j.jobs[jobOf(key)]; rec != nil {
			l.Tmp, l.Hooks = rec.Tmp, rec.Hooks
		}
		told[jobOf(key)] = true
		put(&record{T: recLaunch, Key: &key, Launch: &l})
		if e.exit != nil {
			put(&record{T: recExit, Exit: e.exit})
		}
	}
	for ref := range told { // the launch has made the job known again
		if j.jobs[ref] == nil {
			put(&record{T: recDone, Job: &ref})
		}
	}
	for ref, rec := range j.jobs {
		if !told[ref] { // all its steps are acknowledged, but it is still here
			key := wire.Key{Job: ref.Job, Attempt: ref.Attempt}
			put(&record{T: recLaunch, Key: &key, Launch: rec})
			put(&record{T: recAck, Keys: []wire.Key{key}})
		}
	}
	if fault != nil {
		return fault
	}
	tmp := j.path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(j.buf.Bytes())
	if err == nil {
		err = os.Rename(tmp, j.path)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("rewrite journal in %s: %w", filepath.Dir(j.path), err)
	}
	if j.f != nil {
		j.f.Close()
	}
	j.f, j.size = f, int64(n)
	return nil
}

// Close ends writing.
func (j *journal) Close() error { return j.f.Close() }
