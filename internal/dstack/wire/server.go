package wire

// ServerInfo is what the server says of itself.
type ServerInfo struct {
	ServerVersion string `json:"server_version"`
}

// Health is the answer of the health check.
type Health struct {
	Status string `json:"status"`
}
