package config

import (
	"time"
)

// Tokens says how long tokens of users are good that are made without saying so. Zero: without end.
type Tokens struct {
	Lifetime       Duration `yaml:"lifetime"`
	DstackLifetime Duration `yaml:"dstack_lifetime"` // of those made for dstack clients, which cannot renew theirs
	MaxLifetime    Duration `yaml:"max_lifetime"`    // the most anybody but an administrator may have
	// file of the key that signs the JWTs of Slurm's REST API (HS256); empty: a key sealed in the store
	JWTKey string `yaml:"jwt_key"`
	JWKS   string `yaml:"jwks"` // file of the public keys of others who issue such tokens (RS256); empty: nobody does
	// claim of their tokens that names the user; empty: sun, as Slurm's
	JWTUserClaim string `yaml:"jwt_user_claim"`
	// nobody but administrators makes JWTs
	JWTAdminsOnly bool `yaml:"jwt_admins_only"`
}

// Default is how long a token is good that is made without saying so.
func (t *Tokens) Default(dstack bool) time.Duration {
	d := t.Lifetime
	if dstack {
		d = t.DstackLifetime
	}
	if t.MaxLifetime > 0 && (d == 0 || d > t.MaxLifetime) {
		d = t.MaxLifetime
	}
	return d.D()
}
