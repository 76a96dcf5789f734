package sqlstore

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/doc"
)

var (
	insertQOS     = newInsert("qos", "name", "name", "doc")
	insertReserve = newInsert("reservations", "name", "name", "doc")

	deleteQOS     = &Insert{Cols: []string{"name"}, One: `DELETE FROM qos WHERE name = $1`}
	deleteReserve = &Insert{Cols: []string{"name"}, One: `DELETE FROM reservations WHERE name = $1`}
	// An occurrence that has not begun is replaced; one that was cut short ends when it was.
	dropUpcoming = &Insert{
		Cols: []string{"id", "now"}, One: `DELETE FROM reservation_log WHERE id = $1 AND start_at > $2`,
	}
	logReserve = newInsert("reservation_log", "id, start_at", "id", "start_at", "end_at", "name", "doc")
	endReserve = &Insert{
		Cols: []string{"now", "name"},
		One:  `UPDATE reservation_log SET end_at = $1 WHERE name = $2 AND end_at > $1`,
	}

	// Ids never go back, whatever the caller says.
	updateLastIDs = &Insert{
		Cols: []string{"reservation", "qos", "project"},
		One: `UPDATE last_ids SET reservation = CASE WHEN $1 > reservation THEN $1 ELSE reservation END,
 qos = CASE WHEN $2 > qos THEN $2 ELSE qos END,
 project = CASE WHEN $3 > project THEN $3 ELSE project END`,
	}

	deleteProject = &Insert{Cols: []string{"name"}, One: `DELETE FROM projects WHERE name = $1`}
	deleteSpent   = &Insert{Cols: []string{"project"}, One: `DELETE FROM spent WHERE project = $1`}
)

// addPolicy writes what goes before what comes: a name may be used again within one batch.
func addPolicy(b *Batch, c *core.Changes) {
	if last := c.LastIDs; last != nil {
		b.row(updateLastIDs)
		b.int(last.Reservation)
		b.int(last.QOS)
		b.int(last.Project)
	}
	for _, name := range c.GoneProjects {
		gone(b, deleteProject, string(name))
		gone(b, deleteSpent, string(name))
	}
	for _, name := range c.GoneQOS {
		gone(b, deleteQOS, string(name))
	}
	for _, name := range c.GoneReservations {
		gone(b, deleteReserve, name)
		b.row(endReserve)
		b.int(int64(c.Now))
		b.text(name)
	}
	for _, q := range c.QOS {
		b.row(insertQOS)
		b.text(string(q.Name))
		qosDocs.add(b, q)
	}
	for _, r := range c.Reservations {
		b.row(insertReserve)
		b.text(r.Name)
		reserveDocs.add(b, r)
	}
	for _, r := range c.Reservations {
		addOccurrence(b, r, c.Now)
	}
}

func addOccurrence(b *Batch, r *core.AdvanceReservation, now core.Time) {
	b.row(dropUpcoming)
	b.int(r.ID)
	b.int(int64(now))
	b.row(logReserve)
	b.int(r.ID)
	b.int(int64(r.Start))
	b.int(int64(r.End))
	b.text(r.Name)
	reserveDocs.add(b, r)
}

func gone(b *Batch, from *Insert, name string) {
	b.row(from)
	b.text(name)
}

func readQOS(tx Tx) ([]*core.QOS, error) {
	var name string
	return readDocs(tx, qosDocs, &doc.Decoder{}, `SELECT name, doc FROM qos ORDER BY name`, nil, []any{&name},
		func(q *core.QOS) { q.Name = core.QOSName(name) })
}

func readReservations(tx Tx) ([]*core.AdvanceReservation, error) {
	var name string
	return readDocs(tx, reserveDocs, &doc.Decoder{}, `SELECT name, doc FROM reservations ORDER BY name`, nil, []any{&name},
		func(r *core.AdvanceReservation) { r.Name = name })
}
