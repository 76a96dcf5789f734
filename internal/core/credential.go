package core

// Credential is what the server holds for a project or a user so that runs and people can use it: a secret, a
// repository and the access to it, a key. What must not be known is sealed by the server.
type Credential struct {
	Kind    CredentialKind `json:"kind"`
	Owner   string         `json:"owner"` // a project or a user, by Kind
	Name    string         `json:"name"`  // unique for Kind and Owner
	Info    string         `json:"info,omitempty"`
	Sealed  string         `json:"sealed,omitempty"` // base64; see CredentialKey.SealName
	By      UserName       `json:"by,omitempty"`     // who last changed it
	Created Time           `json:"created"`
	Changed Time           `json:"changed,omitempty"`
}

// CredentialKind says what a credential is, and whose.
type CredentialKind string

// The kinds.
const (
	SecretCredential     CredentialKind = "secret"      // of a project; sealed: its value
	RepoCredential       CredentialKind = "repo"        // of a project; Info: JSON that describes it; Name: its id
	RepoAccessCredential CredentialKind = "repo_access" // of a user; sealed: how to clone; Name: PROJECT/ID
	SSHKeyCredential     CredentialKind = "ssh_key"     // of a user; Info: public key; sealed: private key; no Name
	// of a user; Info: the key as in authorized_keys; Name: fingerprint
	PublicKeyCredential CredentialKind = "public_key"
)

// OfProject reports whether credentials of a kind are owned by projects; the others are owned by users.
func (k CredentialKind) OfProject() bool { return k == SecretCredential || k == RepoCredential }

// Bounds of credentials, all of which lie in memory.
const (
	MaxCredentials    = 1000 // of one kind that an owner has
	MaxCredentialName = 300
	MaxCredentialInfo = 16 << 10
	MaxCredentialSeal = 64 << 10
)

// CredentialKey identifies a credential.
type CredentialKey struct {
	Kind  CredentialKind `json:"kind"`
	Owner string         `json:"owner"`
	Name  string         `json:"name"`
}

// Key identifies c.
func (c *Credential) Key() CredentialKey { return CredentialKey{c.Kind, c.Owner, c.Name} }

// SealName is what a credential is sealed under: what is sealed for one opens as no other.
func (k CredentialKey) SealName() string {
	return "credential/" + string(k.Kind) + "/" + k.Owner + "/" + k.Name
}
