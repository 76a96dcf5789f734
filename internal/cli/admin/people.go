package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// people are the commands on users and projects.
type people struct{ *app.App }

func (a people) usersCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "users", Aliases: []string{"user"}, Short: "list, add and change users", Args: app.NoSuchCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return a.users(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	list := &cobra.Command{
		Use: "list", Short: "list users", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.users(cmd.Context(), asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list, a.userAdd(), a.userSet())
	return c
}

func (a people) users(ctx context.Context, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := c.Users(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if list.Users == nil {
			list.Users = []core.User{}
		}
		return a.PrintJSON(list)
	}
	t := app.Table{{"USER", "UNIX NAME", "UID", "ROLE", "PROJECT", "STATE"}}
	for _, u := range list.Users {
		uid, state := "", "active"
		if u.UID != nil {
			uid = fmt.Sprint(*u.UID)
		}
		if u.Disabled {
			state = "disabled"
		}
		t.Row(string(u.Name), u.UnixName, uid, string(u.Role), string(u.Default), state)
	}
	return t.Write(a.Out)
}

func (a people) userAdd() *cobra.Command {
	var u core.User
	var role string
	c := &cobra.Command{
		Use: "add NAME", Short: "add a user", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.Name, u.Role = core.UserName(args[0]), core.Role(role)
			if err := checkRole(role); err != nil {
				return err
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			made, err := cl.AddUser(cmd.Context(), &u)
			if err != nil {
				return err
			}
			if made.Warning != "" {
				a.Note("%s", made.Warning)
			}
			if u.UnixName == "" {
				a.Note("%s has no account on the nodes and cannot run processes; --unix-name ACCOUNT sets one", u.Name)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&u.UnixName, "unix-name", "", "the `ACCOUNT` that processes run as")
	f.StringVar(&role, "role", "user", "user, manager or admin, across the cluster")
	f.StringVar((*string)(&u.Default), "project", "", "default `PROJECT`")
	return c
}

func (a people) userSet() *cobra.Command {
	var unixName, role, proj string
	var disable, enable bool
	c := &cobra.Command{
		Use: "set NAME", Short: "change a user", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := app.OneFlag(cmd, "disable", "enable"); err != nil {
				return err
			}
			var p client.UpdateUser
			f := cmd.Flags()
			if f.Changed("unix-name") {
				p.UnixName = &unixName
			}
			if f.Changed("role") {
				if err := checkRole(role); err != nil {
					return err
				}
				r := core.Role(role)
				p.Role = &r
			}
			if f.Changed("project") {
				d := core.ProjectName(proj)
				p.Default = &d
			}
			if disable || enable {
				p.Disabled = &disable
			}
			if p == (client.UpdateUser{}) {
				return app.Usagef("users set %s: nothing to change; see --help", args[0])
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			return cl.UpdateUser(cmd.Context(), core.UserName(args[0]), &p)
		},
	}
	f := c.Flags()
	f.StringVar(&unixName, "unix-name", "", "the `ACCOUNT` that processes run as")
	f.StringVar(&role, "role", "", "user, manager or admin, across the cluster")
	f.StringVar(&proj, "project", "", "default `PROJECT`")
	f.BoolVar(&disable, "disable", false, "refuse the user from now on")
	f.BoolVar(&enable, "enable", false, "accept the user again")
	return c
}

func checkRole(role string) error {
	switch core.Role(role) {
	case core.RoleUser, core.RoleManager, core.RoleAdmin:
		return nil
	case core.RoleNone:
	}
	return app.Usagef("--role %q: expected user, manager or admin", role)
}

func (a people) projectsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "projects", Aliases: []string{"project"}, Short: "list and add projects and their members",
		Args:                       app.NoSuchCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return a.projects(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	list := &cobra.Command{
		Use: "list", Short: "list projects", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.projects(cmd.Context(), asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list, a.projectAdd(), a.projectSet(), a.projectMember())
	return c
}

func (a people) projects(ctx context.Context, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := c.Projects(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if list.Projects == nil {
			list.Projects = []core.Project{}
		}
		return a.PrintJSON(list)
	}
	t := app.Table{{"PROJECT", "PARENT", "RUNTIME", "MEMBERS"}}
	for _, p := range list.Projects {
		members := make([]string, len(p.Members))
		for i, m := range p.Members {
			members[i] = string(m.User)
			if m.Role != core.RoleUser {
				members[i] += " (" + string(m.Role) + ")"
			}
		}
		t.Row(string(p.Name), string(p.Parent), core.RuntimeIn(p.Name, list.Find), strings.Join(members, ", "))
	}
	return t.Write(a.Out)
}

func (a people) projectAdd() *cobra.Command {
	var parent, runtime string
	var trusted bool
	c := &cobra.Command{
		Use: "add NAME", Aliases: []string{"create"}, Short: "add a project", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			return cl.NewProject(cmd.Context(), &core.Project{
				Name: core.ProjectName(args[0]), Parent: core.ProjectName(parent), Runtime: runtime, Trusted: trusted,
			})
		},
	}
	c.Flags().StringVar(&parent, "parent", "", "the `PROJECT` above it")
	c.Flags().StringVar(&runtime, "runtime", "", runtimeHelp)
	c.Flags().BoolVar(&trusted, "trusted", false, trustedHelp)
	return c
}

const trustedHelp = "its containers may be privileged and mount any path of their nodes"

const runtimeHelp = "process or container: what configurations run in that do not say it (default: as the project " +
	"above it)"

func (a people) projectSet() *cobra.Command {
	var runtime string
	var trusted bool
	c := &cobra.Command{
		Use: "set NAME", Short: "change a project", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := &client.UpdateProject{}
			if cmd.Flags().Changed("runtime") {
				change.Runtime = &runtime
			}
			if cmd.Flags().Changed("trusted") {
				change.Trusted = &trusted
			}
			if *change == (client.UpdateProject{}) {
				return app.Usagef("projects set %s: nothing to change; see --help", args[0])
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			return cl.UpdateProject(cmd.Context(), core.ProjectName(args[0]), change)
		},
	}
	c.Flags().StringVar(&runtime, "runtime", "", runtimeHelp)
	c.Flags().BoolVar(&trusted, "trusted", false, trustedHelp+"; --trusted=false takes that back")
	return c
}

func (a people) projectMember() *cobra.Command {
	var role string
	var remove bool
	c := &cobra.Command{
		Use: "member PROJECT USER", Short: "add a member, or change the role of one", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := app.OneFlag(cmd, "role", "remove"); err != nil {
				return err
			}
			if err := checkRole(role); err != nil {
				return err
			}
			r := core.Role(role)
			if remove {
				r = core.RoleNone
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			return cl.PutMember(cmd.Context(), core.ProjectName(args[0]), core.UserName(args[1]), r)
		},
	}
	c.Flags().StringVar(&role, "role", "user", "user, manager or admin, in the project")
	c.Flags().BoolVar(&remove, "remove", false, "take the user out of the project")
	return c
}
