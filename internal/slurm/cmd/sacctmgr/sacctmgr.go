// Package sacctmgr is the command by which accounts, users, associations and qualities of service are shown and
// changed.
//
// An account is a project, an association a project or a member of one, and a coordinator a project's manager. What is
// changed goes to the server as one policy, all or nothing.
package sacctmgr

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

func parser() *getopt.Parser {
	return &getopt.Parser{Permute: true, Options: []getopt.Option{
		{Short: 'h', Long: "help"},
		{Short: 'i', Long: "immediate"},
		{Short: 'n', Long: "noheader"},
		{Short: 'o', Long: "oneliner"},
		{Short: 'p', Long: "parsable"},
		{Short: 'P', Long: "parsable2"},
		{Short: 'Q', Long: "quiet"},
		{Short: 'r', Long: "readonly"},
		{Short: 's', Long: "associations"},
		{Short: 'v', Long: "verbose"},
		{Short: 'V', Long: "version"},
		{Short: 0, Long: "usage"},
	}}
}

// run is one sacctmgr.
type run struct {
	w                              *cmd.World
	c                              *client.Client
	ctx                            context.Context
	immediate, noHeader, quiet     bool
	parsable, parsable2, withAssoc bool
	readonly, rawQOS               bool

	records
	last []func() error // to be done after the policy is applied
}

// records are what is shown or changed.
type records struct {
	policy *core.Policy
	users  []core.User
	name   string           // of the cluster
	places map[int64][2]int // of associations in the tree, by id
}

// The verbs, each with the methods that it needs.
type (
	adder    struct{ *run }
	modifier struct{ *run }
	remover  struct{ *run }
	lister   struct{ *run }
)

// Options is the table of its options.
func Options() *getopt.Parser { return parser() }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, ok := w.Parse(parser(), args)
	if !ok {
		return slurm.ExitError
	}
	s := &run{w: w, ctx: ctx}
	for _, v := range f.Values {
		switch v.Key {
		case "help", "usage":
			return w.PrintHelp(parser())
		case "version":
			return w.PrintVersion()
		case "immediate":
			s.immediate = true
		case "noheader":
			s.noHeader = true
		case "quiet":
			s.quiet = true
		case "parsable":
			s.parsable = true
		case "parsable2":
			s.parsable2 = true
		case "associations":
			s.withAssoc = true
		case "readonly":
			s.readonly = true
		}
	}
	var err error
	if s.c, err = w.Client(); err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	if len(f.Operands) == 0 {
		return w.Prompt(s.verb)
	}
	return s.verb(f.Operands)
}

// mode switches how commands that follow at the prompt write; false: the word is none of these.
func (s *run) mode(word string) bool {
	switch word {
	case "associations":
		s.withAssoc = true
	case "parsable":
		s.parsable, s.parsable2 = true, false
	case "parsable2":
		s.parsable, s.parsable2 = false, true
	case "readonly":
		s.readonly = true
	case "quiet":
		s.quiet = true
	case "oneliner", "verbose":
	default:
		return false
	}
	return true
}

// verb carries out one command line.
func (s *run) verb(args []string) int {
	verb, rest := strings.ToLower(args[0]), args[1:]
	is := func(names ...string) bool {
		for _, n := range names {
			if verb != "" && strings.HasPrefix(n, verb) {
				return true
			}
		}
		return false
	}
	switch {
	case verb == "version":
		return s.w.PrintVersion()
	case verb == "help":
		return s.w.PrintHelp(parser())
	case s.mode(verb):
		return 0
	case verb == "s" || is("show", "list"):
		return (&lister{s}).show(rest)
	case s.readonly:
		s.w.Errorf("--readonly: nothing is changed")
		return slurm.ExitError
	case verb == "reconfigure": // as scontrol does: one server has the settings of both
		if _, err := s.c.Reconfigure(s.ctx, &client.Reconfigure{}); err != nil {
			return s.w.LoadFailed("sacctmgr: error: reconfigure", err)
		}
		return 0
	case is("add", "create"):
		return (&adder{s}).add(rest)
	case is("modify", "update"):
		return (&modifier{s}).modify(rest)
	case is("delete", "remove"):
		return (&remover{s}).remove(rest)
	case is("dump"):
		return (&lister{s}).dump(rest)
	case is("load"):
		return s.loadFile(rest)
	case is("clear"):
		return s.clear(rest)
	case is("archive"):
		return s.archive(rest)
	}
	fmt.Fprintf(s.w.Err, "invalid keyword: %s\n", args[0])
	return slurm.ExitError
}

// load reads all that is shown or changed.
func (s *run) load() bool {
	var err error
	if s.policy, err = s.c.Policy(s.ctx); err == nil {
		var users *client.UserList
		if users, err = s.c.Users(s.ctx); err == nil {
			s.users = users.Users
			var info *client.Cluster
			if info, err = s.c.Cluster(s.ctx); err == nil {
				s.name = info.Name
			}
		}
	}
	if err != nil {
		s.w.Errorf("%s", slurm.ErrorText(err))
		return false
	}
	s.complete()
	return true
}

// complete adds what Slurm has without anybody's doing: the account root with its user, and the QOS normal.
func (s *records) complete() {
	if s.account("root") == nil {
		s.policy.Projects = append(s.policy.Projects, core.Project{Name: "root"})
	}
	if p := s.account("root"); member(p, "root") == nil {
		p.Members = append(p.Members, core.Member{User: "root", Role: core.RoleAdmin})
	}
	if s.qos("normal") == nil {
		s.policy.QOS = append([]core.QOS{{Name: "normal", Description: "Normal QOS default"}}, s.policy.QOS...)
	}
}

func (s *records) account(name string) *core.Project {
	for i := range s.policy.Projects {
		if p := &s.policy.Projects[i]; strings.EqualFold(string(p.Name), name) {
			return p
		}
	}
	return nil
}

func (s *records) qos(name string) *core.QOS {
	for i := range s.policy.QOS {
		if q := &s.policy.QOS[i]; strings.EqualFold(string(q.Name), name) {
			return q
		}
	}
	return nil
}

// shown reports whether there is a user.
func (s *records) shown(name string) bool { return s.user(name) != nil }

func (s *records) user(name string) *core.User {
	for i := range s.users {
		if u := &s.users[i]; string(u.Name) == name {
			return u
		}
	}
	return nil
}

func member(p *core.Project, user string) *core.Member {
	for i := range p.Members {
		if string(p.Members[i].User) == user {
			return &p.Members[i]
		}
	}
	return nil
}

// commit asks, unless told not to, and applies the changed accounts and QOS. Users are made before, and given their
// default accounts after it.
func (s *run) commit(p core.Policy, first ...func() error) int {
	if !s.immediate && !s.agree() {
		fmt.Fprintln(s.w.Out, " Changes Discarded")
		return 0
	}
	for _, do := range first {
		if err := do(); err != nil {
			return s.failed(err)
		}
	}
	if len(p.QOS)+len(p.Projects) > 0 {
		// A limit below what runs holds back what comes, as in Slurm: it is no error here.
		if _, err := s.c.ApplyPolicy(s.ctx, &client.ApplyPolicy{Policy: p, Force: true}); err != nil {
			return s.failed(err)
		}
	}
	for _, do := range s.last {
		if err := do(); err != nil {
			return s.failed(err)
		}
	}
	return 0
}

func (s *run) failed(err error) int {
	s.w.Errorf("%s", slurm.ErrorText(err))
	return slurm.ExitError
}

func (s *run) agree() bool {
	fmt.Fprint(s.w.Out, "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ")
	in := bufio.NewScanner(s.w.In)
	return in.Scan() && strings.HasPrefix(strings.ToLower(strings.TrimSpace(in.Text())), "y")
}

// say prints a line of a plan.
func (s *run) say(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(s.w.Out, format+"\n", args...)
	}
}
