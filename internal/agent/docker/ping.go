package docker

import "context"

// Ping reports whether the engine answers.
func (c *Client) Ping(ctx context.Context) error { return c.call(ctx, "GET", "/_ping", nil, nil) }
