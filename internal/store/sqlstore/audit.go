package sqlstore

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

// AppendAudit adds rows and numbers them.
func (db *DB) AppendAudit(ctx context.Context, epoch int64, list []*core.AuditEntry) error {
	if len(list) == 0 {
		return nil
	}
	return db.engine.Write(ctx, func(tx Tx) error {
		if err := fence(tx, epoch); err != nil { // it also excludes others who number rows
			return err
		}
		var last int64
		if err := queryRow(tx, `SELECT COALESCE(MAX(seq), 0) FROM audit`, nil, &last); err != nil {
			return err
		}
		for i, e := range list {
			e.Seq = last + 1 + int64(i)
			text := auditDocs.codec.Append(nil, auditDocs.version(), e)
			_, err := tx.Exec(`INSERT INTO audit (seq, at, usr, token, token_name, action, object, answer, doc)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				e.Seq, int64(e.At), textArg(e.User), textArg(e.Token), textArg(e.TokenName), textArg(e.Action), textArg(e.Object),
				textArg(e.Answer), textArg(string(text)))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Audit reads rows, the newest first.
func (db *DB) Audit(ctx context.Context, q store.AuditQuery) (out []*core.AuditEntry, err error) {
	var w where
	equal := func(column, value string) {
		if value != "" {
			w.and(column + " = " + w.arg(clean(value)))
		}
	}
	equal("usr", string(q.User))
	if q.Token != "" {
		w.and("(token = " + w.arg(clean(q.Token)) + " OR token_name = " + w.arg(clean(q.Token)) + ")")
	}
	equal("answer", q.Answer)
	if q.Action != "" { // "job" is all of "job.cancel", "job.update"…
		w.and("(action = " + w.arg(clean(q.Action)) + " OR " + startsWith(&w, "action", q.Action+".") + ")")
	}
	if prefix, ok := strings.CutSuffix(q.Object, "*"); ok {
		w.and(startsWith(&w, "object", prefix))
	} else {
		equal("object", q.Object)
	}
	if q.Before != 0 {
		w.and("seq < " + w.arg(q.Before))
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	err = db.engine.Read(ctx, func(tx Tx) error {
		if err := auditTimes(tx, &w, q); err != nil {
			return err
		}
		text := `SELECT seq, at, usr, token, token_name, action, object, answer, doc FROM audit`
		if w.text.Len() > 0 {
			text += " WHERE " + w.text.String()
		}
		text += " ORDER BY seq DESC LIMIT " + w.arg(int64(q.Limit))
		var seq, at int64
		var usr, token, name, action, object, answer string
		out, err = readDocs(tx, auditDocs, &doc.Decoder{}, text, w.args,
			[]any{&seq, &at, &usr, &token, &name, &action, &object, &answer},
			func(e *core.AuditEntry) {
				e.Seq, e.At, e.User, e.Token, e.TokenName = seq, core.Time(at), core.UserName(usr), token, name
				e.Action, e.Object, e.Answer = action, object, answer
			})
		return err
	})
	return out, err
}

// auditSlack is how far times may run against numbers: calls are numbered after they were answered, like ones once a
// minute.
const auditSlack = 10 * time.Minute

// auditTimes keeps a query to a span of time. Times grow with numbers except for auditSlack, so a search by halves
// finds the numbers to look at, and there is no index to write.
func auditTimes(tx Tx, w *where, q store.AuditQuery) error {
	if q.Since != 0 {
		from, err := auditFrom(tx, q.Since.Add(-auditSlack))
		if err != nil {
			return err
		}
		w.and("seq >= " + w.arg(from))
		w.and("at >= " + w.arg(int64(q.Since)))
	}
	if q.Until != 0 {
		to, err := auditFrom(tx, q.Until.Add(auditSlack))
		if err != nil {
			return err
		}
		w.and("seq < " + w.arg(to))
		w.and("at < " + w.arg(int64(q.Until)))
	}
	return nil
}

// auditFrom is the first number whose time is not before a moment; one more than the last if there is none.
func auditFrom(tx Tx, moment core.Time) (int64, error) {
	var low, high, at int64
	if err := queryRow(tx, `SELECT COALESCE(MIN(seq), 1), COALESCE(MAX(seq), 0) + 1 FROM audit`, nil, &low,
		&high); err != nil {
		return 0, err
	}
	for low < high {
		mid := low + (high-low)/2
		if err := queryRow(tx, `SELECT at FROM audit WHERE seq >= $1 ORDER BY seq LIMIT 1`, []any{mid}, &at); err != nil {
			return 0, err
		}
		if at < int64(moment) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// startsWith is a condition that holds for texts with a prefix, whatever characters that has.
func startsWith(w *where, column, prefix string) string {
	prefix = clean(prefix)
	return "substr(" + column + ", 1, " + w.arg(int64(utf8.RuneCountInString(prefix))) + ") = " + w.arg(prefix)
}

// purgeAudit removes a bounded batch of the oldest rows that are past their time. The last one stays: numbers continue
// from it.
func purgeAudit(tx Tx, keep store.Retention, now core.Time) (int, bool, error) {
	if keep.Audit == 0 {
		return 0, false, nil
	}
	n, err := tx.Exec(
		`DELETE FROM audit WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM audit ORDER BY seq LIMIT $1) AS oldest
  WHERE at < $2)
 AND seq < (SELECT MAX(seq) FROM audit)`, int64(purgeRows), int64(now.Add(-keep.Audit)))
	return int(n), n == purgeRows, err
}
