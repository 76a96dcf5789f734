package sqlstore

import (
	"context"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// A purge holds the writer, so it takes little at a time.
const (
	purgeRows    = 1000 // events and keys
	purgeJobs    = 200
	purgeShelves = 8 // each is up to shelfJobs specs to look at
)

// purgeFunc removes what one kind of record need not keep, within one transaction.
type purgeFunc func(Tx, store.Retention, core.Time) (removed int, more bool, err error)

// Purge removes a bounded batch.
func (db *DB) Purge(ctx context.Context, epoch int64, keep store.Retention, now core.Time) (
	removed int, more bool, err error,
) {
	defer db.recent.forget()
	err = db.engine.Write(ctx, func(tx Tx) error {
		removed, more = 0, false
		if err := fence(tx, epoch); err != nil {
			return err
		}
		parts := []purgeFunc{purgeEvents, purgeKeys, purgeEnded, purgeRuns, purgeAudit, purgeOccurrences}
		for _, part := range parts {
			n, left, err := part(tx, keep, now)
			if err != nil {
				return err
			}
			removed, more = removed+n, more || left
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	return removed, more, nil
}

// purgeEvents removes from the oldest on. Times grow with numbers, so the first one that is young enough ends it.
func purgeEvents(tx Tx, keep store.Retention, now core.Time) (int, bool, error) {
	if keep.Events == 0 && keep.MaxEvents == 0 {
		return 0, false, nil
	}
	first, err := firstEvent(tx)
	if err != nil {
		return 0, false, err
	}
	var last int64
	if err := queryRow(tx, `SELECT seq FROM leader`, nil, &last); err != nil {
		return 0, false, err
	}
	upTo := first - 1 // the last to go
	if keep.MaxEvents > 0 {
		upTo = max(upTo, last-keep.MaxEvents)
	}
	if keep.Events > 0 {
		var young int64
		err := queryRow(tx, `SELECT COALESCE(MIN(seq), $1) FROM (SELECT seq, at FROM events ORDER BY seq LIMIT $2) AS `+
			`oldest WHERE at >= $3`,
			[]any{min(last, first+purgeRows) + 1, int64(purgeRows + 1), int64(now.Add(-keep.Events))}, &young)
		if err != nil {
			return 0, false, err
		}
		upTo = max(upTo, young-1)
	}
	more := upTo >= first+purgeRows
	n, err := tx.Exec(`DELETE FROM events WHERE seq <= $1`, min(upTo, first+purgeRows-1))
	return int(n), more, err
}

// purgeOccurrences removes reservations that ended when the oldest jobs did that are kept.
func purgeOccurrences(tx Tx, keep store.Retention, now core.Time) (int, bool, error) {
	if keep.Jobs == 0 {
		return 0, false, nil
	}
	n, err := tx.Exec(`DELETE FROM reservation_log WHERE end_at < $1`, int64(now.Add(-keep.Jobs)))
	return int(n), false, err
}

func purgeKeys(tx Tx, keep store.Retention, now core.Time) (int, bool, error) {
	if keep.Keys == 0 {
		return 0, false, nil
	}
	var shelf int64
	if err := queryRow(tx, `SELECT COALESCE(MIN(shelf), -1) FROM submit_keys`, nil, &shelf); err != nil {
		return 0, false, err
	}
	n, err := tx.Exec(`DELETE FROM submit_keys WHERE shelf >= $1 AND shelf <= $2 AND at < $3`,
		shelf, shelf+1, int64(now.Add(-keep.Keys)))
	return int(n), n > 0, err
}

// purgeEnded removes jobs that ended long ago, with their steps, and the specs and blobs nobody else needs.
func purgeEnded(tx Tx, keep store.Retention, now core.Time) (int, bool, error) {
	if keep.Jobs == 0 {
		return 0, false, nil
	}
	var id, spec, array int64
	var jobs, owners []int64
	shelves := map[int64]bool{}
	more := false
	err := tx.Query(`SELECT id, spec_id, COALESCE(array_id, id) FROM jobs WHERE NOT live AND end_at < $1 ORDER BY `+
		`end_at LIMIT $2`,
		[]any{int64(now.Add(-keep.Jobs)), int64(purgeJobs)}, []any{&id, &spec, &array}, func() error {
			at := shelfOf(core.JobID(array))
			if !shelves[at] && len(shelves) == purgeShelves {
				more = true
				return nil
			}
			shelves[at] = true
			jobs, owners = append(jobs, id), append(owners, array, int64(core.SpecOwner(core.JobID(spec))))
			return nil
		})
	if err != nil || len(jobs) == 0 {
		return 0, false, err
	}
	more = more || len(jobs) == purgeJobs
	if err := deleteIn(tx, "steps", "job", jobs); err != nil {
		return 0, false, err
	}
	if err := deleteIn(tx, "jobs", "id", jobs); err != nil {
		return 0, false, err
	}
	slices.Sort(owners)
	return len(jobs), more, purgeSpecs(tx, slices.Compact(owners))
}

// purgeSpecs removes the specs, with their revisions, of those owners whose job and whose array's tasks are all gone,
// and their blobs. Owners come ascending.
func purgeSpecs(tx Tx, owners []int64) error {
	var w where
	var id int64
	used := map[int64]bool{}
	text := `SELECT id FROM jobs WHERE ` + in(&w, "id", owners, intArg) + ` UNION SELECT array_id FROM jobs WHERE ` +
		in(&w, "array_id", owners, intArg)
	err := tx.Query(text, w.args, []any{&id}, func() error { used[id] = true; return nil })
	if err != nil {
		return err
	}
	shelves, unused := map[int64]bool{}, map[int64]bool{}
	var specs []int64
	for _, o := range owners {
		if !used[o] {
			unused[o] = true
			specs = append(specs, o)
			shelves[shelfOf(core.JobID(o))] = true
		}
	}
	if len(specs) == 0 {
		return nil
	}
	first, last := specs[0], specs[len(specs)-1]
	err = tx.Query(`SELECT id FROM specs WHERE id > $1 AND id <= $2`,
		[]any{-(last + 1) * core.SpecRevisions, -first * core.SpecRevisions},
		[]any{&id}, func() error {
			if unused[int64(core.SpecOwner(core.JobID(id)))] {
				specs = append(specs, id)
			}
			return nil
		})
	if err != nil {
		return err
	}
	if err := deleteIn(tx, "specs", "id", specs); err != nil {
		return err
	}
	for shelf := range shelves {
		if err := sweep(tx, shelf); err != nil {
			return err
		}
	}
	return nil
}

// purgeRuns removes runs that ended long ago and the configurations no other run has.
func purgeRuns(tx Tx, keep store.Retention, now core.Time) (int, bool, error) {
	if keep.Jobs == 0 {
		return 0, false, nil
	}
	n, err := tx.Exec(`DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE end_at > 0 AND end_at < $1 ORDER BY `+
		`created_at LIMIT $2)`,
		int64(now.Add(-keep.Jobs)), int64(purgeJobs))
	if err != nil || n == 0 {
		return 0, false, err
	}
	var config []byte
	wanted := map[string]bool{}
	err = tx.Query(`SELECT config FROM runs`, nil, []any{&config}, func() error {
		wanted[string(config)] = true
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	open, err := readRuns(tx, `end_at = 0`, nil)
	if err != nil {
		return 0, false, err
	}
	for _, r := range open {
		for h := range ofService(r) {
			wanted[string(h[:])] = true
		}
	}
	return int(n), n == purgeJobs, removeBlobs(tx, loose, func(h []byte) bool { return wanted[string(h)] })
}

func deleteIn(tx Tx, table, column string, ids []int64) error {
	var w where
	cond := in(&w, column, ids, intArg)
	_, err := tx.Exec(`DELETE FROM `+table+` WHERE `+cond, w.args...)
	return err
}
