package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// nodes are the commands on nodes.
type nodes struct{ *app.App }

func (a nodes) command() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "nodes [NODE]", Aliases: []string{"node"}, Short: "list the nodes and what is free on them, or show one " +
			"and what happened to it", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.show(cmd.Context(), core.NodeName(args[0]), asJSON)
			}
			return a.list(cmd.Context(), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(a.remove())
	return c
}

// maxNodesNamed bounds what a command's host lists stand for.
const maxNodesNamed = 100_000

// nodesNamed expands host lists and sees that all of them are nodes, before anything is done with the first.
func nodesNamed(ctx context.Context, c *client.Client, lists []string) ([]core.NodeName, error) {
	names, err := hostlist.Expand(strings.Join(lists, ","), maxNodesNamed)
	if err != nil {
		return nil, app.Usagef("%s: %s", strings.Join(lists, ","), err.Error())
	}
	list, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	known := map[core.NodeName]bool{}
	for i := range list.Nodes {
		known[list.Nodes[i].Name] = true
	}
	var out []core.NodeName
	var missing []string
	for _, n := range names {
		if name := core.NodeName(n); !known[name] {
			missing = append(missing, n)
		} else if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(missing) > 0 {
		return nil, core.Errorf(core.NotFound, "there is no node %s; nothing was changed", hostlist.Fold(missing)).
			Because("invalid_node")
	}
	return out, nil
}

func (a nodes) remove() *cobra.Command {
	var now, drain bool
	c := &cobra.Command{
		Use: "remove NODE...", Short: "remove nodes and revoke their certificates",
		Args: cobra.MinimumNArgs(1),
		Long: "Remove nodes, named as host lists (n[1-4]). A node with running jobs is refused, unless they are " +
			"waited for (--drain) or ended (--now, as by\n" +
			"bireme down). To come back a node joins again with a token (bireme token join). One that is in the " +
			"settings is to be taken out there, too.",
		RunE: func(cmd *cobra.Command, lists []string) error {
			if err := app.OneFlag(cmd, "now", "drain"); err != nil {
				return err
			}
			how := ""
			if now {
				how = "now"
			} else if drain {
				how = "drain"
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			names, err := nodesNamed(cmd.Context(), cl, lists)
			if err != nil {
				return err
			}
			for _, n := range names {
				out, err := cl.RemoveNode(cmd.Context(), n, how)
				if err != nil {
					return err
				}
				if !out.Gone {
					a.Note("%s takes no more jobs and is removed when its running jobs have ended", n)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&now, "now", false, "end the jobs that run there")
	c.Flags().BoolVar(&drain, "drain", false, "wait for the jobs that run there; the command does not")
	return c
}

func (a nodes) list(ctx context.Context, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if list.Nodes == nil {
			list.Nodes = []client.Node{}
		}
		return a.PrintJSON(list)
	}
	t := app.Table{{"NODE", "STATE", "CPUS", "MEMORY", "GRES", "LOAD", "CONTAINMENT", "NOTE"}}
	for i := range list.Nodes {
		n := &list.Nodes[i]
		t.Row(string(n.Name), strings.ToLower(n.State), fmt.Sprintf("%d/%d", n.AllocCPUs, n.Hardware.CPUs),
			app.Size(n.AllocMem)+"/"+app.Size(n.Hardware.Memory), nodeGres(n), fmt.Sprintf("%.2f", n.Load),
			containment(n), nodeNote(n))
	}
	return t.Write(a.Out)
}

// nodeGres shows used and all of each resource: gpu:a100:2/8.
func nodeGres(n *client.Node) string {
	var out []string
	for _, g := range n.Hardware.Gres {
		var used int64
		for _, u := range n.AllocGres {
			if u.Name == g.Name && u.Type == g.Type {
				used += u.Count
			}
		}
		name := g.Name
		if g.Type != "" {
			name += ":" + g.Type
		}
		out = append(out, fmt.Sprintf("%s:%d/%d", name, used, g.Count))
	}
	return strings.Join(out, ",")
}

// containment returns how well jobs are kept together on the node; weak is shouted, because a job may then leave
// processes behind or use more than it was given.
func containment(n *client.Node) string {
	text := n.Host.Containment
	if text == "weak" {
		text = "WEAK"
	}
	if text != "" && !n.Host.Root {
		text += " (" + uidName(n.Host.UID) + " only)"
	}
	return text
}

func uidName(uid uint32) string {
	if u, err := account.ByUID(uid); err == nil {
		return u.Name
	}
	return fmt.Sprintf("uid %d", uid)
}

func nodeNote(n *client.Node) string {
	var notes []string
	if n.LoginOnly() {
		notes = append(notes, "login node: no jobs")
	}
	if slices.ContainsFunc(n.Hardware.Units, func(u core.Unit) bool { return u.Vendor == "fake" }) {
		notes = append(notes, "its GPUs are fake")
	}
	if n.Reason != "" {
		note := n.Reason
		if n.ReasonBy != "" {
			note += " [" + string(n.ReasonBy) + "]"
		}
		notes = append(notes, note)
	}
	if n.Warning != "" {
		notes = append(notes, n.Warning)
	}
	if !n.Connected && n.LastHeard != 0 {
		notes = append(notes, "last heard "+app.Clock(n.LastHeard))
	}
	return strings.Join(notes, "; ")
}

// stateCommand is drain, resume or down.
func (a nodes) stateCommand(verb core.NodeVerb) *cobra.Command {
	var reason string
	state := string(verb)
	short := map[core.NodeVerb]string{
		core.VerbDrain:  "give a node no new jobs",
		core.VerbResume: "give a drained or down node jobs again",
		core.VerbDown:   "mark a node as down: what ran there has ended",
	}[verb]
	c := &cobra.Command{
		Use: state + " NODE...", Short: short, Long: short + "; NODE may be a host list: n[1-4]", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if reason == "" && verb != core.VerbResume {
				reason = "set by " + state
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			nodes, err := nodesNamed(cmd.Context(), cl, names)
			if err != nil {
				return err
			}
			for _, n := range nodes {
				if err := cl.UpdateNode(cmd.Context(), n, &client.UpdateNode{State: verb, Reason: reason}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	if state != "resume" {
		c.Flags().StringVarP(&reason, "reason", "r", "", "`WHY`, for others to read")
	}
	return c
}
