package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

var insertEvent = &Insert{Table: "events", Cols: []string{"seq", "at", "kind", "job", "node", "usr", "by_usr", "data"}}

func addEvents(b *Batch, events []core.Event) error {
	for i := range events {
		e := &events[i]
		if e.Seq != events[0].Seq+int64(i) {
			return fmt.Errorf("store: event %d follows %d", e.Seq, events[i-1].Seq)
		}
		b.row(insertEvent)
		b.int(e.Seq)
		b.int(int64(e.At))
		b.text(string(e.Kind))
		b.int(int64(e.Job))
		b.text(string(e.Node))
		b.text(string(e.User))
		b.text(string(e.By))
		b.textOf(e.Data)
	}
	return nil
}

// Events reads events after a number.
func (db *DB) Events(ctx context.Context, after int64, limit int) (out []core.Event, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	err = db.engine.Read(ctx, func(tx Tx) error {
		first, err := firstEvent(tx)
		if err != nil {
			return err
		}
		if after+1 < first {
			return store.ErrGone
		}
		out, err = readEvents(tx, `WHERE seq > $1 ORDER BY seq LIMIT $2`, after, int64(limit))
		return err
	})
	return out, err
}

// NodeEvents reads the last events of a node, oldest first.
func (db *DB) NodeEvents(ctx context.Context, node core.NodeName, limit int) (out []core.Event, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	err = db.engine.Read(ctx, func(tx Tx) error {
		out, err = readEvents(tx, `WHERE node = $1 AND node <> '' ORDER BY seq DESC LIMIT $2`, string(node), int64(limit))
		return err
	})
	slices.Reverse(out)
	return out, err
}

func readEvents(tx Tx, which string, args ...any) (out []core.Event, err error) {
	var e core.Event
	var at, job int64
	var kind, node, usr, by, data []byte
	var dec doc.Decoder
	err = tx.Query(`SELECT seq, at, kind, job, node, usr, by_usr, data FROM events `+which,
		args, []any{&e.Seq, &at, &kind, &job, &node, &usr, &by, &data}, func() error {
			e.At, e.Job, e.Kind = core.Time(at), core.JobID(job), core.EventKind(dec.Intern(kind))
			e.Node, e.User, e.By = core.NodeName(dec.Intern(node)), core.UserName(dec.Intern(usr)), core.UserName(dec.Intern(by))
			e.Data = append([]byte(nil), data...)
			out = append(out, e)
			return nil
		})
	return out, err
}

// firstEvent is the oldest number that is still there, or the next one to come.
func firstEvent(tx Tx) (first int64, err error) {
	err = queryRow(tx, `SELECT COALESCE((SELECT MIN(seq) FROM events), (SELECT seq + 1 FROM leader))`, nil, &first)
	return first, err
}
