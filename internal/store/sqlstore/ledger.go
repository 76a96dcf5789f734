package sqlstore

import (
	"context"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

// Of a job's document and of its spec's, reports need a small part. The codec passes over the rest.
type (
	usageDoc struct {
		Array     *core.ArrayRef `json:"array,omitempty"`
		Eligible  core.Time      `json:"eligible,omitempty"`
		PausedFor int64          `json:"paused_for,omitempty"`
		Alloc     *core.Alloc    `json:"alloc,omitempty"`
		Earlier   *core.Earlier  `json:"earlier,omitempty"`
	}
	usageSpec struct {
		GID   uint32         `json:"gid,omitempty"`
		Extra *usageSpecMore `json:"extra,omitempty"`
	}
	usageSpecMore struct {
		WCKey string `json:"wckey,omitempty"`
	}
)

var (
	usageDocs  = doc.New[usageDoc]()
	usageSpecs = doc.New[usageSpec]()
)

const usageText = `SELECT j.id, j.usr, j.project, j.part, j.state, j.submit_at, j.start_at, j.end_at, j.doc, s.doc
 FROM jobs j LEFT JOIN specs s ON s.id = j.spec_id WHERE NOT j.live AND j.end_at > $1 AND j.submit_at < $2`

// Usage calls each for every finished job that can have run in [from, until). u is used again for the next one. Records
// that cannot be read are passed over.
func (db *DB) Usage(ctx context.Context, from, until core.Time, each func(u *store.JobUsage)) error {
	return db.engine.Read(ctx, func(tx Tx) error {
		var id, state, submit, start, end int64
		var usr, project, part, text, spec []byte
		var u store.JobUsage
		dec := &doc.Decoder{}
		dest := []any{&id, &usr, &project, &part, &state, &submit, &start, &end, &text, &spec}
		return tx.Query(usageText, []any{int64(from), int64(until)}, dest, func() error {
			var d usageDoc
			if _, err := usageDocs.Decode(dec, text, &d); err != nil {
				return nil //nolint:nilerr // one record must not hide the others
			}
			var s usageSpec
			if len(spec) > 0 {
				_, _ = usageSpecs.Decode(dec, spec, &s)
			}
			u = store.JobUsage{
				ID: core.JobID(id), User: core.UserName(dec.Intern(usr)), Project: core.ProjectName(dec.Intern(project)),
				Partition: core.PartitionName(dec.Intern(part)), State: core.JobState(state), Submit: core.Time(submit),
				Eligible: d.Eligible, Start: core.Time(start), End: core.Time(end), PausedFor: d.PausedFor, Alloc: d.Alloc,
				Array: d.Array, Earlier: d.Earlier, GID: s.GID,
			}
			if s.Extra != nil {
				u.WCKey = s.Extra.WCKey
			}
			each(&u)
			return nil
		})
	})
}

// NodeHistory calls each for the events of nodes before a moment that are still there, oldest first.
func (db *DB) NodeHistory(ctx context.Context, until core.Time, each func(e *core.Event)) error {
	return db.engine.Read(ctx, func(tx Tx) error {
		var e core.Event
		var at int64
		var kind, node, by, data []byte
		dec := &doc.Decoder{}
		return tx.Query(`SELECT seq, at, kind, node, by_usr, data FROM events WHERE node <> '' AND at < $1 ORDER BY seq`,
			[]any{int64(until)}, []any{&e.Seq, &at, &kind, &node, &by, &data}, func() error {
				e.At, e.Kind = core.Time(at), core.EventKind(dec.Intern(kind))
				e.Node, e.By, e.Data = core.NodeName(dec.Intern(node)), core.UserName(dec.Intern(by)), data
				each(&e)
				return nil
			})
	})
}

// PastReservations are the occurrences of advance reservations that overlap [from, until), by start.
func (db *DB) PastReservations(ctx context.Context, from, until core.Time) (
	out []*core.AdvanceReservation, err error,
) {
	err = db.engine.Read(ctx, func(tx Tx) error {
		var id, start, end int64
		var name string
		out, err = readDocs(tx, reserveDocs, &doc.Decoder{},
			`SELECT id, start_at, end_at, name, doc FROM reservation_log WHERE end_at > $1 AND start_at < $2 AND `+
				`end_at > start_at ORDER BY start_at, id`,
			[]any{int64(from), int64(until)}, []any{&id, &start, &end, &name}, func(r *core.AdvanceReservation) {
				r.ID, r.Name, r.Start, r.End = id, name, core.Time(start), core.Time(end)
			})
		return err
	})
	return out, err
}

// Records are those of a kind by name.
func (db *DB) Records(ctx context.Context, kind string) (out []store.Record, err error) {
	err = db.engine.Read(ctx, func(tx Tx) error {
		var name string
		var text []byte
		return tx.Query(`SELECT name, doc FROM records WHERE kind = $1 ORDER BY name`, []any{kind}, []any{&name, &text},
			func() error {
				out = append(out, store.Record{Name: name, Doc: append([]byte(nil), text...)})
				return nil
			})
	})
	return out, err
}

// PutRecord makes or replaces a record; a nil document removes it.
func (db *DB) PutRecord(ctx context.Context, epoch int64, kind string, r store.Record) error {
	return db.engine.Write(ctx, func(tx Tx) error {
		if err := fence(tx, epoch); err != nil {
			return err
		}
		if r.Doc == nil {
			_, err := tx.Exec(`DELETE FROM records WHERE kind = $1 AND name = $2`, kind, clean(r.Name))
			return err
		}
		_, err := tx.Exec(`INSERT INTO records (kind, name, doc) VALUES ($1, $2, $3)
 ON CONFLICT (kind, name) DO UPDATE SET doc = excluded.doc`, kind, clean(r.Name), clean(string(r.Doc)))
		return err
	})
}
