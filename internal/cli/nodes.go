package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func (a *App) nodesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "nodes [NODE]", Short: "list the nodes and what is free on them, or show one and what happened to it", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.oneNode(cmd.Context(), core.NodeName(args[0]), asJSON)
			}
			return a.nodes(cmd.Context(), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *App) nodes(ctx context.Context, asJSON bool) error {
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
		return a.printJSON(list)
	}
	t := table{{"NODE", "STATE", "CPUS", "MEMORY", "GRES", "LOAD", "CONTAINMENT", "NOTE"}}
	for i := range list.Nodes {
		n := &list.Nodes[i]
		t.row(string(n.Name), strings.ToLower(n.State), fmt.Sprintf("%d/%d", n.AllocCPUs, n.Hardware.CPUs),
			size(n.AllocMem)+"/"+size(n.Hardware.Memory), nodeGres(n), fmt.Sprintf("%.2f", n.Load), containment(n), nodeNote(n))
	}
	return t.write(a.Out)
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

// containment tells how well jobs are kept together on the node; weak is shouted, because a job may then leave
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
		notes = append(notes, "last heard "+clock(n.LastHeard))
	}
	return strings.Join(notes, "; ")
}

// nodeStateCommand is drain, resume or down.
func (a *App) nodeStateCommand(state string) *cobra.Command {
	var reason string
	short := map[string]string{
		"drain":  "give a node no new jobs",
		"resume": "give a drained or down node jobs again",
		"down":   "say that a node is dead: what ran there has ended",
	}[state]
	c := &cobra.Command{
		Use: state + " NODE...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if reason == "" && state != "resume" {
				reason = "set by " + state
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			for _, n := range names {
				if err := cl.UpdateNode(cmd.Context(), core.NodeName(n), &client.UpdateNode{State: state, Reason: reason}); err != nil {
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
