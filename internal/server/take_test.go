package server_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

const takenSecret = "e289a009-7422-4d57-b333-34eaa2fff7be"

// keyPair is a private key and its line of authorized_keys.
func keyPair(t *testing.T, seed byte) (private, public string) {
	t.Helper()
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(p))
}

// TestTokensAreTakenOver: a secret of another server opens what its user may do, until it is revoked; taking it over
// again changes nothing.
func TestTokensAreTakenOver(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	s.Must("POST", "/api/v1/users", core.User{Name: "ann"}, nil)
	private, public := keyPair(t, 'a')
	in := client.TakeUser{Token: takenSecret, SSHKey: private, PublicKeys: []string{public}, DryRun: true}
	take := func(want client.Taken) {
		t.Helper()
		var out client.UserTaken
		s.Must("POST", "/api/v1/users/ann/take", in, &out)
		if out.Token != want || out.SSHKey != want || len(out.PublicKeys) != 1 || out.PublicKeys[0] != want {
			t.Errorf("got %+v, want %s", out, want)
		}
	}
	me := func() int {
		status, _ := s.Call("GET", "/api/v1/whoami", takenSecret, nil, nil)
		return status
	}
	take(client.TakenNow)
	if me() != 401 {
		t.Error("a dry run took the token over")
	}
	in.DryRun = false
	take(client.TakenNow)
	take(client.TakenBefore)
	var who client.Whoami
	status, err := s.Call("GET", "/api/v1/whoami", takenSecret, nil, &who)
	if err != nil || who.User != "ann" || who.Admin {
		t.Errorf("%d %v: %+v", status, err, who)
	}
	in.SSHKey, _ = keyPair(t, 'b')
	var out client.UserTaken
	s.Must("POST", "/api/v1/users/ann/take", in, &out)
	if out.SSHKey != client.TakenOther {
		t.Errorf("another key is %q", out.SSHKey)
	}
	var list client.TokenList
	s.Must("GET", "/api/v1/tokens", nil, &list)
	id := ""
	for _, k := range list.Tokens {
		if k.User == "ann" {
			id = k.ID
		}
	}
	s.Must("DELETE", "/api/v1/tokens/"+id, nil, nil)
	if me() != 401 {
		t.Error("it works after it was revoked")
	}
	if status, err := s.Call("POST", "/api/v1/users/ann/take", "", in, nil); status != 409 {
		t.Errorf("a revoked one comes back: %d %v", status, err)
	}
	var audit client.AuditList
	s.Must("GET", "/api/v1/audit?action=user.take", nil, &audit)
	if len(audit.Entries) == 0 {
		t.Error("it is not in the audit log")
	}
	for _, e := range audit.Entries {
		if strings.Contains(e.Detail, takenSecret) || strings.Contains(e.Detail, "PRIVATE") {
			t.Errorf("the audit log has secrets: %s", e.Detail)
		}
	}
}

// TestTakeOverIsRefused: to those who are no administrators, and where a secret is weak, another's, or no key.
func TestTakeOverIsRefused(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	bob := s.Token(core.User{Name: "bob"})
	boss := s.Token(core.User{Name: "boss", Role: core.RoleAdmin})
	plain := makeToken(t, s, boss, client.NewToken{Scopes: []core.Scope{core.ScopeSubmit}}).Secret
	s.Must("POST", "/api/v1/users/bob/take", client.TakeUser{Token: takenSecret}, nil)
	for _, c := range []struct {
		what, token, user string
		in                client.TakeUser
		want              int
	}{
		{"a user", bob, "bob", client.TakeUser{Token: takenSecret + "2"}, 403},
		{"a token without scope admin", plain, "bob", client.TakeUser{Token: takenSecret + "2"}, 403},
		{"nobody", "", "nobody", client.TakeUser{Token: takenSecret + "2"}, 404},
		{"a short one", "", "bob", client.TakeUser{Token: "short"}, 400},
		{"a long one", "", "bob", client.TakeUser{Token: strings.Repeat("x", 201)}, 400},
		{"blanks", "", "bob", client.TakeUser{Token: "sixteen characters and blanks"}, 400},
		{"one of ours", "", "bob", client.TakeUser{Token: "bm_0123456789abcdef0123456789"}, 400},
		{"another's", "", "boss", client.TakeUser{Token: takenSecret}, 409},
		{"no key", "", "bob", client.TakeUser{SSHKey: "x"}, 400},
		{"no public key", "", "bob", client.TakeUser{PublicKeys: []string{"x"}}, 400},
		{"the token is sound, a key is not", "", "boss", client.TakeUser{Token: takenSecret + "3", SSHKey: "x"}, 400},
	} {
		if status, err := s.Call("POST", "/api/v1/users/"+c.user+"/take", c.token, c.in, nil); status != c.want {
			t.Errorf("%s: %d (%v), want %d", c.what, status, err, c.want)
		}
	}
	if status, _ := s.Call("GET", "/api/v1/whoami", takenSecret+"3", nil, nil); status != 401 {
		t.Error("a part of a refused call was done")
	}
	if status, _ := s.Call("GET", "/api/v1/whoami", "", nil, nil); status != 200 {
		t.Error("the socket does not answer")
	}
}
