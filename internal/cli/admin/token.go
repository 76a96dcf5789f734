package admin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// tokens are the commands on tokens.
type tokens struct{ *app.App }

func (a tokens) command() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "make, list, rotate and revoke tokens", Args: app.NoSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.create(), a.join(), a.list(), a.rotate(), a.revoke())
	return c
}

// tokenOptions make a token of either kind.
type tokenOptions struct {
	app   *app.App
	json  bool
	life  lifeFlags
	login bool
	both  bool
	scope []string
	new   client.NewToken
}

func (a tokens) create() *cobra.Command {
	o := &tokenOptions{app: a.App, new: client.NewToken{Kind: "user"}}
	c := &cobra.Command{
		Use: "create", Short: "make a token that acts as a user", Args: cobra.NoArgs,
		Long: "Make a token that acts as you, or (administrators) as another user. It is shown once.\n\n" +
			"Its scopes say what it may do: read looks at what you may see; submit also submits and steers your own " +
			"jobs and runs; admin also " +
			"uses the rights you have as an administrator or as a manager of projects; project limits the others to " +
			"one project, see --project.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.new.Scopes, err = parseScopes(o.scope, o.new.Project != ""); err != nil {
				return err
			}
			if o.new.Client == "dstack" && o.new.Project == "" && !cmd.Flags().Changed("scope") {
				o.new.Scopes = nil // its users expect every right that they have
			}
			return o.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVarP((*string)(&o.new.User), "user", "u", "", "act as `USER` instead of yourself")
	f.StringSliceVar(&o.scope, "scope", []string{"read", "submit"}, "what it may do: read, submit, admin, project")
	f.StringVar((*string)(&o.new.Project), "project", "", "good for the jobs and runs of `PROJECT` only")
	f.StringVar(&o.new.Client, "for", "", "made for a client of this kind: dstack, whose tokens "+
		"have every right of their user and do not expire, unless --scope and --ttl say otherwise")
	o.common(c)
	return c
}

func (a tokens) join() *cobra.Command {
	o := &tokenOptions{app: a.App, new: client.NewToken{Kind: "join"}}
	c := &cobra.Command{
		Use: "join", Short: "make a token with which one node joins", Args: cobra.NoArgs,
		Long: "Make a token with which one node joins the cluster, once: biremed agent --token TOKEN.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := app.OneFlag(cmd, "login", "login-and-compute"); err != nil {
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
	f.StringVar(&o.new.Name, "name", "", "what it is called in lists and in the audit log")
	f.StringVar(&o.new.Note, "note", "", "what it is for, for the list")
	o.life.add(c)
	f.BoolVar(&o.json, "json", false, "print JSON")
}

func (o *tokenOptions) run(ctx context.Context) error {
	var err error
	if o.new.TTL, err = o.life.ttl(o.app.Now()); err != nil {
		return err
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	made, err := c.NewToken(ctx, &o.new)
	if err != nil {
		return err
	}
	if err := showSecret(o.app, made, o.json); err != nil || o.new.Client != "dstack" || o.json {
		return err
	}
	o.showAdd(ctx, c, made)
	return nil
}

// showAdd prints how a dstack client is told of the token.
func (o *tokenOptions) showAdd(ctx context.Context, c *client.Client, made *client.NewTokenMade) {
	project, url := cmp.Or(string(made.Token.Project), "PROJECT"), "URL"
	if about, err := c.Cluster(ctx); err == nil && about.Dstack != "" {
		url = about.Dstack
	} else if err == nil {
		o.app.Note("the server has no listener for dstack's clients: see dstack.listen in its settings")
	}
	o.app.Note("dstack project add --name %s --url %s --token %s -y", project, url, made.Secret)
}

// showSecret prints a token that was made or rotated: the secret alone on standard output.
func showSecret(a *app.App, made *client.NewTokenMade, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(made)
	}
	t := &made.Token
	what := "token " + t.ID
	if t.Name != "" {
		what += " (" + app.Cell(t.Name) + ")"
	}
	if t.Expires != 0 {
		a.Note("%s, valid until %s; it is shown only once:", what, app.Clock(t.Expires))
	} else {
		a.Note("%s; it is shown only once:", what)
	}
	_, err := fmt.Fprintln(a.Out, made.Secret)
	return err
}

func (a tokens) list() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "list tokens, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.printAll(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a tokens) printAll(ctx context.Context, asJSON bool) error {
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
		return a.PrintJSON(list)
	}
	now := core.At(a.Now())
	t := app.Table{{"ID", "KIND", "FOR", "STATE", "NAME", "SCOPE", "CREATED", "EXPIRES", "LAST USE", "NOTE"}}
	for _, k := range list.Tokens {
		who, scope := string(k.User), k.ScopeText()
		if k.Kind == "join" {
			who, scope = string(k.Node), ""
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
		t.Row(k.ID, k.Kind, who, state, k.Name, scope, app.Clock(k.Created), app.Clock(k.Expires),
			app.Clock(max(k.LastUsed, k.Used)), k.Note)
	}
	return t.Write(a.Out)
}

func (a tokens) rotate() *cobra.Command {
	var asJSON bool
	var overlap string
	var life lifeFlags
	c := &cobra.Command{
		Use: "rotate ID|NAME", Short: "replace the secret of a token", Args: cobra.ExactArgs(1),
		Long: "Replace the secret of a token. The new one is shown once. The token keeps its name and scopes, and is " +
			"valid for as long as a new one. The old secret " +
			"ends at once, or works for --overlap more; tokens that were made with it end with it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := client.RotateToken{}
			var err error
			if in.Overlap, err = lengthOf("overlap", overlap); err != nil {
				return err
			}
			if in.TTL, err = life.ttl(a.Now()); err != nil {
				return err
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			made, err := c.RotateToken(cmd.Context(), args[0], &in)
			if err != nil {
				return err
			}
			return showSecret(a.App, made, asJSON)
		},
	}
	c.Flags().StringVar(&overlap, "overlap", "", "how long the old secret still works, such as 1h or 7d")
	life.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a tokens) revoke() *cobra.Command {
	var jwts bool
	var user string
	c := &cobra.Command{
		Use: "revoke [--jwt [--user USER]] [ID|NAME...]", Short: "revoke tokens, and those made with them",
		Long: "Revoke tokens, and those made with them. With --jwt: all JWTs (scontrol token) of yours, or " +
			"(administrators) of another user, that were made until now.",
		Args: func(cmd *cobra.Command, args []string) error {
			if user != "" && !jwts {
				return app.Usagef("--user: only with --jwt; tokens are named by id")
			}
			if jwts {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if jwts {
				if err := c.RevokeJWTs(cmd.Context(), core.UserName(user)); err != nil {
					return err
				}
			}
			for _, id := range ids {
				if err := c.RevokeToken(cmd.Context(), id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&jwts, "jwt", false, "all JWTs that were made until now")
	c.Flags().StringVarP(&user, "user", "u", "", "with --jwt: those of `USER` instead of yours")
	return c
}
