package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func (a *App) tokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "make, list and revoke tokens", Args: noSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.tokenCreate(), a.tokenJoin(), a.tokenList(), a.tokenRevoke())
	return c
}

// tokenOptions make a token of either kind.
type tokenOptions struct {
	app   *App
	json  bool
	ttl   time.Duration
	login bool
	both  bool
	new   client.NewToken
}

func (a *App) tokenCreate() *cobra.Command {
	o := &tokenOptions{app: a, new: client.NewToken{Kind: "user"}}
	c := &cobra.Command{
		Use: "create", Short: "make a token that acts as a user", Args: cobra.NoArgs,
		Long: "Make a token that acts as you, or (administrators) as another user. It is shown once.",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVarP((*string)(&o.new.User), "user", "u", "", "act as `USER` instead of yourself")
	o.common(c)
	return c
}

func (a *App) tokenJoin() *cobra.Command {
	o := &tokenOptions{app: a, new: client.NewToken{Kind: "join"}}
	c := &cobra.Command{
		Use: "join", Short: "make a token with which one node joins", Args: cobra.NoArgs,
		Long: "Make a token with which one node joins the cluster, once: biremed agent --token TOKEN.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneFlag(cmd, "login", "login-and-compute"); err != nil {
				return err
			}
			o.new.Roles = core.Compute
			switch {
			case o.both:
				o.new.Roles = core.Compute | core.Login
			case o.login:
				o.new.Roles = core.Login
			}
			return o.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar((*string)(&o.new.Node), "node", "", "good for the node `NAME` only")
	f.BoolVar(&o.login, "login", false, "a login node: it passes its users' calls on and runs no jobs")
	f.BoolVar(&o.both, "login-and-compute", false, "both login and compute node")
	f.BoolVar(&o.new.TrustRoot, "trust-root", false, "root of that node is an administrator")
	o.common(c)
	return c
}

func (o *tokenOptions) common(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.new.Note, "note", "", "what it is for, for the list")
	f.DurationVar(&o.ttl, "ttl", 0, "how long it is good, such as 24h; without it the server's default")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

func (o *tokenOptions) run(ctx context.Context) error {
	if o.ttl < 0 || o.ttl%time.Second != 0 {
		return usagef("--ttl %s: want whole seconds", o.ttl)
	}
	o.new.TTL = core.Seconds(o.ttl / time.Second)
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	made, err := c.NewToken(ctx, &o.new)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(made)
	}
	if made.Token.Expires != 0 {
		o.app.note("token %s, good until %s; it is not shown again:", made.Token.ID, clock(made.Token.Expires))
	} else {
		o.app.note("token %s; it is not shown again:", made.Token.ID)
	}
	_, err = fmt.Fprintln(o.app.Out, made.Secret)
	return err
}

func (a *App) tokenList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "list tokens, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tokens(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *App) tokens(ctx context.Context, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := c.Tokens(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if list.Tokens == nil {
			list.Tokens = []core.Token{}
		}
		return a.printJSON(list)
	}
	now := core.At(a.Now())
	t := table{{"ID", "KIND", "FOR", "STATE", "CREATED", "EXPIRES", "NOTE"}}
	for _, k := range list.Tokens {
		who := string(k.User)
		if k.Kind == "join" {
			who = string(k.Node)
			if who == "" {
				who = "any node"
			}
		}
		state := "good"
		switch {
		case k.Revoked:
			state = "revoked"
		case k.Used != 0:
			state = "used"
		case k.Expires != 0 && k.Expires <= now:
			state = "expired"
		}
		t.row(k.ID, k.Kind, who, state, clock(k.Created), clock(k.Expires), k.Note)
	}
	return t.write(a.Out)
}

func (a *App) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID...", Short: "end tokens", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := c.RevokeToken(cmd.Context(), id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
