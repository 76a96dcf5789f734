package wire

import "bireme.dev/bireme/internal/core"

// Direct says how a node reaches the caller of its step without the server between: the caller listens under a
// certificate of its own making, whose fingerprint comes to the node by way of the server, and knows the node by the
// secret that came the same way.
type Direct struct {
	Addrs  []string `json:"addrs"` // HOST:PORT, the likeliest first
	Print  string   `json:"print"` // SHA-256 of the certificate, hex
	Secret string   `json:"secret"`
}

// DirectHello is the first frame of a node on a direct stream.
type DirectHello struct {
	Secret string        `json:"secret"`
	Node   core.NodeName `json:"node"`
}

// DirectNews is from srun to the server alone: how a node's frames go.
type DirectNews struct {
	Node core.NodeName `json:"node"`
	// State: "direct" they do not pass the server, "gone" they may again, "done" the last one has come.
	State string `json:"state"`
}
