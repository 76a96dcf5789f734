package sqlstore

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/doc"
)

// The documents, without what is a column.
var (
	specDocs    = docsOf[core.Spec]("spec", "script", "env")
	jobDocs     = docsOf[core.Job]("job", "id", "spec", "spec_id", "state", "submit", "start", "end")
	stepDocs    = docsOf[core.Step]("step", "job", "attempt", "id")
	nodeDocs    = docsOf[core.Node]("node", "id", "name")
	userDocs    = docsOf[core.User]("user", "name")
	projectDocs = docsOf[core.Project]("project", "name")
	spentDocs   = docsOf[core.Spent]("spent", "project", "user")
	qosDocs     = docsOf[core.QOS]("qos", "name")
	reserveDocs = docsOf[core.AdvanceReservation]("reservation", "name")
	fleetDocs   = docsOf[core.Fleet]("fleet", "name")
	credDocs    = docsOf[core.Credential]("credential", "kind", "owner", "name")
	volumeDocs  = docsOf[core.Volume]("volume", "project", "name")
	tokenDocs   = docsOf[core.Token]("token", "id")
	auditDocs   = docsOf[core.AuditEntry]("audit", "seq", "at", "user", "token", "token_name", "action", "object",
		"answer")
	runDocs = docsOf[core.Run]("run", "id", "project", "name", "created", "ended", "config")
)

// upgrades turns documents of old versions into the next one: upgrades["job"][0] makes version 2 of version 1. The
// version written is one more than there are upgrades.
var upgrades = map[string][]func(old []byte) ([]byte, error){}

type docs[T any] struct {
	noun  string
	codec *doc.Codec[T]
}

func docsOf[T any](noun string, columns ...string) docs[T] {
	return docs[T]{noun, doc.New[T](columns...)}
}

func (d docs[T]) version() int { return len(upgrades[d.noun]) + 1 }

// add appends v's document as the next value of the row.
func (d docs[T]) add(b *Batch, v *T) {
	from := len(b.buf)
	b.buf = d.codec.Append(b.buf, d.version(), v)
	b.textOf(b.buf[from:len(b.buf):len(b.buf)])
}

// read fills v, whatever version text was written in.
func (d docs[T]) read(dec *doc.Decoder, text []byte, v *T) error {
	have, err := d.codec.Decode(dec, text, v)
	if err != nil {
		return fmt.Errorf("store: %s: %w", d.noun, err)
	}
	if have == d.version() {
		return nil
	}
	if have < 1 || have > d.version() {
		return fmt.Errorf("store: %s document of version %d: this program knows versions 1 to %d", d.noun, have, d.version())
	}
	for _, up := range upgrades[d.noun][have-1:] {
		if text, err = up(text); err != nil {
			return fmt.Errorf("store: %s document of version %d: %w", d.noun, have, err)
		}
	}
	*v = *new(T)
	_, err = d.codec.Decode(dec, text, v)
	return err
}
