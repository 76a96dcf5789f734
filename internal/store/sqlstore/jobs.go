package sqlstore

import (
	"context"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

var insertSpec = newInsert("specs", "id", "id", "script", "env", "doc")

func addSpec(b *Batch, s *core.SpecRow) {
	b.row(insertSpec)
	b.int(int64(s.ID))
	b.hash(&s.Spec.Script)
	b.hash(&s.Spec.Env)
	specDocs.add(b, s.Spec)
}

// hash adds a hash, nothing for none. It keeps h.
func (b *Batch) hash(h *core.Hash) {
	if h.IsZero() {
		b.bytes([]byte{})
		return
	}
	b.bytes(h[:])
}

var insertJob = newInsert("jobs", "id", "id", "spec_id", "array_id", "usr", "project", "part", "name", "state",
	"submit_at", "start_at", "end_at", "live", "doc")

func addJob(b *Batch, j *core.Job) {
	core.Assert(j.Spec != nil, "job %d is to be stored without its spec", j.ID)
	b.row(insertJob)
	b.int(int64(j.ID))
	b.int(int64(j.SpecID))
	if j.Array != nil {
		b.int(int64(j.Array.Base))
	} else {
		b.null()
	}
	b.text(string(j.Spec.User))
	b.text(string(j.Spec.Project))
	if j.Alloc != nil {
		b.text(string(j.Alloc.Partition))
	} else {
		b.text(j.Spec.Partition.String())
	}
	b.text(j.Spec.Name)
	b.int(int64(j.State))
	b.int(int64(j.Submit))
	b.int(int64(j.Start))
	b.int(int64(j.End))
	b.bool(j.Live())
	jobDocs.add(b, j)
}

// jobColumns are what a job is read from; jobRow takes them.
const jobColumns = `j.id, j.spec_id, j.state, j.submit_at, j.start_at, j.end_at, j.doc`

type jobRow struct {
	id, spec, state, submit, start, end int64
	doc                                 []byte
}

func (r *jobRow) dest() []any {
	return []any{&r.id, &r.spec, &r.state, &r.submit, &r.start, &r.end, &r.doc}
}

func (r *jobRow) job(dec *doc.Decoder) (*core.Job, error) {
	j := new(core.Job)
	if err := jobDocs.read(dec, r.doc, j); err != nil {
		return nil, err
	}
	j.ID, j.SpecID, j.State = core.JobID(r.id), core.JobID(r.spec), core.JobState(r.state)
	j.Submit, j.Start, j.End = core.Time(r.submit), core.Time(r.start), core.Time(r.end)
	return j, nil
}

// unreadable stands for a record that cannot be read. Its number of attempts tells the engine that it is none.
func (r *jobRow) unreadable(err error) *core.Job {
	return &core.Job{
		ID: core.JobID(r.id), SpecID: core.JobID(r.spec), State: core.JobState(r.state), Attempt: -1,
		Submit: core.Time(r.submit), Start: core.Time(r.start), End: core.Time(r.end),
		Message: "its stored record cannot be read: " + err.Error(),
	}
}

// lostSpec stands for what was asked for where that cannot be read any more.
var lostSpec = &core.Spec{Name: "unreadable", Shape: core.Shape{Tasks: 1, CPUsPerTask: 1, NodesMin: -1}}

const specColumns = `s.script, s.env, s.doc`

type specRow struct{ script, env, doc []byte }

func (r *specRow) dest() []any { return []any{&r.script, &r.env, &r.doc} }

func (r *specRow) spec(dec *doc.Decoder) (*core.Spec, error) {
	s := new(core.Spec)
	if err := specDocs.read(dec, r.doc, s); err != nil {
		return nil, err
	}
	copy(s.Script[:], r.script)
	copy(s.Env[:], r.env)
	return s, nil
}

const defaultLimit = 10_000

// Jobs answers q.
func (db *DB) Jobs(ctx context.Context, q store.JobQuery) ([]*core.Job, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	var out []*core.Job
	err := db.engine.Read(ctx, func(tx Tx) error {
		dec, specs := &doc.Decoder{}, map[core.JobID]*core.Spec{}
		for len(out) < q.Limit {
			page, err := readJobs(tx, dec, q)
			if err != nil {
				return err
			}
			if err := attachSpecs(tx, dec, page, specs); err != nil {
				return err
			}
			full := len(page) == q.Limit
			if full {
				q.After = page[len(page)-1].ID
			}
			out = append(out, onNodes(page, q.Nodes)...)
			if !full {
				break
			}
		}
		return nil
	})
	if len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return out, err
}

func readJobs(tx Tx, dec *doc.Decoder, q store.JobQuery) ([]*core.Job, error) {
	text, args := jobsText(q)
	var r jobRow
	var page []*core.Job
	err := tx.Query(text, args, r.dest(), func() error {
		j, err := r.job(dec)
		if err != nil { // it must not keep anybody from seeing the others
			j = r.unreadable(err)
		}
		page = append(page, j)
		return nil
	})
	return page, err
}

// jobsText is the statement for everything in q but Nodes, which are in the documents.
func jobsText(q store.JobQuery) (string, []any) {
	var w where
	// By the history's time index if a time is given; by id otherwise. Without statistics SQLite would not always see
	// it, so "+ 0" takes the id out of the choice.
	id := "j.id"
	if q.Since != 0 && len(q.IDs) == 0 {
		id = "j.id + 0"
	}
	if !q.Live {
		w.and("NOT j.live")
	}
	if len(q.IDs) > 0 && q.Exact {
		w.and(in(&w, "j.id", q.IDs, intArg))
	} else if len(q.IDs) > 0 {
		w.and("(" + in(&w, "j.id", q.IDs, intArg) + " OR " + in(&w, "j.array_id", q.IDs, intArg) + ")")
	}
	beyond, order := " > ", ""
	if q.Newest {
		beyond, order = " < ", " DESC"
	}
	if q.After > 0 {
		w.and(id + beyond + w.arg(int64(q.After)))
	}
	if len(q.Users) > 0 {
		w.and(in(&w, "j.usr", q.Users, textArg))
	}
	if len(q.Projects) > 0 {
		w.and(in(&w, "j.project", q.Projects, textArg))
	}
	if s := q.Seen; s != nil {
		text := "j.usr = " + w.arg(string(s.User))
		if len(s.Projects) > 0 {
			text += " OR " + in(&w, "j.project", s.Projects, textArg)
		}
		w.and("(" + text + ")")
	}
	if len(q.Partitions) > 0 {
		w.and(in(&w, "j.part", q.Partitions, textArg))
	}
	if len(q.Names) > 0 {
		w.and(in(&w, "j.name", q.Names, textArg))
	}
	if len(q.States) > 0 {
		w.and(in(&w, "j.state", q.States, func(s core.JobState) any { return int64(s) }))
	}
	if q.Since != 0 && q.Live {
		w.and("(j.live OR j.end_at > " + w.arg(int64(q.Since)) + ")")
	} else if q.Since != 0 {
		w.and("j.end_at > " + w.arg(int64(q.Since)))
	}
	if q.Until != 0 {
		w.and("j.submit_at < " + w.arg(int64(q.Until)))
	}
	text := `SELECT ` + jobColumns + ` FROM jobs j`
	if w.text.Len() > 0 {
		text += ` WHERE ` + w.text.String()
	}
	text += ` ORDER BY ` + id + order + ` LIMIT ` + w.arg(int64(q.Limit))
	return text, w.args
}

// attachSpecs sets the spec of every job of page; jobs of one array share theirs. Specs read are kept in known.
func attachSpecs(tx Tx, dec *doc.Decoder, page []*core.Job, known map[core.JobID]*core.Spec) error {
	var missing []core.JobID
	for _, j := range page {
		if _, ok := known[j.SpecID]; !ok {
			known[j.SpecID] = nil
			missing = append(missing, j.SpecID)
		}
	}
	for chunk := range slices.Chunk(missing, 500) {
		var w where
		var id int64
		var r specRow
		text := `SELECT s.id, ` + specColumns + ` FROM specs s WHERE ` + in(&w, "s.id", chunk, intArg)
		err := tx.Query(text, w.args, append([]any{&id}, r.dest()...), func() error {
			s, err := r.spec(dec)
			if err == nil {
				known[core.JobID(id)] = s
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, j := range page {
		j.Spec = known[j.SpecID]
		if j.Spec == nil {
			j.Spec = lostSpec
		}
	}
	return nil
}

// onNodes keeps the jobs that had one of names; no names keep all.
func onNodes(page []*core.Job, names []core.NodeName) []*core.Job {
	if len(names) == 0 {
		return page
	}
	return slices.DeleteFunc(page, func(j *core.Job) bool {
		if j.Alloc == nil {
			return true
		}
		return !slices.ContainsFunc(j.Alloc.Nodes, func(a core.NodeAlloc) bool { return slices.Contains(names, a.Node) })
	})
}

var insertStep = newInsert("steps", "job, attempt, id", "job", "attempt", "id", "doc")

func addStep(b *Batch, s *core.Step) {
	b.row(insertStep)
	b.int(int64(s.Job))
	b.int(int64(s.Attempt))
	b.int(int64(s.ID))
	stepDocs.add(b, s)
}

// Steps finds the steps of jobs, ordered by job, attempt and number.
func (db *DB) Steps(ctx context.Context, jobs []core.JobID) ([]*core.Step, error) {
	var out []*core.Step
	sorted := slices.Clone(jobs)
	slices.Sort(sorted)
	err := db.engine.Read(ctx, func(tx Tx) error {
		for chunk := range slices.Chunk(slices.Compact(sorted), 500) {
			var w where
			cond := in(&w, "t.job", chunk, intArg)
			steps, err := readSteps(tx, `SELECT `+stepColumns+` FROM steps t WHERE `+cond+stepOrder, w.args)
			if err != nil {
				return err
			}
			out = append(out, steps...)
		}
		return nil
	})
	return out, err
}

const (
	stepColumns = `t.job, t.attempt, t.id, t.doc`
	stepOrder   = ` ORDER BY t.job, t.attempt, t.id`
)

func readSteps(tx Tx, text string, args []any) ([]*core.Step, error) {
	var job, attempt, id int64
	return readDocs(tx, stepDocs, &doc.Decoder{}, text, args, []any{&job, &attempt, &id}, func(s *core.Step) {
		s.Job, s.Attempt, s.ID = core.JobID(job), int32(attempt), int32(id)
	})
}
