// Package files lays out the files that come with a run of processes, with the rights of its user, and removes them
// when the run has left the node.
//
// What a job got is in a record, a file of its own, which is written before anything is made: it outlives the keeper. A
// file that a later job found in its place and uses, too, is left to that job when the first ends.
package files

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

// Owner is whom the files belong to.
type Owner struct {
	Identity wire.Identity `json:"identity"`
	Groups   []uint32      `json:"groups,omitempty"`
}

// As runs a function with the rights of a user to files.
type As func(o Owner, f func() error) error

// Records are those of one keeper.
type Records struct {
	dir string
	as  As

	n atomic.Int32 // of the records, so that jobs without files cost nothing

	mu    sync.Mutex
	users map[uint32]*sync.Mutex // one user's jobs do not lay out and remove at the same time
}

// Open gives the records in a folder, which is made when it is needed.
func Open(dir string, as As) *Records {
	r := &Records{dir: dir, as: as, users: map[uint32]*sync.Mutex{}}
	left, _ := os.ReadDir(dir) // without one there are none
	r.n.Store(int32(len(left)))
	return r
}

func (r *Records) lock(uid uint32) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[uid] == nil {
		r.users[uid] = new(sync.Mutex)
	}
	return r.users[uid]
}

func (r *Records) path(ref wire.JobRef) string {
	return filepath.Join(r.dir, strconv.FormatInt(int64(ref.Job), 10)+"."+strconv.Itoa(int(ref.Attempt)))
}

// Lay lays out a parcel for a job, whatever is relative below home, and gives the folder that it is below. Where
// something else is in the way there, that is a folder of the job's own.
func (r *Records) Lay(ref wire.JobRef, o Owner, data []byte, home string) (string, error) {
	user := r.lock(o.Identity.UID)
	user.Lock()
	defer user.Unlock()
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return "", err
	}
	own := filepath.Join(home, ownFolder, filepath.Base(r.path(ref)))
	f, err := os.OpenFile(r.path(ref), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // an earlier step of the job did it
		rec, err := read(r.path(ref))
		if err != nil {
			return "", err
		}
		if _, there := rec.paths[own]; there {
			return own, nil
		}
		return home, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	r.n.Add(1)
	head, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	if _, err := f.Write(append(head, '\n')); err != nil {
		return "", err
	}
	lay := func(dir string) error {
		say := func(n parcel.Note, path string) error { return note(f, n, path) }
		return r.as(o, func() error { return parcel.Lay(data, dir, home, say) })
	}
	err = lay(home)
	if errors.Is(err, parcel.ErrDiffers) {
		if ferr := r.forget(f, ref, o); ferr != nil {
			return "", fmt.Errorf("files: %w", ferr)
		}
		if lay(own) == nil {
			return own, nil
		} // else it is not one of the relative files
	}
	if err != nil {
		return "", fmt.Errorf("files: %w", err)
	}
	return home, nil
}

// ownFolder is the folder of a home that has those of jobs.
const ownFolder = ".bireme-files"

// forget removes what a job made so far, and says so in its record.
func (r *Records) forget(f io.Writer, ref wire.JobRef, o Owner) error {
	rec, err := read(r.path(ref))
	if err != nil {
		return err
	}
	var made []string
	for name, own := range rec.paths {
		if own {
			made = append(made, name)
		}
	}
	err = r.as(o, func() error { return parcel.Remove(made) })
	for _, name := range made {
		err = errors.Join(err, note(f, parcel.Other, name))
	}
	return err
}

// Variable names the folder that a run's relative files are below.
const Variable = "BIREME_FILES_DIR"

// StartDir is where the script of a run starts: the home that its environment names, else the user's; the job's
// temporary folder where that is missing.
func StartDir(env []string, home string) string {
	tmp := "/tmp"
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		} else if v, ok := strings.CutPrefix(e, "TMPDIR="); ok {
			tmp = v
		}
	}
	if st, err := os.Stat(home); err != nil || !st.IsDir() {
		return tmp
	}
	return home
}

// note adds a line to a record.
func note(w io.Writer, n parcel.Note, path string) error {
	_, err := io.WriteString(w, string(n)+strconv.Quote(path)+"\n")
	return err
}

// record is what a job has: true for what it made.
type record struct {
	Owner
	paths map[string]bool
}

func read(path string) (*record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	rec := &record{paths: map[string]bool{}}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &rec.Owner) != nil {
		return rec, lines.Err() // it died before it made anything
	}
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			continue
		}
		name, err := strconv.Unquote(line[1:])
		if err != nil { // cut off: nothing was made after it
			break
		}
		switch parcel.Note(line[0]) {
		case parcel.Made:
			rec.paths[name] = true
		case parcel.Found:
			if _, known := rec.paths[name]; !known {
				rec.paths[name] = false
			}
		case parcel.Other:
			delete(rec.paths, name)
		}
	}
	return rec, lines.Err()
}

// Remove removes what a job made; without a record there is nothing.
func (r *Records) Remove(ref wire.JobRef) error {
	if r.n.Load() == 0 {
		return nil
	}
	return r.remove(r.path(ref))
}

func (r *Records) remove(path string) error {
	rec, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	user := r.lock(rec.Identity.UID)
	user.Lock()
	defer user.Unlock()
	if rec, err = read(path); err != nil { // another job of the user may have left it something since
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	r.n.Add(-1)
	made := map[string]bool{}
	for name, own := range rec.paths {
		if own {
			made[name] = true
		}
	}
	if err := r.leave(rec.Identity.UID, made); err != nil {
		return err
	}
	list := make([]string, 0, len(made))
	for name := range made {
		list = append(list, name)
	}
	return r.as(rec.Owner, func() error { return parcel.Remove(list) })
}

// leave leaves what other jobs of the user use to them.
func (r *Records) leave(uid uint32, made map[string]bool) error {
	if len(made) == 0 {
		return nil
	}
	others, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	for _, e := range others {
		path := filepath.Join(r.dir, e.Name())
		rec, err := read(path)
		if err != nil || rec.Identity.UID != uid {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		for name := range rec.paths {
			if made[name] {
				err = errors.Join(err, note(f, parcel.Made, name))
				delete(made, name)
			}
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// RemoveAll removes what is left of all jobs, whose keeper died. It waits until ctx ends: a home on a file server that
// does not answer holds up nobody but later jobs of its user that bring files, which wait for their turn.
func (r *Records) RemoveAll(ctx context.Context) error {
	list, err := os.ReadDir(r.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	type end struct {
		job string
		err error
	}
	ends := make(chan end, len(list))
	left := map[string]bool{}
	for _, e := range list {
		left[e.Name()] = true
		go func() { ends <- end{e.Name(), r.remove(filepath.Join(r.dir, e.Name()))} }()
	}
	var faults []error
	for len(left) > 0 {
		select {
		case e := <-ends:
			delete(left, e.job)
			if e.err != nil {
				faults = append(faults, fmt.Errorf("files of job %s: %w", e.job, e.err))
			}
		case <-ctx.Done():
			jobs := strings.Join(slices.Sorted(maps.Keys(left)), ", ")
			return errors.Join(append(faults, fmt.Errorf("files of jobs %s are still being removed", jobs))...)
		}
	}
	return errors.Join(faults...)
}
