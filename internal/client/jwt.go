package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// NewJWT is the body of POST /api/v1/tokens/jwt.
type NewJWT struct {
	User     core.UserName `json:"user,omitempty"`     // empty: the caller
	Lifespan core.Seconds  `json:"lifespan,omitempty"` // 0: half an hour
}

// JWT answers it: a token of Slurm's REST API.
type JWT struct {
	Token   string        `json:"token"`
	User    core.UserName `json:"user"`
	Expires core.Time     `json:"expires"`
}

// RevokeJWTs is the body of POST /api/v1/tokens/jwt/revoke.
type RevokeJWTs struct {
	User core.UserName `json:"user,omitempty"` // empty: the caller
}

// String keeps the token out of whatever prints a JWT.
func (t JWT) String() string { return "JWT of " + string(t.User) }

// GoString is String for %#v.
func (t JWT) GoString() string { return t.String() }

// NewJWT makes a token of Slurm's REST API.
func (c *TokenClient) NewJWT(ctx context.Context, in *NewJWT) (*JWT, error) {
	out := new(JWT)
	if err := c.do(ctx, call{method: "POST", path: api + "/tokens/jwt", body: in, again: always}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RevokeJWTs ends the JWTs of a user (empty: the caller) that were made until now.
func (c *TokenClient) RevokeJWTs(ctx context.Context, user core.UserName) error {
	return c.do(ctx, call{method: "POST", path: api + "/tokens/jwt/revoke", body: &RevokeJWTs{user}, again: always}, nil)
}
