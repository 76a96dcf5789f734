package people

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

func (a *People) keyRows() []front.Row {
	return []front.Row{
		{
			Path: "/api/users/refresh_ssh_key", Level: front.Auth, Scope: core.ScopeSubmit,
			Action: "ssh_key.refresh", Object: "ssh key", Handle: front.Body(a.refreshKey),
		},
		{Path: "/api/users/public_keys/list", Level: front.Auth, Handle: front.NoBody(a.listPublicKeys)},
		{
			Path: "/api/users/public_keys/add", Level: front.Auth, Scope: core.ScopeSubmit,
			Action: "public_key.add", Object: "public key", Handle: front.Body(a.addPublicKey),
		},
		{
			Path: "/api/users/public_keys/delete", Level: front.Auth, Scope: core.ScopeSubmit,
			Action: "public_key.delete", Object: "public key", Handle: front.Body(a.deletePublicKeys),
		},
	}
}

// ensureKey gives the caller's private key, and makes the pair at its first use.
func (a *People) ensureKey(c *front.Call) (string, error) {
	k, ok := c.Snap.Credential(core.SSHKeyCredential, string(c.User), "")
	if !ok {
		err := a.makeKey(c, c.User, true)
		if err != nil && core.CodeOf(err) != core.Conflict { // another call of the same user was quicker
			return "", err
		}
		if k, ok = a.Engine.Snapshot().Credential(core.SSHKeyCredential, string(c.User), ""); !ok {
			return "", core.Errorf(core.Conflict, "the SSH key of %s was removed meanwhile; try again", c.User)
		}
	}
	private, err := a.vault.Open(k)
	return string(private), err
}

// PublicKey is the caller's public key, of a pair that is made at its first use.
func (a *People) PublicKey(c *front.Call) (string, error) {
	if _, ok := c.Snap.Credential(core.SSHKeyCredential, string(c.User), ""); !ok {
		if _, err := a.ensureKey(c); err != nil {
			return "", err
		}
	}
	k, ok := a.Engine.Snapshot().Credential(core.SSHKeyCredential, string(c.User), "")
	if !ok {
		return "", core.Errorf(core.Conflict, "the SSH key of %s was removed meanwhile; try again", c.User)
	}
	return k.Info, nil
}

// makeKey makes a user's key pair. The private part leaves this function sealed.
func (a *People) makeKey(c *front.Call, user core.UserName, isNew bool) error {
	public, private, err := newKeyPair(string(user))
	if err != nil {
		return err
	}
	k := &core.Credential{Kind: core.SSHKeyCredential, Owner: string(user), Info: public}
	if err := a.vault.Seal(k, private); err != nil {
		return err
	}
	_, err = engine.Do(c.Context(), a.Engine, &state.PutCredential{By: c.Identity, Credential: k, New: isNew})
	return err
}

// newKeyPair makes an Ed25519 pair: the line of authorized_keys, and the file that ssh reads.
func newKeyPair(comment string) (public string, private []byte, err error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return "", nil, err
	}
	p, err := ssh.NewPublicKey(pub)
	if err != nil {
		return "", nil, err
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(p)), "\n") + " " + comment + "\n"
	return line, pem.EncodeToMemory(block), nil
}

// refreshKey makes a user another key pair. The private part is told to its owner only.
func (a *People) refreshKey(c *front.Call, in *usernameBody) (any, error) {
	u, err := a.findUser(c, in.Username)
	if err != nil {
		return nil, err
	}
	if u.Name != c.User && !c.Admin || !a.hasAll(c) {
		return nil, front.ErrForbidden()
	}
	c.About("ssh key of", string(u.Name))
	if err := a.makeKey(c, u.Name, false); err != nil {
		return nil, err
	}
	c.Snap = a.Engine.Snapshot()
	if u.Name == c.User {
		return a.withCreds(c, u, c.Token())
	}
	return &wire.UserWithCreds{User: a.User(c.Snap, u)}, nil
}

func publicKey(k *core.Credential) wire.PublicKey {
	kind, rest, _ := strings.Cut(k.Info, " ")
	_, name, _ := strings.Cut(rest, " ")
	return wire.PublicKey{
		ID: wire.UUID(wire.KindPublicKey, k.Owner+"/"+k.Name), AddedAt: wire.Time(k.Created), Name: name, Type: kind,
		Fingerprint: k.Name,
	}
}

func (a *People) listPublicKeys(c *front.Call) (any, error) {
	out := []wire.PublicKey{}
	for _, k := range c.Snap.CredentialsOf(core.PublicKeyCredential, string(c.User)) {
		out = append(out, publicKey(k))
	}
	return out, nil
}

type addKeyBody struct {
	Key  string  `json:"key" in:"required"`
	Name *string `json:"name"`
}

func (a *People) addPublicKey(c *front.Call, in *addKeyBody) (any, error) {
	if !a.hasAll(c) {
		return nil, front.ErrForbidden()
	}
	p, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(in.Key))
	if err != nil || len(options) > 0 {
		return nil, front.Errorf("Invalid public key")
	}
	if in.Name != nil && *in.Name != "" {
		comment = *in.Name
	}
	comment = strings.Join(strings.Fields(comment), " ")
	k := &core.Credential{
		Kind: core.PublicKeyCredential, Owner: string(c.User), Name: ssh.FingerprintSHA256(p),
		Info: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(p))) + " " + comment,
	}
	c.About("public key", k.Name)
	_, err = engine.Do(c.Context(), a.Engine, &state.PutCredential{By: c.Identity, Credential: k, New: true})
	if err != nil {
		return nil, err
	}
	if made, ok := a.Engine.Snapshot().Credential(k.Kind, k.Owner, k.Name); ok {
		k = made
	}
	return publicKey(k), nil
}

type deleteKeysBody struct {
	IDs []string `json:"ids" in:"required,uuid,max=1000"`
}

func (a *People) deletePublicKeys(c *front.Call, in *deleteKeysBody) (any, error) {
	mine := map[string]core.CredentialKey{}
	for _, k := range c.Snap.CredentialsOf(core.PublicKeyCredential, string(c.User)) {
		mine[publicKey(k).ID] = k.Key()
	}
	for _, id := range in.IDs {
		if _, ok := mine[strings.ToLower(id)]; !ok {
			return nil, front.ErrNotExists()
		}
	}
	for _, id := range in.IDs {
		key := mine[strings.ToLower(id)]
		c.About("public key", key.Name)
		if _, err := engine.Do(c.Context(), a.Engine, &state.DropCredential{By: c.Identity, Key: key}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
