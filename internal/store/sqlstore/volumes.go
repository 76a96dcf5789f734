package sqlstore

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/doc"
)

var (
	insertVolume = newInsert("volumes", "project, name", "project", "name", "doc")
	deleteVolume = &Insert{
		Cols: []string{"project", "name"},
		One:  `DELETE FROM volumes WHERE project = $1 AND name = $2`,
	}
)

// addVolumes writes what goes before what comes: a name may be used again within one batch.
func addVolumes(b *Batch, c *core.Changes) {
	for _, k := range c.GoneVolumes {
		b.row(deleteVolume)
		b.text(string(k.Project))
		b.text(k.Name)
	}
	for _, v := range c.Volumes {
		b.row(insertVolume)
		b.text(string(v.Project))
		b.text(v.Name)
		volumeDocs.add(b, v)
	}
}

func readVolumes(tx Tx) ([]*core.Volume, error) {
	var project, name string
	return readDocs(tx, volumeDocs, &doc.Decoder{}, `SELECT project, name, doc FROM volumes ORDER BY project, name`, nil,
		[]any{&project, &name}, func(v *core.Volume) { v.Project, v.Name = core.ProjectName(project), name })
}
