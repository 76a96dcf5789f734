package dstackdb

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/migrate/dstackdb/dstackdbtest"
	"bireme.dev/bireme/internal/migrate/inventory"
)

// recorded makes a database of the recorded tables, and of what more says.
func recorded(t *testing.T, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := dstackdbtest.Make(t.Context(), dir, more...); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data", "sqlite.db")
}

func keys(t *testing.T) Keys {
	t.Helper()
	k, err := ReadKeys("dstackdbtest/config.yml")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func read(t *testing.T, database string, k Keys) *inventory.Inventory {
	t.Helper()
	inv, err := Read(t.Context(), database, k)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// check compares with what was created at the real server.
func check(t *testing.T, inv *inventory.Inventory) {
	t.Helper()
	text, err := os.ReadFile("dstackdbtest/server-0.22.5.sql")
	if err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, u := range inv.Users {
		users = append(users, u.Name+" "+u.Token+" "+u.Fault)
		if u.Name == "carl" && (!strings.HasPrefix(u.SSHKey, "-----BEGIN PRIVATE KEY-----") || len(u.PublicKeys) != 1 ||
			!strings.HasPrefix(u.PublicKeys[0], "ssh-ed25519 AAAA") || !strings.HasSuffix(u.PublicKeys[0], " laptop")) {
			t.Errorf("keys of carl: %.30q %q", u.SSHKey, u.PublicKeys)
		}
		// the real server stored this of each token
		if sum := sha256.Sum256([]byte(u.Token)); !bytes.Contains(text, []byte(hex.EncodeToString(sum[:]))) {
			t.Errorf("%s: the token is not the one of the database", u.Name)
		}
		if u.Admin != (u.Name == "admin" || u.Name == "bob") || u.Inactive {
			t.Errorf("%s: admin %v, inactive %v", u.Name, u.Admin, u.Inactive)
		}
	}
	if diff := cmp.Diff([]string{
		"admin adm1n-t0ken-of-the-real-server ", "ann e289a009-7422-4d57-b333-34eaa2fff7be ", // by identity
		"bob d2b4cb15-4f95-4070-bdb9-e131269a54a9 ", "carl b36ca629-789d-4d1c-8185-164a6757f959 ", // by an AES key
	}, users); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]inventory.Project{
		{
			Name: "main", Owner: "admin", Members: []inventory.Member{{User: "admin", Role: "admin"}},
			Secrets: []inventory.Secret{{Name: "hf_token", Value: "s3cret value ü"}},
		},
		{
			Name: "vision", Owner: "admin", Members: []inventory.Member{
				{User: "admin", Role: "admin"},
				{User: "ann", Role: "manager"},
				{User: "bob", Role: "admin"},
				{User: "carl", Role: "user"},
			},
			Secrets: []inventory.Secret{{Name: "again", Value: "sealed by aes"}, {Name: "wandb", Value: "sealed by aes"}},
		},
	}, inv.Projects); diff != "" {
		t.Error(diff)
	}
	if len(inv.Fleets) != 1 || inv.Fleets[0].Name != "lab" || !bytes.Contains(inv.Fleets[0].Configuration,
		[]byte("BEGIN OPENSSH PRIVATE KEY")) {
		t.Errorf("fleets: %+v", inv.Fleets)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	inv := read(t, recorded(t), keys(t))
	check(t, inv)
	if inv.Schema != "40f19bea9d2a" {
		t.Errorf("schema %s", inv.Schema)
	}
	if diff := cmp.Diff([]inventory.Left{{
		Kind: "fleet", Project: "vision", Name: "clouds", Why: "its machines are made by a cloud backend",
	}}, inv.Left); diff != "" {
		t.Error(diff)
	}
}

// TestPostgres reads what a server wrote into PostgreSQL, with its types.
func TestPostgres(t *testing.T) {
	t.Parallel()
	base := os.Getenv("TEST_POSTGRES_URL")
	if base == "" {
		t.Skip("TEST_POSTGRES_URL names no server: scripts/with-postgres.sh starts one")
	}
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const schema = "dstackdb_test"
	text, err := os.ReadFile("testdata/postgres-0.22.5.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range []string{
		"DROP SCHEMA IF EXISTS " + schema + " CASCADE", "CREATE SCHEMA " + schema, "SET search_path TO " + schema,
		string(text),
	} {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
	}
	inv := read(t, strings.Replace(base, "postgres://", "postgresql+asyncpg://", 1)+sep+"search_path="+schema, keys(t))
	if len(inv.Users) != 2 || inv.Users[0].Token != "adm1n-t0ken-of-the-real-server" || !inv.Users[0].Admin ||
		inv.Users[1].Token != "a16ee568-f4ce-45d3-9580-37b61cfd5e49" || inv.Users[1].Email != "ann@example.org" ||
		inv.Users[1].Inactive {
		t.Errorf("users: %+v", inv.Users)
	}
	if diff := cmp.Diff([]inventory.Project{
		{
			Name: "main", Owner: "admin", Members: []inventory.Member{{User: "admin", Role: "admin"}},
			Secrets: []inventory.Secret{{Name: "hf_token", Value: "s3cret value ü"}},
		},
		{Name: "vision", Owner: "admin", Members: []inventory.Member{
			{User: "admin", Role: "admin"}, {User: "ann", Role: "manager"},
		}},
	}, inv.Projects); diff != "" {
		t.Error(diff)
	}
}

// TestLeft lists what stays behind, and leaves out what was deleted.
func TestLeft(t *testing.T) {
	t.Parallel()
	const vision = "626687e956434ad3b538f5bdd6198e66"
	inv := read(t, recorded(t,
		`INSERT INTO backends (id, project_id, type, config, auth) VALUES ('1', '`+vision+`', 'AWS', '{}', '{}')`,
		`INSERT INTO volumes (id, name, project_id, created_at, last_processed_at, deleted, status, configuration, user_id)
			VALUES ('1', 'data', '`+vision+`', '', '', 0, 'ACTIVE', '{}', ''),
			('2', 'gone', '`+vision+`', '', '', 1, 'ACTIVE', '{}', '')`,
		`UPDATE users SET deleted = 1 WHERE name = 'ann'`,
		`UPDATE users SET active = 0 WHERE name = 'carl'`,
		`DROP TABLE gateways`,
		`ALTER TABLE users DROP COLUMN ssh_private_key`,
	), keys(t))
	var left []string
	for _, l := range inv.Left {
		left = append(left, l.Kind+" "+l.Project+" "+l.Name)
	}
	if diff := cmp.Diff([]string{"backend vision aws", "fleet vision clouds", "volume vision data"}, left); diff != "" {
		t.Error(diff)
	}
	if len(inv.Users) != 3 || !inv.Users[2].Inactive || len(inv.Projects[1].Members) != 3 {
		t.Errorf("users %d, members %+v", len(inv.Users), inv.Projects[1].Members)
	}
}

// TestSealed: what cannot be opened says why, and nothing else is lost.
func TestSealed(t *testing.T) {
	t.Parallel()
	inv := read(t, recorded(t, `UPDATE secrets SET value = 'enc:aes:key1:AAAA' WHERE name = 'again'`), Keys{})
	if u := inv.Users[2]; u.Token != "" || u.Fault != `it is sealed by the key "key2", which config.yml does not have` {
		t.Errorf("bob: %q %q", u.Token, u.Fault)
	}
	if inv.Users[1].Token == "" || inv.Projects[0].Secrets[0].Value == "" {
		t.Error("what identity sealed is not read")
	}
	k := keys(t)
	for value, want := range map[string]string{
		"plain": "plain", "enc:identity:noname:a:b": "a:b",
	} {
		if got, err := k.open(value); err != nil || got != want {
			t.Errorf("%s opens as %q, %v", value, got, err)
		}
	}
	for value, want := range map[string]string{
		"enc:what:x:y": `sealed by "what"`, "enc:aes": "not known", "enc:aes:key1:AAAA": "not known",
		"enc:aes:key1:qyvPReZi4eaT3D2j2BQgBETaRgi8dZqAvBGeR5ZPtwg=": "does not open it",
	} {
		if got, err := k.open(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s opens as %q, %v", value, got, err)
		}
	}
}

func TestWrongDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for database, code := range map[string]core.Code{
		filepath.Join(dir, "none"): core.NotFound, text: core.Invalid, empty: core.Invalid, "mysql://x": core.Invalid,
	} {
		if _, err := Read(t.Context(), database, nil); core.CodeOf(err) != code {
			t.Errorf("%s: %v", database, err)
		}
	}
}

func TestReadKeysFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"encryption: [": "not the config.yml",
		"encryption: {keys: [{type: rot13, name: a}]}":             `type: "rot13" is not aes or identity`,
		"encryption: {keys: [{type: aes, name: a, secret: '!'}]}":  "is not base64",
		"encryption: {keys: [{type: aes, name: a, secret: AAAA}]}": "has 3 bytes",
	} {
		file := filepath.Join(t.TempDir(), "config.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKeys(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if k, err := ReadKeys(filepath.Join(t.TempDir(), "none")); err != nil || len(k) != 0 {
		t.Errorf("without a file: %v, %v", k, err)
	}
}

// TestQuiet: an inventory is never printed with its secrets by accident.
func TestQuiet(t *testing.T) {
	t.Parallel()
	inv := read(t, recorded(t), keys(t))
	if strings.Contains(inv.String()+inv.GoString(), "b36ca629") {
		t.Error("it tells a token")
	}
	if b, err := json.Marshal(inv); err != nil || !bytes.Contains(b, []byte("b36ca629")) {
		t.Error("JSON has no token")
	}
}
