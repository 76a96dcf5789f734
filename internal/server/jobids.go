package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/store"
)

// When an older copy of the database is put back, the ids of jobs that came after it must not be given out again: nodes
// may still run those jobs, and users have written their ids down. The server keeps beside the database how far it has
// seen it. It does not do so in the database, which would forget it too, and does not rely on nodes, which may be away.
const (
	jobMarkFile  = "job-ids"
	jobMarkEvery = 5 * time.Second
	// jobMarkAhead is more than the ids that can be given out between two writes of the mark.
	jobMarkAhead = 100_000
)

// jobMark is how far a server has seen its database.
type jobMark struct {
	path string
	log  *slog.Logger
	told bool // that it cannot be written
	last markFile
}

type markFile struct {
	Seq     int64      `json:"seq"`      // of the last event
	NextJob core.JobID `json:"next_job"` // no job had this id or a greater one
}

func newJobMark(dir string, log *slog.Logger) *jobMark {
	return &jobMark{path: filepath.Join(dir, jobMarkFile), log: log}
}

// least is the least id for new jobs over a database with a last event. One that has the last event of the mark has all
// ids before it too; one that has not is an older copy.
func (m *jobMark) least(seq int64) core.JobID {
	data, err := os.ReadFile(m.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	var f markFile
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		m.log.Warn("not known whether the database is an older copy", "err", err)
		return 0
	}
	if seq >= f.Seq {
		return 0
	}
	return f.NextJob
}

// run writes the mark now and then.
func (m *jobMark) run(ctx context.Context, e *engine.Engine) error {
	tick := time.NewTicker(jobMarkEvery)
	defer tick.Stop()
	for {
		s := e.Snapshot()
		m.write(markFile{s.Seq(), s.NextJob() + jobMarkAhead})
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// end writes the mark of an engine that has ended.
func (m *jobMark) end(e *engine.Engine) {
	s := e.Snapshot()
	m.write(markFile{s.Seq(), s.NextJob()})
}

func (m *jobMark) write(f markFile) {
	if f == m.last {
		return
	}
	err := func() error {
		data, err := json.Marshal(f)
		if err != nil {
			return err
		}
		return writeSynced(m.path, append(data, '\n'))
	}()
	if err == nil {
		m.last, m.told = f, false
	} else if !m.told {
		m.told = true
		m.log.Warn("how far job ids have come was not written beside the database", "file", m.path, "err", err)
	}
}

// writeSynced replaces a file with one that is on the disk.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	if werr == nil {
		werr = f.Sync()
	}
	if err := errors.Join(werr, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// maxNextJob is the greatest id that every reader of JSON reads exactly.
const maxNextJob = core.JobID(1) << 53

// RaiseNextJob makes next the first id for new jobs in a store that no server leads, and gives the one that holds; with
// 0 it changes nothing. It refuses to lower it.
func RaiseNextJob(ctx context.Context, cfg *config.Config, next core.JobID) (was, is core.JobID, err error) {
	if next < 0 || next > maxNextJob {
		return 0, 0, core.Errorf(core.Invalid, "the next job id %d is not between 1 and %d", next, maxNextJob)
	}
	st, err := openStore(ctx, cfg.Store())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	name := host + ":next-job-id"
	epoch, err := st.Lead(ctx, name, time.Minute, 0, 0)
	if errors.Is(err, store.ErrHeld) {
		return 0, 0, core.Errorf(
			core.Conflict, "a server leads this cluster, or did until a moment ago: stop it first (%v)", err)
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		_, lerr := st.Lead(context.WithoutCancel(ctx), name, 0, epoch, 0)
		err = errors.Join(err, lerr)
	}()
	img, err := st.Load(ctx)
	if err != nil {
		return 0, 0, err
	}
	was = max(1, img.NextJob)
	switch {
	case next == 0:
		return was, was, nil
	case next < was:
		return was, was, core.Errorf(
			core.Conflict, "the next job id is %d and is never lowered: %d may have been given out", was, next)
	}
	return was, next, st.Commit(ctx, epoch, &core.Changes{Now: img.Now, NextJob: next})
}
