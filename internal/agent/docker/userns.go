package docker

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"
)

// infoTimeout is short: a node joins its server whether its engine answers or not.
const infoTimeout = 500 * time.Millisecond

// RemapsRoot reports whether root of the engine's containers is another user of the node. An engine that does not
// answer counts as one that does not, and is asked again by the next call.
func (c *Client) RemapsRoot() bool {
	info := c.info.Load()
	if info == nil {
		if _, err := os.Stat(c.socket); err != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), infoTimeout)
		defer cancel()
		var err error
		if info, err = c.Info(ctx); err != nil {
			return false
		}
		c.info.Store(info)
	}
	return slices.ContainsFunc(info.SecurityOptions, func(o string) bool {
		name, _, _ := strings.Cut(o, ",")
		return name == "name=userns" || name == "name=rootless"
	})
}
