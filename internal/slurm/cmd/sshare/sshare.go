// Package sshare is the command that shows fair shares: what belongs to accounts and users, what they used, and the
// factor that follows.
package sshare

import (
	"bufio"
	"context"
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report/record"
	"bireme.dev/bireme/internal/slurm/report/table"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "accounts", Short: 'A', Arg: getopt.RequiredArg},
	{Long: "all", Short: 'a'},
	{Long: "helpformat", Short: 'e'},
	{Long: "long", Short: 'l'},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "partition", Short: 'm'},
	{Key: "clusters", Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Key: "clusters", Long: "cluster", Arg: getopt.RequiredArg},
	{Key: "noheader", Long: "noheader", Short: 'n'},
	{Key: "noheader", Short: 'h'},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "parsable", Short: 'p'},
	{Long: "parsable2", Short: 'P'},
	{Key: "users", Long: "users", Short: 'u', Arg: getopt.RequiredArg},
	{Key: "users", Long: "uid", Arg: getopt.RequiredArg},
	{Long: "Users", Short: 'U'},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "yaml", Arg: getopt.OptionalArg},
	{Long: "help"},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	if f.Has("helpformat") {
		table.PrintFieldNames(w.Out, fields, 17)
		return 0
	}
	format := f.Get("format")
	if format == "" {
		format = defaultFormat(f)
	}
	cols, bad := table.ParseFormat(fields, format)
	if bad != "" {
		w.Errorf("Invalid field requested: %q", bad)
		return slurm.ExitError
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	named, ok := w.OnlyOurs(ctx, c, f.List("clusters"))
	if !ok {
		return slurm.ExitError
	}
	q := &query{
		accounts: f.List("accounts"), users: f.List("users"), everybody: f.Has("all"), usersOnly: f.Has("Users"),
	}
	if err := q.prepare(ctx, c); err != nil {
		return w.LoadFailed("slurm_get_shares error", err)
	}
	if f.Has("verbose") {
		printRequest(w, "Users", q.users)
		printRequest(w, "Accounts", q.accounts)
	}
	list, err := c.Shares(ctx)
	if err != nil {
		return w.LoadFailed("slurm_get_shares error", err)
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return w.LoadFailed("slurm_get_shares error", err)
	}
	out := bufio.NewWriter(w.Out)
	defer out.Flush()
	if form, ok := w.Document(f); !ok {
		return slurm.ExitError
	} else if form != nil {
		return form.Print(out, record.Shares(list, cluster.Name, q.users, q.accounts), cluster.Name, false)
	}
	if named != "" {
		fmt.Fprintf(out, "CLUSTER: %s\n", named)
	}
	table := table.Table[row]{
		Columns: cols, NoHeader: f.Has("noheader"), Parsable: f.Has("parsable"), Parsable2: f.Has("parsable2"),
	}
	table.Print(out, q.rows(list.Shares, cluster.Name))
	return 0
}

func defaultFormat(f cmd.Flags) string {
	switch {
	case f.Has("long") && f.Has("partition"):
		return "Account,User,Partition,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS," +
			"GrpTRESMins,TRESRunMins"
	case f.Has("long"):
		return "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS," +
			"GrpTRESMins,TRESRunMins"
	case f.Has("partition"):
		return "Account,User,Partition,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
	}
	return "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
}

// printRequest is what -v says of a filter.
func printRequest(w *cmd.World, what string, list []string) {
	fmt.Fprintf(w.Out, "%s requested:\n", what)
	if len(list) == 0 {
		list = []string{"all"}
	}
	for _, name := range list {
		fmt.Fprintf(w.Out, "\t: %s\n", name)
	}
}

// query says which associations are wanted.
type query struct {
	accounts  []string
	users     []string // none: everybody
	everybody bool
	usersOnly bool
}

// prepare makes the caller the only user where nobody was named.
func (q *query) prepare(ctx context.Context, c *client.Client) error {
	if q.everybody {
		q.users = nil
	}
	if q.everybody || len(q.users) > 0 {
		return nil
	}
	who, err := c.Whoami(ctx)
	if err != nil {
		return err
	}
	q.users = []string{string(who.User)}
	return nil
}

func (q *query) wants(s *client.Share) bool {
	if len(q.accounts) > 0 && !slices.Contains(q.accounts, string(s.Project)) {
		return false
	}
	if s.User == "" {
		return !q.usersOnly
	}
	return len(q.users) == 0 || slices.Contains(q.users, string(s.User))
}

// rows puts the associations in the order of the tree: an account, its users, then the accounts below it.
func (q *query) rows(list []client.Share, cluster string) (rows []row) {
	users := map[core.ProjectName][]*client.Share{}
	below := map[core.ProjectName][]*client.Share{}
	for i := range list {
		s := &list[i]
		switch {
		case s.User != "":
			users[s.Project] = append(users[s.Project], s)
		case s.Project != "root":
			parent := s.Parent
			if parent == "" {
				parent = "root"
			}
			below[parent] = append(below[parent], s)
		}
	}
	// A row stands below those of the accounts above it that are listed themselves.
	add := func(s *client.Share, depth int) int {
		if !q.wants(s) {
			return depth
		}
		rows = append(rows, row{Share: s, Depth: depth, Cluster: cluster, ID: shareID(list, s)})
		return depth + 1
	}
	var walk func(s *client.Share, depth, level int)
	walk = func(s *client.Share, depth, level int) {
		depth = add(s, depth)
		for _, u := range users[s.Project] {
			add(u, depth)
		}
		if level > len(list) {
			return
		}
		for _, k := range below[s.Project] {
			walk(k, depth, level+1)
		}
	}
	root := &client.Share{Project: "root", Norm: 1, Effective: 1}
	for i := range list {
		if list[i].Project == "root" && list[i].User == "" {
			root = &list[i]
		}
	}
	walk(root, 0, 0)
	return rows
}

// shareID numbers associations by their place in the list, the root first.
func shareID(list []client.Share, of *client.Share) int {
	for i := range list {
		if &list[i] == of {
			return i + 1
		}
	}
	return 1
}
