package cluster

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// Socket is the path of the server's socket.
func (c *Cluster) Socket() string {
	for _, s := range c.servers() {
		if path, ok := strings.CutPrefix(s, "unix:"); ok {
			return path
		}
	}
	c.T.Fatalf("the cluster has no socket: %v", c.servers())
	return ""
}

// SocketHTTP calls the server as root through its socket, for requests that no command makes.
func (c *Cluster) SocketHTTP() *http.Client {
	path := c.Socket()
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true,
	}}
}
