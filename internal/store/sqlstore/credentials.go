package sqlstore

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/doc"
)

var (
	insertCredential = newInsert("credentials", "kind, owner, name", "kind", "owner", "name", "doc")
	deleteCredential = &Insert{
		Cols: []string{"kind", "owner", "name"},
		One:  `DELETE FROM credentials WHERE kind = $1 AND owner = $2 AND name = $3`,
	}
)

// addCredentials writes what goes before what comes: a name may be used again within one batch.
func addCredentials(b *Batch, c *core.Changes) {
	for _, k := range c.GoneCredentials {
		b.row(deleteCredential)
		b.text(string(k.Kind))
		b.text(k.Owner)
		b.text(k.Name)
	}
	for _, x := range c.Credentials {
		b.row(insertCredential)
		b.text(string(x.Kind))
		b.text(x.Owner)
		b.text(x.Name)
		credDocs.add(b, x)
	}
}

func readCredentials(tx Tx) ([]*core.Credential, error) {
	var kind, owner, name string
	return readDocs(tx, credDocs, &doc.Decoder{},
		`SELECT kind, owner, name, doc FROM credentials ORDER BY kind, owner, name`, nil, []any{&kind, &owner, &name},
		func(c *core.Credential) { c.Kind, c.Owner, c.Name = core.CredentialKind(kind), owner, name })
}
