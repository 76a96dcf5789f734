package server_test

import (
	"encoding/json"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// An administrator's uid is there for the root of any node to take. What lasts longer than the call, a token, another
// secret of a token or a private key, would bear the administrator's rights, and stay when the node is gone.
func TestNodesGetNothingThatOutlivesTheCall(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "admins=daemon")
	plain, trusted := s.Join("n1", core.Compute, false), s.Join("n2", core.Login, true)
	do := func(n *servertest.Agent, peer, method, path string, body any) (int, []byte) {
		return nodeDo(t, s, n, peer, method, path, body)
	}
	nodeGet(t, s, trusted, "1:1:daemon")
	var own client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{User: "daemon", Name: "own"}, &own)
	isAdmin := func(secret string) bool {
		var me client.Whoami
		status, _ := s.Call("GET", "/api/v1/whoami", secret, nil, &me)
		return secret != "" && status == 200 && me.Admin
	}
	for _, scopes := range [][]core.Scope{nil, {core.ScopeAdmin}, {core.ScopeRead, core.ScopeSubmit, core.ScopeAdmin}} {
		status, body := do(plain, "1:1:daemon", "POST", "/api/v1/tokens", client.NewToken{Scopes: scopes})
		var made client.NewTokenMade
		if err := json.Unmarshal(body, &made); err == nil && isAdmin(made.Secret) {
			t.Errorf("scopes %v: %d, the token is an administrator's", scopes, status)
		}
	}
	status, body := do(plain, "1:1:daemon", "POST", "/api/v1/tokens/"+own.Token.ID+"/rotate", client.RotateToken{})
	var turned client.NewTokenMade
	if err := json.Unmarshal(body, &turned); err == nil && isAdmin(turned.Secret) {
		t.Errorf("rotated by a node: %d, the secret is an administrator's", status)
	}
	status, body = do(plain, "1:1:daemon", "POST", "/api/v1/tokens/jwt", client.NewJWT{})
	var jwt client.JWT
	if err := json.Unmarshal(body, &jwt); err != nil || status != 200 || isAdmin(jwt.Token) {
		t.Errorf("a JWT by a node: %d %s", status, body)
	}
	for _, scopes := range [][]core.Scope{nil, {core.ScopeAdmin}} {
		var made client.NewTokenMade
		if _, err := s.Call("POST", "/api/v1/tokens", jwt.Token, client.NewToken{Scopes: scopes}, &made); err == nil &&
			isAdmin(made.Secret) {
			t.Errorf("scopes %v: a token by such a JWT is an administrator's", scopes)
		}
	}
	var second client.JWT
	if _, err := s.Call("POST", "/api/v1/tokens/jwt", jwt.Token, client.NewJWT{}, &second); err == nil &&
		isAdmin(second.Token) {
		t.Error("a JWT by such a JWT is an administrator's")
	}
	key := map[string]string{"key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Zs9kGmMZ0c7sKk3oE1m3m2Zt6pA6qk9u2rXv6Yw0n n"}
	if status, body := do(plain, "1:1:daemon", "POST", "/api/v1/dstack/users/public_keys/add", key); status < 400 {
		t.Errorf("a public key by a node: %d %s", status, body)
	}
	for _, path := range []string{"get_my_user", "get_user", "refresh_ssh_key", "refresh_token"} {
		status, body = do(plain, "1:1:daemon", "POST", "/api/v1/dstack/users/"+path, map[string]string{"username": "daemon"})
		var u struct {
			Key   string `json:"ssh_private_key"`
			Creds struct {
				Token string `json:"token"`
			} `json:"creds"`
		}
		_ = json.Unmarshal(body, &u)
		if u.Key != "" || isAdmin(u.Creds.Token) {
			t.Errorf("%s: %d, key %.40q, token %.10q", path, status, u.Key, u.Creds.Token)
		}
	}
	status, body = do(trusted, "1:1:daemon", "POST", "/api/v1/tokens", client.NewToken{})
	var made client.NewTokenMade
	if err := json.Unmarshal(body, &made); err != nil || !isAdmin(made.Secret) {
		t.Errorf("by a node that is trusted: %d %s", status, body)
	}
	status, body = do(plain, "2:2:bin", "POST", "/api/v1/tokens", client.NewToken{})
	if status != 200 {
		t.Errorf("an ordinary user's token by a node: %d %s", status, body)
	}
}
