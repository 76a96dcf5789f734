package sqlstore

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/doc"
)

var (
	insertNode    = newInsert("nodes", "name", "name", "id", "doc")
	insertUser    = newInsert("users", "name", "name", "doc")
	insertProject = newInsert("projects", "name", "name", "doc")
	insertSpent   = newInsert("spent", "project, usr", "project", "usr", "doc")
	insertToken   = newInsert("tokens", "id", "id", "hash", "doc")
)

func addNode(b *Batch, n *core.Node) {
	b.row(insertNode)
	b.text(string(n.Name))
	b.int(n.ID)
	nodeDocs.add(b, n)
}

var deleteUser = &Insert{Cols: []string{"name"}, One: `DELETE FROM users WHERE name = $1`}

var deleteNode = &Insert{Cols: []string{"name"}, One: `DELETE FROM nodes WHERE name = $1`}

func goneNode(b *Batch, name core.NodeName) {
	b.row(deleteNode)
	b.text(string(name))
}

func addUser(b *Batch, u *core.User) {
	b.row(insertUser)
	b.text(string(u.Name))
	userDocs.add(b, u)
}

func addProject(b *Batch, p *core.Project) {
	b.row(insertProject)
	b.text(string(p.Name))
	projectDocs.add(b, p)
}

func addSpent(b *Batch, x *core.Spent) {
	b.row(insertSpent)
	b.text(string(x.Project))
	b.text(string(x.User))
	spentDocs.add(b, x)
}

func addToken(b *Batch, t *core.Token) {
	b.row(insertToken)
	b.text(t.ID)
	b.bytes(t.Hash[:])
	tokenDocs.add(b, t)
}

var deleteToken = &Insert{Cols: []string{"id"}, One: `DELETE FROM tokens WHERE id = $1`}

func goneToken(b *Batch, id string) {
	b.row(deleteToken)
	b.text(id)
}

func readNodes(tx Tx) ([]*core.Node, error) {
	var name string
	var id int64
	return readDocs(tx, nodeDocs, &doc.Decoder{}, `SELECT name, id, doc FROM nodes ORDER BY name`, nil, []any{&name, &id},
		func(n *core.Node) { n.Name, n.ID = core.NodeName(name), id })
}

func readUsers(tx Tx) ([]*core.User, error) {
	var name string
	return readDocs(tx, userDocs, &doc.Decoder{}, `SELECT name, doc FROM users ORDER BY name`, nil, []any{&name},
		func(u *core.User) { u.Name = core.UserName(name) })
}

func readProjects(tx Tx) ([]*core.Project, error) {
	var name string
	return readDocs(tx, projectDocs, &doc.Decoder{}, `SELECT name, doc FROM projects ORDER BY name`, nil, []any{&name},
		func(p *core.Project) { p.Name = core.ProjectName(name) })
}

func readSpent(tx Tx) ([]*core.Spent, error) {
	var project, user string
	return readDocs(tx, spentDocs, &doc.Decoder{}, `SELECT project, usr, doc FROM spent ORDER BY project, usr`, nil,
		[]any{&project, &user},
		func(x *core.Spent) { x.Project, x.User = core.ProjectName(project), core.UserName(user) })
}

func readTokens(tx Tx) ([]*core.Token, error) {
	var id string
	var hash []byte
	return readDocs(tx, tokenDocs, &doc.Decoder{}, `SELECT id, hash, doc FROM tokens ORDER BY id`, nil, []any{&id, &hash},
		func(t *core.Token) { t.ID = id; copy(t.Hash[:], hash) })
}
