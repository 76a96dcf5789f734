package sqlstore

import (
	"context"

	"bireme.dev/bireme/internal/core"
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

// Runs finds runs, newest first.
func (db *DB) Runs(ctx context.Context, project core.ProjectName, name string, limit int) (out []*core.Run, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	var w where
	w.and("1 = 1")
	if project != "" {
		w.and("project = " + w.arg(textArg(project)))
	}
	if name != "" {
		w.and("name = " + w.arg(textArg(name)))
	}
	err = db.engine.Read(ctx, func(tx Tx) (err error) {
		out, err = readRuns(tx, w.text.String()+` ORDER BY created_at DESC, id DESC LIMIT `+w.arg(int64(limit)), w.args)
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
