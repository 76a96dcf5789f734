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
	deleteProject = &Insert{Cols: []string{"name"}, One: `DELETE FROM projects WHERE name = $1`}
	deleteSpent   = &Insert{Cols: []string{"project"}, One: `DELETE FROM spent WHERE project = $1`}
)

// addPolicy writes what goes before what comes: a name may be used again within one batch.
func addPolicy(b *Batch, c *core.Changes) {
	for _, name := range c.GoneProjects {
		gone(b, deleteProject, string(name))
		gone(b, deleteSpent, string(name))
	}
	for _, name := range c.GoneQOS {
		gone(b, deleteQOS, string(name))
	}
	for _, name := range c.GoneReservations {
		gone(b, deleteReserve, name)
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
