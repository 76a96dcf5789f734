package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/agent"
	"bireme.dev/bireme/internal/agent/emulate"
	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/core"
)

func newStopCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "stop [--dir DIR]",
		Short: "end a standalone cluster",
		Long: `End the standalone cluster in DIR and return when nothing of it runs: no server, agent, keeper or job. Its jobs are
treated as after a node failure when DIR is started again. A cluster that does not run is fine.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 2*stopTimeout)
			defer cancel()
			return stopCluster(ctx, dir)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "`folder` of the cluster (default: the user's state folder)")
	return c
}

func stopCluster(ctx context.Context, dir string) error {
	dir, err := stateDir(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return core.Errorf(core.NotFound, "there is no cluster in %s", dir)
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
	// What a cluster that was killed left behind is ended here.
	nodes, err := emulate.Found(filepath.Join(dir, "nodes"))
	if err != nil {
		return err
	}
	var left []emulate.Node
	for _, n := range nodes {
		if n.Booted() {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return nil
	}
	keeper, err := agent.FindKeeper()
	if err != nil {
		return err
	}
	return emulate.Stop(ctx, left, keeper)
}
