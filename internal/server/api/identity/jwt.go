package identity

import (
	"cmp"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// JWT makes and reads the tokens of Slurm's REST API: JSON Web Tokens that name a user. Those made here are signed with
// a key that is derived from the authority's, or with that of tokens.jwt_key; others' are good by the public keys of
// tokens.jwks. A token that was made with another one keeps that one's limits, and ends with it, or with the secret of
// it that was used.
type JWT struct {
	*call.Base
	Secret []byte // the key where the settings name no file
	files  keyFiles
}

// claims are what a token says.
type claims struct {
	Expires   *float64 `json:"exp"`
	Issued    *float64 `json:"iat,omitempty"`
	NotBefore *float64 `json:"nbf,omitempty"`
	User      string   `json:"sun,omitempty"`           // account, as Slurm has it
	Record    string   `json:"bireme_user,omitempty"`   // the user's record; only of tokens made here
	Parent    string   `json:"bireme_token,omitempty"`  // id of the token that it was made with
	Secret    string   `json:"bireme_secret,omitempty"` // which secret of that token, by secretMark
	Plain     bool     `json:"bireme_plain,omitempty"`  // without an administrator's or a manager's rights
}

// Bounds of tokens.
const (
	maxJWT      = 16 << 10
	defaultLife = core.Seconds(1800) // as Slurm's
	clockSkew   = 60 * time.Second   // by which an issuer's clock may be ahead
)

// isJWT reports whether a secret has the form of a JWT. Tokens of our own have no dots.
func isJWT(secret string) bool { return strings.Count(secret, ".") == 2 }

func badJWT(why string) error {
	return core.Errorf(core.Unknown, "the JWT is not good: %s", why).Because("bad_token")
}

// Create answers POST /tokens/jwt: a token for the caller, or for anybody where an administrator asks.
func (j *JWT) Create(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.NewJWT
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	if j.Settings().Tokens.JWTAdminsOnly && !who.Admin {
		return nil, core.Errorf(core.Denied, "only administrators make JWTs here (tokens.jwt_admins_only)").
			Because("access_denied")
	}
	if who.Prior {
		return nil, core.Errorf(core.Denied, "the old secret of a rotated token cannot create tokens").
			Because("token_scope")
	}
	user, recorded := who.UserRecord, true
	if in.User != "" && in.User != who.User && string(in.User) != user.UnixName {
		who.Trail.Owner = in.User
		if !who.Admin {
			return nil, core.Errorf(core.Denied, "only an administrator makes tokens for others").Because("access_denied")
		}
		var err error
		if user, recorded, err = j.userOf(string(in.User)); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	end, err := j.end(who, in.Lifespan, now)
	if err != nil {
		return nil, err
	}
	stamp := float64(max(now.Unix(), lastRevoked(user)+1)) // one that is made in the second of a revocation is good
	c := claims{Issued: &stamp, Expires: &end, User: user.UnixName}
	if recorded {
		c.Record = string(user.Name)
	}
	if c.User == "" {
		c.User = string(user.Name)
	}
	if t := who.TokenRecord; t != nil {
		c.Parent, c.Secret = t.ID, secretMark(t.Hash)
	}
	c.Plain = who.Plain || who.Untrusted
	text, err := j.sign(&c)
	if err != nil {
		return nil, err
	}
	return &client.JWT{Token: text, User: user.Name, Expires: core.At(time.Unix(int64(end), 0))}, nil
}

// lastRevoked is the last second whose JWTs of a user are revoked; -1: none are.
func lastRevoked(u *core.User) int64 {
	if u.NoJWTs == 0 {
		return -1
	}
	return u.NoJWTs.Go().Unix()
}

// Revoke answers POST /tokens/jwt/revoke: a user's JWTs from before are good no more, whoever made them.
func (j *JWT) Revoke(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.RevokeJWTs
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	in.User = cmp.Or(in.User, who.User)
	who.Trail.Owner = in.User
	if _, err := engine.Do(r.Context(), j.Engine, &state.RevokeJWTs{By: who.Identity, User: in.User}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

// end is when a token ends that is made now: with the one that it is made with at the latest.
func (j *JWT) end(who *call.Caller, life core.Seconds, now time.Time) (float64, error) {
	if life < 0 {
		return 0, core.Errorf(core.Invalid, "lifespan: %d must not be negative", life)
	}
	most := j.Settings().Tokens.MaxLifetime
	bounded := most > 0 && !who.Admin
	switch {
	case life == 0:
		if life = defaultLife; bounded {
			life = min(life, core.Seconds(most.D()/time.Second))
		}
	case bounded && life.Duration() > most.D():
		return 0, core.Errorf(core.Denied, "lifespan: tokens last at most %s (tokens.max_lifetime)", most).
			Because("token_lifetime")
	}
	end := core.At(now.Add(min(life, maxTTL).Duration()))
	for _, most := range []core.Time{expiryOf(who.TokenRecord), who.Until} {
		if most != 0 && most < end {
			end = most
		}
	}
	return float64(end.Go().Unix()), nil
}

// expiryOf is when a token ends; 0: never, or there is none.
func expiryOf(t *core.Token) core.Time {
	if t == nil {
		return 0
	}
	return t.Expires
}

// secretMark names a secret of a token among those that it had.
func secretMark(h core.Hash) string { return hex.EncodeToString(h[:8]) }

// secretOf reports whether a JWT was made with a secret of a token that works, and whether it is the one before the
// last rotation.
func (c *claims) secretOf(t *core.Token, now time.Time) (prior, ok bool) {
	switch {
	case c.Secret == secretMark(t.Hash):
		return false, true
	case !t.Prior.IsZero() && c.Secret == secretMark(t.Prior):
		return true, t.PriorUntil.Go().After(now)
	}
	return false, false
}

// userOf finds the record of a name: that of an account of this host, or a user's own name. recorded: the state has it,
// which of an account it may have from its first use on.
func (j *JWT) userOf(name string) (user *core.User, recorded bool, err error) {
	snap, err := j.Snapshot()
	if err != nil {
		return nil, false, err
	}
	if acc, err := account.ByName(name); err == nil {
		if u, ok := snap.UserByUID(acc.UID); ok {
			return u, true, nil
		}
		uid := acc.UID
		return &core.User{Name: core.UserName(name), UnixName: name, UID: &uid}, false, nil
	}
	if u, ok := snap.User(core.UserName(name)); ok {
		return u, true, nil
	}
	return nil, false, core.Errorf(core.NotFound, "there is no user %.80q", name).Because("invalid_user")
}

var jwtHead = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

func (j *JWT) sign(c *claims) (string, error) {
	key, err := j.key()
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	text := jwtHead + "." + base64.RawURLEncoding.EncodeToString(body)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// key is what tokens are signed with here.
func (j *JWT) key() ([]byte, error) {
	file := j.Settings().Tokens.JWTKey
	if file == "" {
		return j.Secret, nil
	}
	key, err := j.files.read(file)
	if err != nil || len(key) < 16 {
		return nil, &core.Error{Code: core.Unavailable, Message: "the key of tokens.jwt_key cannot be read", Err: err}
	}
	return key, nil
}

// check reads a token and finds out whether it is good. shared: it is signed with the key that makes them, not by an
// issuer of tokens.jwks.
func (j *JWT) check(text string, now time.Time) (c *claims, shared bool, err error) {
	parts := strings.Split(text, ".")
	if len(text) > maxJWT || len(parts) != 3 {
		return nil, false, badJWT("it has another form")
	}
	var head struct {
		Alg string `json:"alg"`
		Kid string `json:"kid"`
	}
	if err := decodePart(parts[0], &head); err != nil {
		return nil, false, badJWT("its head cannot be read")
	}
	sum, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, false, badJWT("its signature cannot be read")
	}
	signed := []byte(parts[0] + "." + parts[1])
	switch head.Alg {
	case "HS256":
		key, err := j.key()
		if err != nil {
			return nil, false, err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write(signed)
		if !hmac.Equal(mac.Sum(nil), sum) {
			return nil, false, badJWT("its signature is wrong")
		}
		shared = true
	case "RS256":
		if err := j.checkRSA(head.Kid, signed, sum); err != nil {
			return nil, false, err
		}
	default:
		return nil, false, badJWT("its algorithm is neither HS256 nor RS256")
	}
	c = &claims{}
	if err := decodePart(parts[1], c); err != nil {
		return nil, false, badJWT("its claims cannot be read")
	}
	if err := j.userClaim(parts[1], c, shared); err != nil {
		return nil, false, err
	}
	return c, shared, c.inForce(now)
}

// userClaim takes the user from the claim that the settings name.
func (j *JWT) userClaim(part string, c *claims, shared bool) error {
	if !shared { // nobody else speaks of our records
		c.Record, c.Parent = "", ""
	}
	if field := j.Settings().Tokens.JWTUserClaim; field != "" && (!shared || c.User == "") {
		var all map[string]any
		if err := decodePart(part, &all); err != nil {
			return badJWT("its claims cannot be read")
		}
		c.User, _ = all[field].(string)
	}
	if c.User == "" {
		return badJWT("it names no user")
	}
	return nil
}

// stampOf is a time of a claim. Those beyond what core.Time has are far enough.
func stampOf(f float64) time.Time { return time.Unix(int64(min(max(f, 0), 1<<33)), 0) }

func (c *claims) inForce(now time.Time) error {
	switch {
	case c.Expires == nil:
		return badJWT("it does not say when it ends (exp)")
	case !stampOf(*c.Expires).After(now):
		return core.Errorf(core.Unknown, "the JWT expired at %s", stampOf(*c.Expires).Format(time.RFC3339)).
			Because("token_expired")
	case c.NotBefore != nil && stampOf(*c.NotBefore).After(now.Add(clockSkew)):
		return badJWT("it is not good yet (nbf)")
	case c.Issued != nil && stampOf(*c.Issued).After(now.Add(clockSkew)):
		return badJWT("it was made in the future (iat)")
	}
	return nil
}

// issued is when a token was made; a millionth of a second after the epoch: it does not say.
func (c *claims) issued() core.Time {
	if c.Issued == nil {
		return 1
	}
	return max(1, core.At(stampOf(*c.Issued)))
}

func decodePart(text string, to any) error {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// checkRSA checks a signature by the public key of tokens.jwks that it names.
func (j *JWT) checkRSA(kid string, signed, sum []byte) error {
	file := j.Settings().Tokens.JWKS
	if file == "" {
		return badJWT("no issuer's keys are known here (tokens.jwks)")
	}
	data, err := j.files.read(file)
	if err != nil {
		return &core.Error{Code: core.Unavailable, Message: "the keys of tokens.jwks cannot be read", Err: err}
	}
	var set struct {
		Keys []struct {
			Kid, Kty, Alg, N, E string
		} `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return &core.Error{Code: core.Unavailable, Message: "the keys of tokens.jwks cannot be read", Err: err}
	}
	digest := sha256.Sum256(signed)
	for _, k := range set.Keys {
		if k.Kty != "RSA" || k.Alg != "" && k.Alg != "RS256" || kid != "" && k.Kid != kid {
			continue
		}
		n, err1 := base64.RawURLEncoding.DecodeString(k.N)
		e, err2 := base64.RawURLEncoding.DecodeString(k.E)
		if err1 != nil || err2 != nil || len(n) < 256 || len(e) == 0 || len(e) > 4 {
			continue // a key below 2048 bits is none
		}
		public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		if rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], sum) == nil {
			return nil
		}
	}
	return badJWT("its signature is wrong")
}

// byJWT finds the user a token of Slurm's kind speaks for.
func (a *Identity) byJWT(ctx context.Context, text string) (*call.Caller, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	c, shared, err := a.JWT.check(text, time.Now())
	if err != nil {
		return nil, err
	}
	var parent *core.Token
	prior := false
	if c.Parent != "" {
		t, ok := snap.Token(c.Parent)
		if !ok || t.Revoked || t.Expires != 0 && t.Expires.Go().Before(time.Now()) {
			return nil, badJWT("the token that it was made with is over")
		}
		if prior, ok = c.secretOf(t, time.Now()); !ok {
			return nil, badJWT("the token that it was made with has another secret now")
		}
		parent = t
	}
	if u, ok := snap.User(core.UserName(c.Record)); ok && c.Issued != nil && *c.Issued < float64(u.Created.Go().Unix()) {
		return nil, badJWT("it is from before its user was made")
	}
	who, err := a.byName(ctx, c.Record, c.User, shared)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		a.Tokens.bearer(who, parent, prior)
	}
	if c.Plain {
		who.Admin, who.Plain, who.Untrusted = false, true, true
	}
	who.Until, who.Issued = core.At(stampOf(*c.Expires)), c.issued()
	if last := lastRevoked(who.UserRecord); who.Issued.Go().Unix() <= last {
		return nil, badJWT("it was revoked")
	}
	return who, nil
}

// byName finds a user by record, or by account. By an account that has no record one is made, as for callers on a
// socket. asRoot: root's account and the server's own are administrators.
func (a *Identity) byName(ctx context.Context, record, name string, asRoot bool) (*call.Caller, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	isAdmin := func(uid uint32) bool { return asRoot && (uid == 0 || int(uid) == os.Geteuid()) }
	u, ok := snap.User(core.UserName(record))
	if !ok {
		if acc, err := account.ByName(name); err == nil {
			return a.byPeer(ctx, &peer{
				uid: acc.UID, gid: acc.GID, name: func() string { return acc.Name }, trusted: true, admin: isAdmin(acc.UID),
			})
		}
		if u, ok = snap.User(core.UserName(name)); !ok {
			return nil, badJWT("its user is not known here")
		}
	}
	uid, gid, hasGID := processesOf(u)
	who, err := a.callerOf(u, uid, gid, hasGID)
	if err == nil && hasGID {
		who.Admin = who.Admin || isAdmin(uid)
	}
	return who, err
}

// actAs lets an administrator's call of Slurm's API be one of the user that X-SLURM-USER-NAME names. The limits of the
// token that it came with stay.
func (a *Identity) actAs(ctx context.Context, who *call.Caller, name string) (*call.Caller, error) {
	if name == string(who.User) || name == who.UserRecord.UnixName {
		return who, nil
	}
	if !who.Admin {
		return nil, core.Errorf(core.Unknown, "the token is not one of user %.80q", name).Because("bad_token")
	}
	other, err := a.byName(ctx, "", name, false)
	if err != nil {
		return nil, err
	}
	if t := who.TokenRecord; t != nil {
		a.Tokens.bearer(other, t, who.Prior)
	}
	other.Untrusted = who.Untrusted
	other.Until, other.Issued, other.Actor = who.Until, who.Issued, &who.Identity
	return other, nil
}

// keyFiles reads files of keys again when they have changed.
type keyFiles struct {
	mu   sync.Mutex
	kept map[string]keyFile
}

type keyFile struct {
	checked, changed time.Time
	data             []byte
}

// recheckKey is how often the file of a key is looked at.
const recheckKey = 5 * time.Second

// maxKeyFile bounds a file of keys.
const maxKeyFile = 1 << 20

func (f *keyFiles) read(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	k := f.kept[name]
	if k.data != nil && now.Sub(k.checked) < recheckKey {
		return k.data, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if k.data == nil || !info.ModTime().Equal(k.changed) {
		if info.Size() > maxKeyFile {
			return nil, core.Errorf(core.Invalid, "%s has more than %d bytes", name, maxKeyFile)
		}
		if k.data, err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	k.checked, k.changed = now, info.ModTime()
	if f.kept == nil {
		f.kept = map[string]keyFile{}
	}
	f.kept[name] = k
	return k.data, nil
}
