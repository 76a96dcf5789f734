package identity

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/vault"
)

// Takeover takes over what users had at another server: a token with the secret that their clients have, and keys.
type Takeover struct {
	*call.Base
	Tokens *Tokens
	Vault  *vault.Vault
}

// maxPublicKeys bounds the keys of one call.
const maxPublicKeys = 100

// Take answers POST /users/{name}/take. All of it is checked before anything is done.
func (a *Takeover) Take(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only administrators take over tokens and keys").Because("access_denied")
	}
	var in client.TakeUser
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	u, err := v.FindUser(core.UserName(r.PathValue("name")))
	if err != nil {
		return nil, err
	}
	who.Trail.Owner = u.Name
	t := &taking{a: a, who: who, user: u.Name, snap: v.Snap}
	out := &client.UserTaken{}
	for _, step := range []func() error{
		func() (err error) { out.Token, err = t.token(&in); return err },
		func() (err error) { out.SSHKey, err = t.sshKey(in.SSHKey); return err },
		func() (err error) { out.PublicKeys, err = t.publicKeys(in.PublicKeys); return err },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if in.DryRun {
		return out, nil
	}
	for _, do := range t.todo {
		if err := do(r.Context()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// taking is one call.
type taking struct {
	a    *Takeover
	who  *call.Caller
	user core.UserName
	snap *state.Snapshot
	todo []func(context.Context) error
}

func (t *taking) token(in *client.TakeUser) (client.Taken, error) {
	if in.Token == "" {
		return client.TakenNothing, nil
	}
	bad := func(r rune) bool { return r <= ' ' || r > '~' }
	n := len(in.Token)
	if n < client.MinTakenToken || n > client.MaxTakenToken || strings.IndexFunc(in.Token, bad) >= 0 {
		return "", core.Errorf(core.Invalid, "token: a secret that is taken over has %d to %d characters without blanks; "+
			"make a new one for %s", client.MinTakenToken, client.MaxTakenToken, t.user).Because("invalid_token")
	}
	if strings.HasPrefix(in.Token, tokenPrefix) {
		return "", core.Errorf(core.Invalid, "token: a secret that begins with %s is one of this system's own", tokenPrefix).
			Because("invalid_token")
	}
	hash := hashToken(in.Token)
	if old, ok := t.snap.TokenByHash(hash); ok {
		if old.User == t.user && !old.Dead(core.At(time.Now())) && old.Hash == hash {
			return client.TakenBefore, nil
		}
		return "", core.Errorf(core.Conflict, "token: a token with this secret is here already: it is another user's, or "+
			"works no more").Because("token_exists")
	}
	now := time.Now()
	end, err := t.a.Tokens.tokenEnd(t.who, in.TTL, dstackClient, now)
	if err != nil {
		return "", err
	}
	made := &core.Token{
		ID: call.NewID(), Hash: hash, Kind: "user", User: t.user, Client: dstackClient, Created: core.At(now), Expires: end,
		Note: "taken over with its secret",
	}
	t.todo = append(t.todo, func(ctx context.Context) error {
		_, err := engine.Do(ctx, t.a.Engine, &state.PutToken{By: t.who.Identity, Token: made})
		if err == nil {
			t.who.AboutToken(made)
		}
		return err
	})
	return client.TakenNow, nil
}

// sshKey takes over the pair that a server made for the user; one that was made here stays.
func (t *taking) sshKey(private string) (client.Taken, error) {
	if private == "" {
		return client.TakenNothing, nil
	}
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil || len(private) > core.MaxCredentialInfo {
		return "", core.Errorf(core.Invalid, "ssh_key: is not a private key without a passphrase").Because("invalid_key")
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if old, ok := t.snap.Credential(core.SSHKeyCredential, string(t.user), ""); ok {
		if subtle.ConstantTimeCompare([]byte(keyOf(old.Info)), []byte(keyOf(line))) == 1 {
			return client.TakenBefore, nil
		}
		return client.TakenOther, nil
	}
	c := &core.Credential{Kind: core.SSHKeyCredential, Owner: string(t.user), Info: line + " " + string(t.user) + "\n"}
	if err := t.a.Vault.Seal(c, []byte(private)); err != nil {
		return "", err
	}
	t.put(c)
	return client.TakenNow, nil
}

// keyOf is a line of authorized_keys without its comment.
func keyOf(line string) string {
	f := strings.Fields(line)
	return strings.Join(f[:min(2, len(f))], " ")
}

func (t *taking) publicKeys(list []string) (out []client.Taken, err error) {
	if len(list) > maxPublicKeys {
		return nil, core.Errorf(core.Invalid, "public_keys: %d are more than %d", len(list), maxPublicKeys)
	}
	for i, line := range list {
		p, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil || len(options) > 0 || len(line) > core.MaxCredentialInfo {
			return nil, core.Errorf(core.Invalid, "public_keys[%d]: is not a public key", i).Because("invalid_key")
		}
		c := &core.Credential{
			Kind: core.PublicKeyCredential, Owner: string(t.user), Name: ssh.FingerprintSHA256(p),
			Info: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(p))) + " " + strings.Join(strings.Fields(comment), " "),
		}
		if _, ok := t.snap.Credential(c.Kind, c.Owner, c.Name); ok {
			out = append(out, client.TakenBefore)
			continue
		}
		t.put(c)
		out = append(out, client.TakenNow)
	}
	return out, nil
}

// put stores a credential that is not there yet. Another call may have been quicker.
func (t *taking) put(c *core.Credential) {
	t.todo = append(t.todo, func(ctx context.Context) error {
		_, err := engine.Do(ctx, t.a.Engine, &state.PutCredential{By: t.who.Identity, Credential: c, New: true})
		if core.CodeOf(err) == core.Conflict {
			return nil
		}
		return err
	})
}
