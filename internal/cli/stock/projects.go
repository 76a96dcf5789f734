package stock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/wire"
)

// entry is a project of ~/.dstack/config.yml, which dstack's CLI reads, too.
type entry struct {
	Name    string `yaml:"name"`
	URL     string `yaml:"url"`
	Token   string `yaml:"token"`
	Default bool   `yaml:"default,omitempty"`
}

// projectFile is ~/.dstack/config.yml. Keys that are not ours stay.
type projectFile struct {
	Projects []entry        `yaml:"projects"`
	Rest     map[string]any `yaml:",inline"`
}

func configFile(lookup func(string) (string, bool)) string {
	home, _ := lookup("HOME")
	return filepath.Join(home, ".dstack", "config.yml")
}

func readProjects(file string) (*projectFile, error) {
	f := &projectFile{}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		if err = yaml.Unmarshal(data, f); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", file, err)
		}
	}
	return f, err
}

// write replaces the file, readable by its user only: it holds tokens.
func (f *projectFile) write(file string) error {
	data, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".config-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(0o600), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// find is the project of a name, the default one for none.
func (f *projectFile) find(name string) *entry {
	for i := range f.Projects {
		if p := &f.Projects[i]; p.Name == name || name == "" && p.Default {
			return p
		}
	}
	if name == "" && len(f.Projects) == 1 {
		return &f.Projects[0]
	}
	return nil
}

// Connect finds the server of a project as dstack's CLI does: by DSTACK_SERVER_URL and DSTACK_TOKEN, else by
// ~/.dstack/config.yml. Where neither says anything it is other's, the server of the native commands.
func Connect(a *app.App, project string, other func() (*client.Client, error), opts ...client.Option) (
	*client.Client, error,
) {
	env := func(name string) string {
		v, _ := a.Lookup(name)
		return v
	}
	if project == "" {
		project = env("DSTACK_PROJECT")
	}
	if at, token := env("DSTACK_SERVER_URL"), env("DSTACK_TOKEN"); at != "" && token != "" {
		if project == "" {
			return nil, app.Usagef("DSTACK_SERVER_URL is set: name the project with --project or DSTACK_PROJECT")
		}
		return dial(at, token, project, opts)
	}
	f, err := readProjects(configFile(a.Lookup))
	if err != nil {
		return nil, err
	}
	e := f.find(project)
	lone := env("DSTACK_SERVER_URL")
	switch {
	case lone != "" && e != nil: // as dstack's CLI, which does not say so
		a.Note("DSTACK_SERVER_URL is not used, because DSTACK_TOKEN is not set; the server is %s, of project %s", e.URL,
			e.Name)
	case lone != "":
		return nil, app.Usagef("DSTACK_SERVER_URL is set, but DSTACK_TOKEN is not: set both, or neither")
	}
	switch {
	case e == nil && len(f.Projects) == 0:
		return other()
	case e == nil && project == "":
		return nil, app.Usagef("no project is the default one; `dstack project set-default NAME`, or --project NAME")
	case e == nil:
		//lint:ignore ST1005 dstack's own text
		return nil, fmt.Errorf("Project %s is not configured", project)
	}
	token := e.Token
	if t := env("DSTACK_TOKEN"); t != "" {
		token = t
	}
	return dial(e.URL, token, e.Name, opts)
}

// dial makes the client of a URL. Plain HTTP is for servers of this machine: whoever else answers there gets the token.
func dial(at, token, project string, opts []client.Option) (*client.Client, error) {
	if u, err := url.Parse(at); err == nil && u.Scheme == "http" {
		ip := net.ParseIP(u.Hostname())
		if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, app.Usagef("%s: plain HTTP to another machine would give the token to whoever listens; use https, "+
				"or http+insecure://%s if you know who does", at, u.Host)
		}
		at = "http+insecure" + strings.TrimPrefix(at, "http")
	}
	timeout, err := client.TimeoutFromEnv()
	if err != nil {
		return nil, err
	}
	return client.New(client.Settings{
		Servers: []string{at}, Token: token, Project: project, Timeout: timeout, CA: os.Getenv("BIREME_CA"),
	}, opts...)
}

// projectsCommand is `dstack project`: the projects that this machine knows. `bireme project` is those of the server.
func projectsCommand(a *app.App) *cobra.Command {
	o := &projectOptions{App: a}
	c := &cobra.Command{
		Use: "project", Short: "list and change the projects that this machine knows", Args: app.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "ask each server who you are there")
	list := &cobra.Command{
		Use: "list", Short: "list projects", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	list.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "ask each server who you are there")
	add := &cobra.Command{
		Use: "add", Short: "add a project, or change one", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.add(cmd.Context()) },
	}
	f := add.Flags()
	f.StringVar(&o.entry.Name, "name", "", "the project's `NAME`")
	f.StringVar(&o.entry.URL, "url", "", "the server's `URL`")
	f.StringVar(&o.entry.Token, "token", "", "your `TOKEN` there")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask: make it the default one")
	f.BoolVarP(&o.no, "no", "n", false, "do not ask: the default one stays")
	for _, name := range []string{"name", "url", "token"} {
		_ = add.MarkFlagRequired(name) // they were just made
	}
	remove := &cobra.Command{
		Use: "delete", Short: "forget a project", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.remove() },
	}
	remove.Flags().StringVar(&o.entry.Name, "name", "", "the project's `NAME`")
	remove.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	_ = remove.MarkFlagRequired("name") // likewise
	set := &cobra.Command{
		Use: "set-default NAME", Short: "make a project the default one", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.setDefault(args[0]) },
	}
	c.AddCommand(list, add, remove, set)
	return c
}

type projectOptions struct {
	*app.App
	entry            entry
	yes, no, verbose bool
}

func (o *projectOptions) list(ctx context.Context) error {
	f, err := readProjects(configFile(o.Lookup))
	if err != nil {
		return err
	}
	t := app.Table{{"PROJECT", "URL", "DEFAULT"}}
	if o.verbose {
		t = app.Table{{"PROJECT", "URL", "USER", "DEFAULT"}}
	}
	for i := range f.Projects {
		p := &f.Projects[i]
		mark := " "
		if p.Default {
			mark = "✓"
		}
		row := []string{p.Name, p.URL, mark}
		if o.verbose {
			row = []string{p.Name, p.URL, o.userAt(ctx, p), mark}
		}
		t.Row(row...)
	}
	return t.Write(o.Out)
}

// userAt is who the user is at a server.
func (o *projectOptions) userAt(ctx context.Context, e *entry) string {
	c, err := dial(e.URL, e.Token, e.Name, []client.Option{client.WithTimeout(0)})
	if err != nil {
		return "(" + err.Error() + ")"
	}
	var me wire.User
	if err := (client.Dstack{Client: c}).All(ctx, "users/get_my_user", nil, &me); err != nil {
		return "(error)"
	}
	return me.Username
}

func (o *projectOptions) add(ctx context.Context) error {
	if o.yes && o.no {
		return app.Usagef("--yes and --no cannot be used together")
	}
	c, err := dial(o.entry.URL, o.entry.Token, o.entry.Name, nil)
	if err != nil {
		return err
	}
	if err := (client.Dstack{Client: c}).All(ctx, "projects/"+url.PathEscape(o.entry.Name)+"/get", nil, nil); err != nil {
		return err
	}
	file := configFile(o.Lookup)
	f, err := readProjects(file)
	if err != nil {
		return err
	}
	first := len(f.Projects) == 0
	if e := f.find(o.entry.Name); e != nil {
		same := e.URL == o.entry.URL && e.Token == o.entry.Token
		if !same && !o.Confirm(o.yes || o.no, "Update the project %s?", e.Name) {
			return o.Declined("nothing was changed")
		}
		e.URL, e.Token = o.entry.URL, o.entry.Token
	} else {
		f.Projects = append(f.Projects, o.entry)
	}
	if first || o.yes || !o.no && o.Terminal && o.Ask("Set %s as your default project?", o.entry.Name) {
		f.setDefault(o.entry.Name)
	}
	if err := f.write(file); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, "OK")
	return err
}

func (f *projectFile) setDefault(name string) bool {
	found := false
	for i := range f.Projects {
		f.Projects[i].Default = f.Projects[i].Name == name
		found = found || f.Projects[i].Default
	}
	return found
}

func (o *projectOptions) setDefault(name string) error {
	file := configFile(o.Lookup)
	f, err := readProjects(file)
	if err != nil {
		return err
	}
	if f.find(name) == nil || !f.setDefault(name) {
		//lint:ignore ST1005 dstack's own text
		return fmt.Errorf("Project %s is not configured", name)
	}
	if err := f.write(file); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, "OK")
	return err
}

func (o *projectOptions) remove() error {
	file := configFile(o.Lookup)
	f, err := readProjects(file)
	if err != nil {
		return err
	}
	if f.find(o.entry.Name) == nil {
		//lint:ignore ST1005 dstack's own text
		return fmt.Errorf("Project %s is not configured", o.entry.Name)
	}
	if !o.Confirm(o.yes, "Forget the project %s?", o.entry.Name) {
		return o.Declined("nothing was changed")
	}
	kept := f.Projects[:0]
	for _, e := range f.Projects {
		if e.Name != o.entry.Name {
			kept = append(kept, e)
		}
	}
	f.Projects = kept
	if err := f.write(file); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, "OK")
	return err
}
