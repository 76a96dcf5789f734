package stock

import (
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/jobs"
	"bireme.dev/bireme/internal/cli/screen"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Root is the command tree of dstack's CLI.
func Root(a *app.App, version string) *cobra.Command {
	root := &cobra.Command{
		Use: "dstack", Short: "run tasks and dev environments on a Bireme cluster",
		Long: "dstack is bireme under another name: it takes the commands and options of dstack's own CLI, release " +
			wire.Speaks + ".\nThe cluster is that of ~/.dstack/config.yml (`dstack project add`), else the one that bireme " +
			"itself would call.",
		Version: version, SilenceErrors: true, SilenceUsage: true, Args: app.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().BoolP("version", "v", false, "print the version")
	root.SuggestionsMinimumDistance = 2
	for _, c := range jobs.Stock(a) {
		root.AddCommand(c)
	}
	root.AddCommand(
		psCommand(a), offerCommand(a), runCommand(a), deleteCommand(a), eventCommand(a), volumeCommand(a), initCommand(a),
		fleetCommand(a), gatewayCommand(a), secretCommand(a), projectsCommand(a), loginCommand(a), serverCommand(),
	)
	root.AddCommand(refused()...)
	return root
}

func fleetCommand(a *app.App) *cobra.Command {
	b := &base{App: a}
	var watch, verbose bool
	list := func(cmd *cobra.Command, _ []string) error {
		d, err := b.server(cmd.Context())
		if err != nil {
			return err
		}
		return b.again(cmd.Context(), watch, func() error {
			var fleets []*wire.Fleet
			if err := d.Post(cmd.Context(), "fleets/list", map[string]any{"include_imported": true}, &fleets); err != nil {
				return err
			}
			return screen.Fleets(fleets, verbose, b.Now()).Write(b.Out)
		})
	}
	c := &cobra.Command{Use: "fleet", Short: "list, show and delete fleets", Args: app.NoSuchCommand, RunE: list}
	b.projectFlag(c)
	sub := &cobra.Command{Use: "list", Short: "list fleets", Args: cobra.NoArgs, RunE: list}
	for _, c := range []*cobra.Command{c, sub} {
		watchFlag(c, &watch)
		c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show more of each")
	}
	var yes bool
	var nums []int32
	remove := &cobra.Command{
		Use: "delete NAME", Short: "delete a fleet, or instances of it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := &deleteOptions{base: *b, yes: yes}
			d, err := o.server(cmd.Context())
			if err != nil {
				return err
			}
			if len(nums) == 0 {
				return o.one(cmd.Context(), d, "fleet", args[0])
			}
			if !b.Confirm(yes, "Delete %s of the fleet %s?", app.Plural(len(nums), "instance"), args[0]) {
				return b.Declined("nothing was deleted")
			}
			return d.Post(cmd.Context(), "fleets/delete_instances", map[string]any{
				"name": args[0], "instance_nums": nums,
			}, nil)
		},
	}
	remove.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	remove.Flags().Int32SliceVarP(&nums, "instance", "i", nil, "only instances with these `NUMBERS`")
	c.AddCommand(sub, b.get("fleet", "fleets"), remove)
	return c
}

// gatewayCommand says that there are no gateways yet; a list of them is empty.
func gatewayCommand(a *app.App) *cobra.Command {
	b := &base{App: a}
	var watch, verbose, json bool
	var format string
	list := func(cmd *cobra.Command, _ []string) error {
		if err := checkFormat(format, &json); err != nil {
			return err
		}
		d, err := b.server(cmd.Context())
		if err != nil {
			return err
		}
		gateways := []any{}
		if err := d.Post(cmd.Context(), "gateways/list", nil, &gateways); err != nil {
			return err
		}
		if json {
			return b.PrintJSON(map[string]any{"project": d.Project, "gateways": gateways})
		}
		return b.again(cmd.Context(), watch, func() error {
			return app.Table{{"NAME", "BACKEND", "HOSTNAME", "DOMAIN", "DEFAULT", "STATUS"}}.Write(b.Out)
		})
	}
	c := &cobra.Command{Use: "gateway", Short: "list gateways: none yet", Args: app.NoSuchCommand, RunE: list}
	b.projectFlag(c)
	sub := &cobra.Command{Use: "list", Short: "list gateways", Args: cobra.NoArgs, RunE: list}
	for _, c := range []*cobra.Command{c, sub} {
		watchFlag(c, &watch)
		c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show more of each")
		formatFlags(c, &format, &json)
	}
	update := &cobra.Command{
		Use: "update NAME", Short: "change a gateway: there are none yet", Args: cobra.ExactArgs(1),
		RunE: func(*cobra.Command, []string) error { return notYet("gateways") },
	}
	update.Flags().Bool("set-default", false, "make it the default one")
	update.Flags().String("domain", "", "its `DOMAIN`")
	c.AddCommand(sub, b.get("gateway", "gateways"), b.delete("gateway", "gateways"), update)
	return c
}

func secretCommand(a *app.App) *cobra.Command {
	b := &base{App: a}
	list := func(cmd *cobra.Command, _ []string) error {
		d, err := b.server(cmd.Context())
		if err != nil {
			return err
		}
		var secrets []wire.Secret
		if err := d.Post(cmd.Context(), "secrets/list", nil, &secrets); err != nil {
			return err
		}
		t := app.Table{{"NAME", "VALUE"}}
		for i := range secrets {
			t.Row(secrets[i].Name, "******")
		}
		return t.Write(b.Out)
	}
	c := &cobra.Command{Use: "secret", Short: "list and change secrets of a project", Args: app.NoSuchCommand, RunE: list}
	b.projectFlag(c)
	get := &cobra.Command{
		Use: "get NAME", Short: "show a secret", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := b.server(cmd.Context())
			if err != nil {
				return err
			}
			var s wire.Secret
			if err := d.Post(cmd.Context(), "secrets/get", map[string]any{"name": args[0]}, &s); err != nil {
				return err
			}
			value := ""
			if s.Value != nil {
				value = *s.Value
			}
			return app.Table{{"NAME", "VALUE"}, {s.Name, value}}.Write(b.Out)
		},
	}
	set := &cobra.Command{
		Use: "set NAME VALUE", Short: "make a secret, or give it another value", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := b.server(cmd.Context())
			if err == nil {
				err = d.Post(cmd.Context(), "secrets/create_or_update", map[string]any{"name": args[0], "value": args[1]}, nil)
			}
			return b.ok(err)
		},
	}
	var yes bool
	remove := &cobra.Command{
		Use: "delete NAME", Short: "delete a secret", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := b.server(cmd.Context())
			if err != nil {
				return err
			}
			if err := d.Post(cmd.Context(), "secrets/get", map[string]any{"name": args[0]}, nil); err != nil {
				if core.CodeOf(err) == core.NotFound {
					return core.Errorf(core.NotFound, "there is no secret %s in project %s", args[0], d.Project)
				}
				return err
			}
			if !b.Confirm(yes, "Delete the secret %s?", args[0]) {
				return b.Declined("nothing was deleted")
			}
			return b.ok(d.Post(cmd.Context(), "secrets/delete", map[string]any{"secrets_names": args}, nil))
		},
	}
	remove.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.AddCommand(&cobra.Command{Use: "list", Short: "list secrets", Args: cobra.NoArgs, RunE: list}, get, set, remove)
	return c
}

// ok says that something was done.
func (b *base) ok(err error) error {
	if err == nil {
		_, err = fmt.Fprintln(b.Out, "OK")
	}
	return err
}

// loginCommand refuses what needs a provider of identities: the server has none.
func loginCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "login", Short: "sign in through another service: not available yet", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("the server signs nobody in through another service yet; use a token: " +
				"dstack project add --name PROJECT --url URL --token TOKEN")
		},
	}
	f := c.Flags()
	f.String("url", "", "the server's `URL`")
	f.StringP("provider", "p", "", "`NAME` of the service")
	f.BoolP("yes", "y", false, "do not ask")
	f.BoolP("no", "n", false, "do not ask: the default project stays")
	_ = c.MarkFlagRequired("url") // it was just made
	return c
}

// serverCommand refuses to be a server, and names the program that is.
func serverCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "server", Short: "start a server: biremed does", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("the server is another program: `biremed standalone` on this machine, " +
				"`biremed server` for a site")
		},
	}
	f := c.Flags()
	f.String("host", "127.0.0.1", "`ADDRESS` to listen on")
	f.IntP("port", "p", 3000, "`PORT` to listen on")
	f.BoolP("debug", "d", false, "log more")
	f.StringP("log-level", "l", "INFO", "log this `LEVEL`")
	f.BoolP("yes", "y", false, "do not ask")
	f.BoolP("no", "n", false, "do not ask: the default project stays")
	f.String("token", "", "`TOKEN` of the administrator")
	return c
}
