package cmd

import (
	"context"
	"strconv"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// FindUser finds the name of a user who was given by name or number. It reports false of a name that neither this
// machine nor the server knows.
func FindUser(ctx context.Context, c *client.Client, name string) (string, bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		if u, err := account.ByUID(uint32(n)); err == nil {
			return u.Name, true
		}
		return name, true
	}
	if _, err := account.ByName(name); err == nil {
		return name, true
	}
	_, err := c.User(ctx, core.UserName(name))
	return name, core.CodeOf(err) != core.NotFound
}
