package client

import (
	"context"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// TakeUser is the body of POST /api/v1/users/{name}/take: what a user had at another server and goes on using here.
type TakeUser struct {
	Token      string       `json:"token,omitempty"`       // its secret as it was
	SSHKey     string       `json:"ssh_key,omitempty"`     // private key that the server made for the user, PEM
	PublicKeys []string     `json:"public_keys,omitempty"` // as in authorized_keys
	TTL        core.Seconds `json:"ttl,omitempty"`         // of the token, as in NewToken
	DryRun     bool         `json:"dry_run,omitempty"`     // only tell what would be done
}

// Bounds of a token's secret that is taken over: shorter ones can be guessed.
const (
	MinTakenToken = 16
	MaxTakenToken = 200
)

// String keeps secrets out of whatever prints a TakeUser.
func (t TakeUser) String() string { return "what a user had elsewhere" }

// GoString is String for %#v.
func (t TakeUser) GoString() string { return t.String() }

// Taken says what became of one thing.
type Taken string

// What can become of it.
const (
	TakenNow     Taken = "taken" // it was not here, and is now
	TakenBefore  Taken = "same"  // it is here already
	TakenOther   Taken = "other" // the user has another one here, which stays
	TakenNothing Taken = ""      // none was given
)

// UserTaken answers TakeUser.
type UserTaken struct {
	Token      Taken   `json:"token,omitempty"`
	SSHKey     Taken   `json:"ssh_key,omitempty"`
	PublicKeys []Taken `json:"public_keys,omitempty"` // in the order they were given
}

// TakeOver takes over what a user had at another server. It may be sent again: what is here already stays.
func TakeOver(ctx context.Context, c *Client, name core.UserName, in *TakeUser) (*UserTaken, error) {
	out := new(UserTaken)
	err := c.do(ctx, call{
		method: "POST", path: api + "/users/" + url.PathEscape(string(name)) + "/take", body: in, again: always,
	}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}
