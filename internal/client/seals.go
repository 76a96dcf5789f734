package client

import "context"

// Seals tells of the keys that seal secrets in the store.
type Seals struct {
	File    string  `json:"file"` // of the keys, on the server's host
	Keys    []int64 `json:"keys"` // their ids, oldest first
	Key     int64   `json:"key"`  // new secrets are under
	Done    bool    `json:"done"` // and all others are, too
	Percent int     `json:"percent,omitempty"`
	Error   string  `json:"error,omitempty"` // why the rotation stands still
}

// Seals asks for them.
func (c *ClusterClient) Seals(ctx context.Context) (*Seals, error) {
	out := new(Seals)
	return out, c.do(ctx, call{method: "GET", path: api + "/seals"}, out)
}

// RotateSeals begins a rotation; Seals tells how far it is.
func (c *ClusterClient) RotateSeals(ctx context.Context) (*Seals, error) {
	out := new(Seals)
	return out, c.do(ctx, call{method: "POST", path: api + "/seals/rotate"}, out)
}
