package slurmapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// TestJWTEnds: with a JWT nobody gets a token that lasts longer than it does.
func TestJWTEnds(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	s.Token(core.User{Name: "ann", UnixName: "nobody"})
	first, err := s.Client().NewJWT(t.Context(), &client.NewJWT{User: "ann", Lifespan: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var next client.JWT
	status, e := s.Call("POST", "/api/v1/tokens/jwt", first.Token, client.NewJWT{Lifespan: 1 << 20}, &next)
	if status != 200 || next.Expires > first.Expires {
		t.Errorf("a JWT by a JWT: %d %v, until %s", status, e, next.Expires.Go())
	}
	var made client.NewTokenMade
	if status, e := s.Call("POST", "/api/v1/tokens", first.Token, client.NewToken{}, &made); status != 200 ||
		made.Token.Expires == 0 || made.Token.Expires > first.Expires {
		t.Errorf("a token by a JWT: %d %v, until %s", status, e, made.Token.Expires.Go())
	}
	if status, _ := s.Call("POST", "/api/v1/tokens", first.Token, client.NewToken{TTL: 1 << 20}, nil); status != 403 {
		t.Errorf("a longer token by a JWT: %d", status)
	}
	long, err := s.Client().NewToken(t.Context(), &client.NewToken{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/tokens/" + long.Token.ID
	if status, e := s.Call("POST", path+"/rotate", first.Token, client.RotateToken{}, &made); status != 200 ||
		made.Token.Expires == 0 || made.Token.Expires > first.Expires {
		t.Errorf("a rotation by a JWT: %d %v, until %s", status, e, made.Token.Expires.Go())
	}
}

// TestJWTOfRotatedToken: a JWT works as long as the secret that it was made with, and may do what that may.
func TestJWTOfRotatedToken(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	s.Token(core.User{Name: "ann", UnixName: "nobody"})
	made, err := s.Client().NewToken(t.Context(), &client.NewToken{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	var jwt client.JWT
	if status, e := s.Call("POST", "/api/v1/tokens/jwt", made.Secret, client.NewJWT{}, &jwt); status != 200 {
		t.Fatalf("%d %v", status, e)
	}
	c := *root
	c.token = jwt.Token
	rotate := "/api/v1/tokens/" + made.Token.ID + "/rotate"
	if status, _ := s.Call("POST", rotate, jwt.Token, client.RotateToken{}, nil); status != 403 {
		t.Errorf("a JWT gives its token another secret: %d", status)
	}
	if status, e := s.Call("POST", rotate, made.Secret, client.RotateToken{Overlap: 1000}, nil); status != 200 {
		t.Fatalf("%d %v", status, e)
	}
	if status, e := c.do("GET", "/slurm/v0.0.43/ping", "", nil); status != 200 {
		t.Errorf("while the old secret works: %d %+v", status, e)
	}
	for name, token := range map[string]string{"secret": made.Secret, "JWT": jwt.Token} {
		if status, _ := s.Call("POST", "/api/v1/tokens/jwt", token, client.NewJWT{}, nil); status != 403 {
			t.Errorf("the old %s makes a JWT: %d", name, status)
		}
	}
	if _, err := s.Client().RotateToken(t.Context(), made.Token.ID, &client.RotateToken{}); err != nil {
		t.Fatal(err)
	}
	if status, e := c.do("GET", "/slurm/v0.0.43/ping", "", nil); status != 401 {
		t.Errorf("when the old secret works no more: %d %+v", status, e)
	}
}

// TestJWTOfEarlierUser: whoever gets the name of a user who was deleted is not reached by that one's JWTs.
func TestJWTOfEarlierUser(t *testing.T) {
	t.Parallel()
	key := []byte("a key of more than sixteen bytes")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	s, root := start(t, "tokens.jwt_key="+file)
	s.Token(core.User{Name: "ann", UnixName: "nobody"})
	now := time.Now().Unix()
	for name, tc := range map[string]struct {
		issued int64
		status int
	}{"before": {now - 3600, 401}, "since": {now, 200}} {
		b64 := base64.RawURLEncoding.EncodeToString
		text := b64([]byte(`{"alg":"HS256"}`)) + "." + b64(fmt.Appendf(nil,
			`{"sun":"nobody","bireme_user":"ann","iat":%d,"exp":%d}`, tc.issued, now+3600))
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		c := *root
		c.token = text + "." + b64(mac.Sum(nil))
		if status, e := c.do("GET", "/slurm/v0.0.43/ping", "", nil); status != tc.status {
			t.Errorf("a JWT from %s its user was made: %d %+v", name, status, e)
		}
	}
}

// TestRevokedJWTs: a user's JWTs can be ended without those who have them, and what was made with them; those made
// afterwards are good. Nobody ends another's.
func TestRevokedJWTs(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	bob := s.Token(core.User{Name: "bob", UnixName: "daemon"})
	s.Token(core.User{Name: "ann", UnixName: "nobody"})
	newJWT := func() string {
		jwt, err := s.Client().NewJWT(t.Context(), &client.NewJWT{User: "ann", Lifespan: core.Forever})
		if err != nil {
			t.Fatal(err)
		}
		return jwt.Token
	}
	ping := func(token string) int {
		c := *root
		c.token = token
		status, _ := c.do("GET", "/slurm/v0.0.43/ping", "", nil)
		return status
	}
	stolen := newJWT()
	var further client.JWT
	if status, e := s.Call("POST", "/api/v1/tokens/jwt", stolen, client.NewJWT{}, &further); status != 200 {
		t.Fatalf("%d %v", status, e)
	}
	revoke := client.RevokeJWTs{User: "ann"}
	if status, _ := s.Call("POST", "/api/v1/tokens/jwt/revoke", bob, revoke, nil); status != 404 || ping(stolen) != 200 {
		t.Errorf("bob revokes ann's JWTs: %d", status)
	}
	look, err := s.Client().NewToken(t.Context(), &client.NewToken{User: "ann", Scopes: []core.Scope{core.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := s.Call("POST", "/api/v1/tokens/jwt/revoke", look.Secret, revoke, nil); status != 403 {
		t.Errorf("a token that only reads revokes JWTs: %d", status)
	}
	if err := s.Client().RevokeJWTs(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if a, b := ping(stolen), ping(further.Token); a != 401 || b != 401 {
		t.Errorf("revoked JWTs: %d, and %d one that was made with it", a, b)
	}
	s.Must("PATCH", "/api/v1/users/ann", map[string]any{"no_jwts": 1, "email": "ann@example.org"}, nil)
	if status := ping(stolen); status != 401 {
		t.Errorf("a revoked JWT after a change of its user: %d", status)
	}
	if status := ping(newJWT()); status != 200 {
		t.Errorf("a JWT made afterwards: %d", status)
	}
}

// TestHostileYAML: a small document that stands for a large one, and one with very many values, are refused.
func TestHostileYAML(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"aliases": {
			"script: &x \"" + strings.Repeat("x", 1<<20) + "\"\nmade_up: [" + strings.Repeat("*x,", 1000) + "]\n", 400,
		},
		"values":  {"made_up:\n" + strings.Repeat("- 1\n", 1<<20), 413},
		"flow":    {"made_up: [" + strings.Repeat("1,", 1<<20) + "]", 413},
		"deep":    {strings.Repeat("[", 20_000), 400},
		"comment": {"# nothing\n", 400},
	} {
		status, text := c.raw("POST", "/slurm/v0.0.43/job/submit", "application/yaml", tc.body)
		if status != tc.status {
			t.Errorf("%s: %d %.200s", name, status, text)
		}
	}
}
