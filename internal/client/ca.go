package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"bireme.dev/bireme/internal/core"
)

// CA is the cluster's certificate authority.
type CA struct {
	PEM      string     `json:"pem"` // what to trust
	Sum      string     `json:"sum"` // SHA-256 of it
	Rotating bool       `json:"rotating"`
	Issuers  []Issuer   `json:"issuers"`
	Nodes    []NodeCert `json:"nodes,omitempty"` // for administrators
}

// Issuer is a key that signs, and is trusted.
type Issuer struct {
	Num    int       `json:"num"`
	Made   core.Time `json:"made"`
	Ends   core.Time `json:"ends"`
	Serial string    `json:"serial"`
	Nodes  bool      `json:"signs_nodes"`
	Server bool      `json:"signs_server"`
}

// NodeCert is what is known of a node's certificate.
type NodeCert struct {
	Name      core.NodeName `json:"name"`
	Ends      core.Time     `json:"ends,omitempty"`
	Current   bool          `json:"current"` // the node trusts what is to be trusted now
	Connected bool          `json:"connected"`
}

// RotateCA is the body of POST /api/v1/ca/rotate.
type RotateCA struct {
	Force bool `json:"force,omitempty"` // leave nodes behind that have not learned of the new authority
}

// CA asks for the certificate authority.
func (c *ClusterClient) CA(ctx context.Context) (*CA, error) {
	return get[CA](ctx, c, api+"/ca", nil)
}

// RotateCA takes the next step of replacing it.
func (c *ClusterClient) RotateCA(ctx context.Context, in *RotateCA) (*CA, error) {
	out := new(CA)
	if err := c.do(ctx, call{method: "POST", path: api + "/ca/rotate", body: in}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// caHeader says which authorities the server wants to be trusted.
const caHeader = "Bireme-Ca"

// OwnCA is the copy of the cluster's CA that login keeps beside the config file, and that follows the cluster's.
func OwnCA() string {
	path := ConfigPath()
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "ca.pem")
}

// followCA replaces the copy of the CA when a server that it vouched for says that there is another one.
func (c *transport) followCA(ctx context.Context, e *endpoint, sum string) {
	if sum == "" || e.caSum == "" || sum == e.caSum || c.set.CA == "" || c.set.CA != OwnCA() ||
		!c.following.CompareAndSwap(false, true) {
		return
	}
	defer c.following.Store(false)
	now, err := (&ClusterClient{c}).CA(ctx)
	if err != nil || now.Sum != sum || fileSum([]byte(now.PEM)) != sum {
		return // the next call tries again
	}
	tmp := c.set.CA + ".new"
	if os.WriteFile(tmp, []byte(now.PEM), 0o644) == nil && os.Rename(tmp, c.set.CA) == nil {
		e.caSum = sum
	}
}

func fileSum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
