package sqlstore

import (
	"context"
	"iter"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

var insertRun = newInsert("runs", "id", "id", "project", "name", "created_at", "end_at", "config", "doc")

func addRun(b *Batch, r *core.Run) {
	b.row(insertRun)
	b.text(r.ID)
	b.text(string(r.Project))
	b.text(r.Name)
	b.int(int64(r.Created))
	b.int(int64(r.Ended))
	b.hash(&r.Config)
	runDocs.add(b, r)
}

// Runs finds runs, newest first unless asked otherwise.
func (db *DB) Runs(ctx context.Context, q store.RunQuery) (out []*core.Run, err error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	if q.Projects != nil && len(q.Projects) == 0 { // PostgreSQL has no empty lists
		return nil, nil
	}
	var w where
	w.and("1 = 1")
	if q.ID != "" {
		w.and("id = " + w.arg(textArg(q.ID)))
	}
	if q.Project != "" {
		w.and("project = " + w.arg(textArg(q.Project)))
	}
	if q.Projects != nil {
		w.and(in(&w, "project", q.Projects, textArg))
	}
	if q.Name != "" {
		w.and("name = " + w.arg(textArg(q.Name)))
	}
	if len(q.Names) > 0 {
		w.and(in(&w, "name", q.Names, textArg))
	}
	order, beyond := "DESC", "<"
	if q.Oldest {
		order, beyond = "ASC", ">"
	}
	if q.Before != 0 {
		at := w.arg(int64(q.Before))
		w.and("created_at " + beyond + "= " + at)
		w.and("(created_at " + beyond + " " + at + " OR id " + beyond + " " + w.arg(textArg(q.BeforeID)) + ")")
	}
	err = db.engine.Read(ctx, func(tx Tx) (err error) {
		out, err = readRuns(tx, w.text.String()+` ORDER BY created_at `+order+`, id `+order+` LIMIT `+
			w.arg(int64(q.Limit)), w.args)
		return err
	})
	return out, err
}

func readRuns(tx Tx, rest string, args []any) ([]*core.Run, error) {
	var id, project, name string
	var created, ended int64
	var config []byte
	return readDocs(tx, runDocs, &doc.Decoder{},
		`SELECT id, project, name, created_at, end_at, config, doc FROM runs WHERE `+rest, args,
		[]any{&id, &project, &name, &created, &ended, &config}, func(r *core.Run) {
			r.ID, r.Project, r.Name = id, core.ProjectName(project), name
			r.Created, r.Ended = core.Time(created), core.Time(ended)
			copy(r.Config[:], config)
		})
}

// ofService gives the blobs that further replicas of a service need. They lie with the run's description: the jobs that
// came with them may be gone before the next one is made.
func ofService(r *core.Run) iter.Seq[core.Hash] {
	return func(yield func(core.Hash) bool) {
		if r.Service == nil {
			return
		}
		for _, v := range r.Service.Versions {
			for _, s := range v.Specs {
				if !yield(s.Script) || !yield(s.Env) || !yield(s.More().Files) || !yield(v.Config) {
					return
				}
			}
		}
	}
}
