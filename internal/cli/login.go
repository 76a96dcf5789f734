package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

type loginOptions struct {
	app                        *App
	server, token, ca, project string
}

func (a *App) loginCommand() *cobra.Command {
	o := &loginOptions{app: a}
	c := &cobra.Command{
		Use: "login --server URL --token TOKEN", Short: "save a server and a token", Args: cobra.NoArgs,
		Long: "Check that the server takes the token, and save both in " + "your config file (readable by you only).",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.server, "server", "", "`URL` of the server, or unix:PATH; several separated by commas")
	f.StringVar(&o.token, "token", "", "your `TOKEN`; - reads it from standard input")
	f.StringVar(&o.ca, "ca", "", "PEM `FILE` with the cluster's CA")
	f.StringVar(&o.project, "project", "", "`PROJECT` to run in by default")
	return c
}

func (o *loginOptions) run(ctx context.Context) error {
	if o.server == "" {
		return app.Usagef("login: needs --server URL")
	}
	if o.token == "-" {
		line, err := bufio.NewReader(o.app.In).ReadString('\n')
		if line == "" && err != nil {
			return app.Usagef("login: --token -: standard input is empty")
		}
		o.token = strings.TrimSpace(line)
	}
	if strings.ContainsAny(o.token, " \t\r\n\"'#") {
		return app.Usagef("login: --token: must not contain blanks or quotes")
	}
	if o.ca != "" {
		abs, err := filepath.Abs(o.ca)
		if err != nil {
			return err
		}
		o.ca = abs
	}
	set := client.Settings{
		Servers: client.SplitServers(o.server),
		Token:   o.token, CA: o.ca, Project: o.project, Timeout: client.DefaultTimeout,
	}
	c, err := client.New(set, client.WithTimeout(0))
	if err != nil {
		return app.Usagef("login: %s", err.Error())
	}
	me, err := c.Whoami(ctx)
	if err != nil {
		return err
	}
	if o.project != "" {
		if err := o.checkProject(ctx, c); err != nil {
			return err
		}
	}
	if o.ca != "" { // a copy of our own follows the cluster's when that is replaced
		if set.CA, err = keepCA(o.ca); err != nil {
			return err
		}
	}
	path := client.ConfigPath()
	if path == "" {
		return core.Errorf(core.Invalid, "login: there is no home directory for the config file; set BIREME_CONFIG")
	}
	if err := writeConfig(path, set); err != nil {
		return err
	}
	o.app.Note("logged in as %s; written to %s", me.User, path)
	return nil
}

// keepCA copies the cluster's CA beside the config file.
func keepCA(file string) (string, error) {
	own := client.OwnCA()
	if own == "" || own == file {
		return file, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return "", err
	}
	return own, os.WriteFile(own, data, 0o644)
}

func (o *loginOptions) checkProject(ctx context.Context, c *client.Client) error {
	list, err := c.Projects(ctx)
	if err != nil {
		return err
	}
	for i := range list.Projects {
		if string(list.Projects[i].Name) == o.project {
			return nil
		}
	}
	return core.Errorf(core.NotFound, "login: --project: there is no project %s that you may see", o.project)
}

// writeConfig replaces the config file in one step; it holds a token, so nobody else may read it.
func writeConfig(path string, s client.Settings) error {
	var b strings.Builder
	b.WriteString("# written by bireme login\n")
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: '%s'\n", key, value)
		}
	}
	for _, v := range append([]string{s.CA, s.Project}, s.Servers...) {
		if strings.ContainsAny(v, "'\n") {
			return app.Usagef("login: %q cannot be written to the config file", v)
		}
	}
	line("server", strings.Join(s.Servers, ","))
	line("ca", s.CA)
	line("token", s.Token)
	line("project", s.Project)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone after the rename
	if _, err := f.WriteString(b.String()); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
