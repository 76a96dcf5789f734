package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/agent"
	"bireme.dev/bireme/internal/agent/emulate"
	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/core"
)

func newStopCommand() *cobra.Command {
	var dir string
	var jobs bool
	c := &cobra.Command{
		Use:   "stop [--dir DIR] [--jobs]",
		Short: "stop the cluster, server or agent of a directory",
		Long: `End what runs in DIR and return when it is gone:

  a standalone cluster   with its agents, keepers and jobs, which are treated as after a
                         node failure when DIR is started again
  a server               jobs go on; what ended meanwhile is told to the next server
  an agent               with its step keeper (bireme-step). While jobs run there it is
                         refused, unless --jobs ends them too

A DIR in which nothing runs is fine.`,
		Args: noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 2*stopTimeout)
			defer cancel()
			dir, err := stateDir(dir)
			if err != nil {
				return err
			}
			return foreign(dir, stopDir(ctx, dir, jobs, c.ErrOrStderr()))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "`folder` of the cluster, server or agent (default: the user's state folder)")
	c.Flags().BoolVar(&jobs, "jobs", false, "end the jobs of an agent, too")
	return c
}

func stopDir(ctx context.Context, dir string, jobs bool, notes io.Writer) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return core.Errorf(core.NotFound, "there is no cluster in %s", dir)
	} else if err != nil {
		return err
	}
	if emulate.IsNode(dir) {
		return stopNode(ctx, dir, jobs)
	}
	p, err := process.Holder(pidPath(dir))
	if err != nil {
		return err
	}
	if p != nil {
		defer p.Close()
		if err := p.End(ctx, stopTimeout); err != nil {
			return err
		}
	}
	ended, err := stopRest(ctx, dir)
	if err == nil && p == nil && ended == 0 {
		fmt.Fprintf(notes, "note: nothing is running in %s\n", dir)
	}
	return err
}

// stopRest ends what a standalone cluster that was killed left behind, and counts its nodes.
func stopRest(ctx context.Context, dir string) (int, error) {
	nodes, err := emulate.Found(filepath.Join(dir, "nodes"))
	if err != nil {
		return 0, err
	}
	left := slices.DeleteFunc(nodes, func(n emulate.Node) bool { return !n.Booted() })
	if len(left) == 0 {
		return 0, nil
	}
	keeper, err := agent.FindKeeper()
	if err != nil {
		return 0, err
	}
	return len(left), emulate.Stop(ctx, left, keeper)
}

// stopNode ends an agent and its keeper.
func stopNode(ctx context.Context, dir string, jobs bool) error {
	keeper, err := agent.FindKeeper()
	if err != nil {
		return err
	}
	n := emulate.Node{Name: core.NodeName(filepath.Base(dir)), Dir: dir}
	if !jobs {
		running, err := n.Keeper(keeper).Running(ctx)
		if err != nil {
			return err
		}
		var ids []string
		for _, r := range running {
			if id := fmt.Sprint(r.Key.Job); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			return core.Errorf(core.Conflict, "jobs run on the node of %s: %s; drain it and wait for them, or give "+
				"--jobs to end them",
				dir, strings.Join(ids, ", "))
		}
	}
	return emulate.Stop(ctx, []emulate.Node{n}, keeper)
}
