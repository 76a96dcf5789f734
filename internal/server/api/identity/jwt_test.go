package identity

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

func newJWT(t *testing.T, set func(*config.Tokens)) *JWT {
	t.Helper()
	cfg := config.Default()
	if set != nil {
		set(&cfg.Tokens)
	}
	b := &call.Base{}
	b.StoreConfig(cfg)
	return &JWT{Base: b, Secret: []byte("a key of at least sixteen bytes")}
}

func number(n int64) *float64 {
	f := float64(n)
	return &f
}

// TestJWT has which tokens are good.
func TestJWT(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	j, later := newJWT(t, nil), number(now.Unix()+900)
	for name, tc := range map[string]struct {
		claims claims
		reason string // of the refusal; empty: it is good
	}{
		"good":       {claims{User: "ann", Expires: number(now.Unix() + 60)}, ""},
		"expired":    {claims{User: "ann", Expires: number(now.Unix())}, "token_expired"},
		"endless":    {claims{User: "ann"}, "bad_token"},
		"nobody's":   {claims{Expires: number(now.Unix() + 60)}, "bad_token"},
		"not yet":    {claims{User: "ann", Expires: later, NotBefore: number(now.Unix() + 600)}, "bad_token"},
		"from later": {claims{User: "ann", Expires: later, Issued: number(now.Unix() + 600)}, "bad_token"},
	} {
		text, err := j.sign(&tc.claims)
		if err != nil {
			t.Fatal(err)
		}
		c, shared, err := j.check(text, now)
		if got := core.ReasonOf(err); got != tc.reason || err == nil && (c.User != "ann" || !shared) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := newJWT(t, func(s *config.Tokens) {
			s.JWTKey = keyFileOf(t, []byte("another key of more than sixteen bytes"))
		}).check(text, now); core.ReasonOf(err) != "bad_token" {
			t.Errorf("%s, by another key: %v", name, err)
		}
	}
	for _, head := range []string{`{"alg":"none"}`, `{"alg":"HS512"}`, `{}`, `x`} {
		text := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"sun":"root","exp":9999999999}`)) + "."
		if _, _, err := j.check(text, now); core.ReasonOf(err) != "bad_token" {
			t.Errorf("%s: %v", head, err)
		}
	}
}

func keyFileOf(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestJWKS: an issuer's tokens are good by its public key, name the user by the claim of the settings, and say nothing
// of our records.
func TestJWKS(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "alg": "RS256", "kid": "k1", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	j := newJWT(t, func(s *config.Tokens) { s.JWKS, s.JWTUserClaim = keyFileOf(t, set), "login" })
	sign := func(head, body string) string {
		text := b64([]byte(head)) + "." + b64([]byte(body))
		sum := sha256.Sum256([]byte(text))
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + b64(sig)
	}
	now := time.Unix(1_800_000_000, 0)
	body := `{"login":"ann","exp":1800000060,"bireme_user":"root","bireme_token":"x"}`
	c, shared, err := j.check(sign(`{"alg":"RS256","kid":"k1"}`, body), now)
	if err != nil || shared || c.User != "ann" || c.Record != "" || c.Parent != "" {
		t.Errorf("%+v %v %v", c, shared, err)
	}
	if _, _, err := j.check(sign(`{"alg":"RS256","kid":"k2"}`, body), now); core.ReasonOf(err) != "bad_token" {
		t.Errorf("another key's name: %v", err)
	}
	// A public key is no secret: it signs nothing.
	if _, _, err := j.check(sign(`{"alg":"HS256","kid":"k1"}`, body), now); core.ReasonOf(err) != "bad_token" {
		t.Errorf("another algorithm: %v", err)
	}
	_, _, err = newJWT(t, nil).check(sign(`{"alg":"RS256","kid":"k1"}`, body), now)
	if core.ReasonOf(err) != "bad_token" {
		t.Errorf("without keys: %v", err)
	}
}
