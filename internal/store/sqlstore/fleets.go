package sqlstore

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/doc"
)

var (
	insertFleet = newInsert("fleets", "name", "name", "doc")
	deleteFleet = &Insert{Cols: []string{"name"}, One: `DELETE FROM fleets WHERE name = $1`}
)

// addFleets writes what goes before what comes: a name may be used again within one batch.
func addFleets(b *Batch, c *core.Changes) {
	for _, name := range c.GoneFleets {
		gone(b, deleteFleet, name)
	}
	for _, f := range c.Fleets {
		b.row(insertFleet)
		b.text(f.Name)
		fleetDocs.add(b, f)
	}
}

func readFleets(tx Tx) ([]*core.Fleet, error) {
	var name string
	return readDocs(tx, fleetDocs, &doc.Decoder{}, `SELECT name, doc FROM fleets ORDER BY name`, nil, []any{&name},
		func(f *core.Fleet) { f.Name = name })
}
