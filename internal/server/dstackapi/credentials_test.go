package dstackapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
)

const denied = `{"detail":{"msg":"Access denied","code":null}}`

// lab makes a project with an administrator, a manager and a user, and one who is none of them.
func lab(t *testing.T, s *servertest.Server) (boss, manager, user, stranger *dstackapitest.Caller) {
	t.Helper()
	list := make([]*dstackapitest.Caller, 4)
	for i, name := range []core.UserName{"boss", "mia", "uma", "eve"} {
		list[i] = dstackapitest.New(t, s, name, core.RoleUser)
	}
	s.Must("POST", "/api/v1/projects", core.Project{Name: "lab", Members: []core.Member{
		{User: "boss", Role: core.RoleAdmin}, {User: "mia", Role: core.RoleManager}, {User: "uma", Role: core.RoleUser},
	}}, nil)
	s.Must("POST", "/api/v1/projects", core.Project{Name: "other", Members: []core.Member{
		{User: "eve", Role: core.RoleAdmin},
	}}, nil)
	return list[0], list[1], list[2], list[3]
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	boss, manager, user, stranger := lab(t, s)
	const base = "/api/project/lab/secrets/"
	if a := boss.Send(base+"list", nil); a.Body != "[]" {
		t.Errorf("an empty list: %s", a.Body)
	}
	var made wire.Secret
	boss.Get(base+"create_or_update", `{"name":"lab_key","value":"s3cr3t-value"}`, &made)
	if made.Name != "lab_key" || *made.Value != "s3cr3t-value" || !wire.IsUUID(made.ID) {
		t.Errorf("made: %+v", made)
	}
	if a := boss.Send(base+"list", nil); a.Body != `[{"id":"`+made.ID+`","name":"lab_key","value":null}]` {
		t.Errorf("list: %s", a.Body)
	}
	boss.Get(base+"create_or_update", `{"name":"lab_key","value":"second"}`, nil)
	if a := boss.Send(base+"get", `{"name":"lab_key"}`); a.Body != `{"id":"`+made.ID+
		`","name":"lab_key","value":"second"}` {
		t.Errorf("get: %s", a.Body)
	}
	boss.Refused(base+"get", `{"name":"other"}`, 400, `[{"msg":"Resource not found","code":"resource_not_exists"}]`)
	boss.Refused(base+"delete", `{"secrets_names":["nosecret","lab_key"]}`, 400,
		`[{"msg":"Secrets not found: nosecret","code":"resource_not_exists"}]`)
	boss.Refused(base+"create_or_update", `{"name":"a b","value":"x"}`, 400, `'^[A-Za-z0-9-_]{1,200}$'`)
	boss.Refused(base+"create_or_update", `{"name":"a","value":"`+strings.Repeat("x", 5001)+`"}`, 400, "5000")
	for _, who := range []*dstackapitest.Caller{manager, user, stranger} {
		for path, body := range map[string]any{
			"list": nil, "get": `{"name":"lab_key"}`, "create_or_update": `{"name":"lab_key","value":"x"}`,
			"delete": `{"secrets_names":["lab_key"]}`,
		} {
			who.Refused(base+path, body, 403, denied)
		}
	}
	stranger.Refused("/api/project/other/secrets/get", `{"name":"lab_key"}`, 400, "Resource not found")
	// nothing of it lies in the server's folder
	_ = filepath.WalkDir(s.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what goes meanwhile holds nothing
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("s3cr3t-value")) {
			t.Errorf("%s has the value", path)
		}
		return nil
	})
	// it outlives a rotation of the key that seals it, and a restart
	s.Must("POST", "/api/v1/seals/rotate", "{}", nil)
	awaitSeals(t, s)
	s.Stop()
	s.Start()
	boss.URL, boss.HTTP = s.Info.API, s.Far()
	if a := boss.Send(base+"get", `{"name":"lab_key"}`); !strings.Contains(a.Body, `"second"`) {
		t.Errorf("after a restart: %s", a.Body)
	}
	if a := boss.Send(base+"delete", `{"secrets_names":["lab_key"]}`); a.Body != "null" {
		t.Errorf("delete: %s", a.Body)
	}
}

// awaitSeals waits until one key seals everything. Nothing tells of it: it is asked for.
func awaitSeals(t *testing.T, s *servertest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var seals client.Seals
		s.Must("GET", "/api/v1/seals", nil, &seals)
		if seals.Done && len(seals.Keys) == 1 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not everything is under one key: %+v", seals)
		case <-tick.C:
		}
	}
}

func TestManagersManageSecretsWhereSettingsSaySo(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "dstack.managers_manage_secrets=true")
	_, manager, user, _ := lab(t, s)
	manager.Get("/api/project/lab/secrets/create_or_update", `{"name":"a","value":"x"}`, nil)
	manager.Get("/api/project/lab/secrets/delete", `{"secrets_names":["a"]}`, nil)
	user.Refused("/api/project/lab/secrets/list", nil, 403, denied)
	var p wire.Project
	manager.Get("/api/projects/lab/get", nil, &p)
	for _, m := range p.Members {
		if m.Permissions.CanManageSecrets != (m.ProjectRole != "user") || m.Permissions.CanManageSSHFleets {
			t.Errorf("%s: %+v", m.User.Username, m.Permissions)
		}
	}
}

func TestKeysOfUsers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	_, _, user, stranger := lab(t, s)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	var me, again, other wire.UserWithCreds
	user.Get("/api/users/get_my_user", nil, &me)
	user.Get("/api/users/get_my_user", nil, &again)
	key, err := ssh.ParsePrivateKey([]byte(*me.SSHPrivateKey))
	if err != nil || *me.SSHPrivateKey != *again.SSHPrivateKey {
		t.Fatalf("private key: %v", err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(*me.SSHPublicKey))
	if err != nil || !bytes.Equal(public.Marshal(), key.PublicKey().Marshal()) {
		t.Errorf("public key: %v", err)
	}
	// others see the public part only
	for _, who := range []*dstackapitest.Caller{stranger, admin} {
		if a := who.Send("/api/users/get_user", `{"username":"uma"}`); a.Status != 200 ||
			strings.Contains(a.Body, "PRIVATE KEY") || strings.Contains(a.Body, user.Token) {
			t.Errorf("another's user: %d %s", a.Status, a.Body)
		}
	}
	if a := admin.Send("/api/users/refresh_ssh_key", `{"username":"uma"}`); strings.Contains(a.Body, "PRIVATE KEY") {
		t.Errorf("an administrator got a private key: %s", a.Body)
	}
	stranger.Refused("/api/users/refresh_ssh_key", `{"username":"uma"}`, 403, denied)
	user.Get("/api/users/get_my_user", nil, &other)
	if *other.SSHPrivateKey == *me.SSHPrivateKey {
		t.Error("the key was not made anew")
	}
	var added wire.PublicKey
	user.Get("/api/users/public_keys/add", map[string]string{"key": *me.SSHPublicKey, "name": "laptop"}, &added)
	if added.Name != "laptop" || added.Type != "ssh-ed25519" || added.Fingerprint != ssh.FingerprintSHA256(public) {
		t.Errorf("added: %+v", added)
	}
	user.Refused("/api/users/public_keys/add", map[string]string{"key": *me.SSHPublicKey}, 400, "resource_exists")
	user.Refused("/api/users/public_keys/add", map[string]string{"key": "nonsense"}, 400, "Invalid public key")
	user.Refused("/api/users/public_keys/add", map[string]string{"key": `command="sh" ` + *me.SSHPublicKey}, 400,
		"Invalid")
	stranger.Refused("/api/users/public_keys/delete", map[string]any{"ids": []string{added.ID}}, 400, "Resource not found")
	var list []wire.PublicKey
	user.Get("/api/users/public_keys/list", nil, &list)
	if len(list) != 1 || list[0] != added {
		t.Errorf("list: %+v", list)
	}
	user.Get("/api/users/public_keys/delete", map[string]any{"ids": []string{added.ID}}, nil)
	if a := user.Send("/api/users/public_keys/list", nil); a.Body != "[]" {
		t.Errorf("list: %s", a.Body)
	}
}

// A token gives no key that opens more than the token does.
func TestTokensGiveNoMoreThanTheyAllow(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	_, _, user, _ := lab(t, s)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	limited := func(c *dstackapitest.Caller, n client.NewToken) *dstackapitest.Caller {
		t.Helper()
		var made client.NewTokenMade
		n.Kind = "user"
		s.Must("POST", "/api/v1/tokens", n, &made)
		return c.As(made.Secret)
	}
	read := limited(user, client.NewToken{User: "uma", Scopes: []core.Scope{core.ScopeRead}})
	submit := limited(user, client.NewToken{User: "uma", Scopes: []core.Scope{core.ScopeSubmit}})
	inLab := limited(user, client.NewToken{User: "uma", Scopes: []core.Scope{core.ScopeSubmit}, Project: "lab"})
	plain := limited(admin, client.NewToken{User: "ada", Scopes: []core.Scope{core.ScopeSubmit}})
	for _, x := range []struct {
		who *dstackapitest.Caller
		key bool // the user's own
	}{{user, true}, {submit, true}, {admin, true}, {read, false}, {inLab, false}, {plain, false}} {
		var me wire.UserWithCreds
		x.who.Get("/api/users/get_my_user", nil, &me)
		if x.who == read {
			if me.SSHPrivateKey != nil {
				t.Error("a token that only reads is told a key")
			}
			continue
		}
		key, err := ssh.ParsePrivateKey([]byte(*me.SSHPrivateKey))
		if err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
		if own := me.SSHPublicKey != nil && strings.HasPrefix(*me.SSHPublicKey, line); own != x.key {
			t.Errorf("%s: the user's own key is told: %t", me.Username, own)
		}
	}
	plain.Refused("/api/users/refresh_ssh_key", `{"username":"ada"}`, 403, denied)
	plain.Refused("/api/users/public_keys/add", `{"key":"ssh-ed25519 AAAA"}`, 403, denied)
	user.Get("/api/project/lab/repos/init", `{"repo_id":"abc","repo_info":{"repo_type":"remote","repo_name":"model"},`+
		`"repo_creds":{"clone_url":"https://git.example/model.git","private_key":null,"oauth_token":"gh-token"}}`, nil)
	for _, who := range []*dstackapitest.Caller{read, inLab} {
		a := who.Send("/api/project/lab/repos/get", `{"repo_id":"abc","include_creds":true}`)
		if a.Status != 200 || strings.Contains(a.Body, "gh-token") != (who == inLab) {
			t.Errorf("access to a repository: %d %s", a.Status, a.Body)
		}
	}
}

func TestRepos(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	boss, _, user, stranger := lab(t, s)
	const base = "/api/project/lab/repos/"
	if a := user.Send(base+"init",
		`{"repo_id":"none","repo_info":{"repo_type":"virtual"},"repo_creds":null}`); a.Body != "null" {
		t.Errorf("virtual: %d %s", a.Status, a.Body)
	}
	if a := user.Send(base+"list", nil); a.Body != `[{"repo_id":"none","repo_info":{"repo_type":"virtual"}}]` {
		t.Errorf("list: %s", a.Body)
	}
	user.Get(base+"init", `{"repo_id":"abc","repo_info":{"repo_type":"remote","repo_name":"model"},`+
		`"repo_creds":{"clone_url":"https://git.example/model.git","private_key":null,"oauth_token":"gh-token"}}`, nil)
	const info = `{"repo_name":"model","repo_type":"remote"}`
	if a := user.Send(base+"get", `{"repo_id":"abc","include_creds":true}`); a.Body != `{"repo_id":"abc","repo_info":`+
		info+
		`,"repo_creds":{"clone_url":"https://git.example/model.git","private_key":null,"oauth_token":"gh-token"}}` {
		t.Errorf("get: %s", a.Body)
	}
	// the access to it is one user's
	if a := boss.Send(base+"get", `{"repo_id":"abc","include_creds":true}`); a.Body != `{"repo_id":"abc","repo_info":`+
		info+
		`,"repo_creds":null}` {
		t.Errorf("another's access: %s", a.Body)
	}
	stranger.Refused(base+"get", `{"repo_id":"abc","include_creds":true}`, 403, denied)
	user.Refused(base+"get", `{"repo_id":"nope","include_creds":false}`, 400, "Resource not found")
	user.Refused(base+"init", `{"repo_id":"x","repo_info":{"repo_type":"svn"}}`, 422, `'remote', 'local' or 'virtual'`)
	if a := upload(user, base+"upload_code?repo_id=abc", "a diff", ""); a.Body != "null" {
		t.Errorf("upload: %d %s", a.Status, a.Body)
	}
	if a := upload(user, base+"upload_code?repo_id=nope", "a diff", ""); a.Status != 400 {
		t.Errorf("upload: %d %s", a.Status, a.Body)
	}
	user.Get(base+"delete", `{"repos_ids":["abc","never"]}`, nil)
	user.Refused(base+"get", `{"repo_id":"abc","include_creds":true}`, 400, "Resource not found")
}

// upload sends a file as a client does; without a name it is named by its hash.
func upload(c *dstackapitest.Caller, path, content, name string) dstackapitest.Answer {
	sum := sha256.Sum256([]byte(content))
	if name == "" {
		name = hex.EncodeToString(sum[:])
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		c.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.T.Context(), http.MethodPost, c.URL+path, &body)
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := c.HTTP.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return dstackapitest.Answer{Status: resp.StatusCode, Body: string(bytes.TrimSpace(data))}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "dstack.upload=64K", "dstack.upload_per_user=100K")
	_, _, user, stranger := lab(t, s)
	const path = "/api/files/upload_archive"
	a := upload(user, path, "hello", "")
	var made, again, found wire.FileArchive
	if err := json.Unmarshal([]byte(a.Body), &made); err != nil || a.Status != 200 || !wire.IsUUID(made.ID) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if err := json.Unmarshal([]byte(upload(user, path, "hello", "").Body), &again); err != nil || again != made {
		t.Errorf("again: %+v", again)
	}
	user.Get("/api/files/get_archive_by_hash", map[string]string{"hash": made.Hash}, &found)
	if found != made {
		t.Errorf("found: %+v", found)
	}
	stranger.Refused("/api/files/get_archive_by_hash", map[string]string{"hash": made.Hash}, 400, "resource_not_exists")
	for what, x := range map[string]struct{ content, name, want string }{
		"another hash": {"hello", strings.Repeat("0", 64), "SHA-256 is another"},
		"a path":       {"hello", "../../x", "SHA-256 of its content"},
		"too large":    {strings.Repeat("x", 65<<10), "", "dstack.upload"},
	} {
		if a := upload(user, path, x.content, x.name); a.Status != 400 || !strings.Contains(a.Body, x.want) {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	upload(user, path, strings.Repeat("a", 60<<10), "")
	if a := upload(user, path, strings.Repeat("b", 60<<10), ""); a.Status != 400 ||
		!strings.Contains(a.Body, "upload_per_user") {
		t.Errorf("too many: %d %s", a.Status, a.Body)
	}
	if a := upload(stranger, path, strings.Repeat("b", 60<<10), ""); a.Status != 200 {
		t.Errorf("another user's: %d %s", a.Status, a.Body)
	}
	user.Refused(path, "{}", 422, `"loc":["body","file"]`)
	// what was refused left nothing
	left, err := filepath.Glob(filepath.Join(s.Dir, "uploads", "*", "tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
