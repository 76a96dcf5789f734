package storetest

import (
	"fmt"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// audit adds an entry at the world's time.
func (w *world) audit(list ...*core.AuditEntry) {
	w.t.Helper()
	for _, e := range list {
		w.now = w.now.Add(time.Second)
		e.At = w.now
	}
	w.wantErr(w.AppendAudit(w.ctx, w.epoch, list), nil)
}

func (w *world) wantAudit(q store.AuditQuery, want ...*core.AuditEntry) {
	w.t.Helper()
	got, err := w.Audit(w.ctx, q)
	w.wantErr(err, nil)
	w.same(got, want)
}

// testAudit: entries come back whole, the newest first, numbered without gaps by whoever leads; each filter holds.
func testAudit(t *testing.T, w *world) {
	w.lead()
	whole := filled[core.AuditEntry]()
	w.audit(whole)
	deny := &core.AuditEntry{
		User: "mal", UID: 7, Addr: "local", Action: "job.cancel", Object: "job 1", Answer: "denied",
		Count: 1,
	}
	act := &core.AuditEntry{
		User: "root", UID: 0, Token: "t1", TokenName: "ops", Action: "node.update",
		Object: "node n_1", Answer: "ok",
	}
	odd := &core.AuditEntry{
		User: "mal", UID: -1, Action: "job.cancel.all", Object: "job 12", Answer: "ok",
		Detail: "50% é\n",
	}
	w.audit(deny, act, odd)
	w.same([]int64{whole.Seq, deny.Seq, act.Seq, odd.Seq}, []int64{1, 2, 3, 4})
	w.wantAudit(store.AuditQuery{}, odd, act, deny, whole)
	w.wantAudit(store.AuditQuery{User: "mal"}, odd, deny)
	w.wantAudit(store.AuditQuery{User: "mal", Limit: 1}, odd)
	w.wantAudit(store.AuditQuery{User: "mal", Before: odd.Seq}, deny)
	w.wantAudit(store.AuditQuery{Token: "t1"}, act)
	w.wantAudit(store.AuditQuery{Token: "ops"}, act)
	w.wantAudit(store.AuditQuery{Action: "job.cancel"}, odd, deny)
	w.wantAudit(store.AuditQuery{Action: "job.can"})
	w.wantAudit(store.AuditQuery{Object: "job 1"}, deny)
	w.wantAudit(store.AuditQuery{Object: "job 1*"}, odd, deny)
	w.wantAudit(store.AuditQuery{Object: "node n%*"})
	w.wantAudit(store.AuditQuery{Answer: "denied"}, deny)
	w.wantAudit(store.AuditQuery{Since: act.At, Until: odd.At}, act)

	old := w.epoch
	w.lead()
	w.wantErr(w.AppendAudit(w.ctx, old, []*core.AuditEntry{{Action: "late"}}), store.ErrStale)
	w.audit(&core.AuditEntry{Action: "next"})
	next, err := w.Audit(w.ctx, store.AuditQuery{Limit: 1})
	w.wantErr(err, nil)
	w.same(next[0].Seq, int64(5))
}

// testPurgeAudit: what is past its time goes in batches, oldest first, and numbers continue.
func testPurgeAudit(t *testing.T, w *world) {
	w.lead()
	var list []*core.AuditEntry
	for i := range 2500 {
		list = append(list, &core.AuditEntry{User: "ann", Action: "sign-in", Object: fmt.Sprint(i)})
	}
	w.audit(list...)
	w.same(w.purge(store.Retention{}), 0)
	n, more, err := w.Purge(w.ctx, w.epoch, store.Retention{Audit: 100 * time.Second}, w.now)
	w.wantErr(err, nil)
	w.same(more, true)
	w.same(n+w.purge(store.Retention{Audit: 100 * time.Second}), 2399)
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(store.Retention{Audit: time.Second}), 100)
	w.audit(&core.AuditEntry{Action: "next"})
	rest, err := w.Audit(w.ctx, store.AuditQuery{})
	w.wantErr(err, nil)
	w.same([]int64{rest[0].Seq, rest[1].Seq}, []int64{2501, 2500})
}
