package emulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/step/cgroup"
)

// stopAtOnce bounds how many nodes are stopped at the same time.
const stopAtOnce = 8

// Stop pulls the plug of nodes and returns when nothing of them runs: no agent, no keeper, no job, no cgroup. keeper is
// the program of their keepers.
func Stop(ctx context.Context, nodes []Node, keeper string) error {
	g := errgroup.Group{}
	g.SetLimit(stopAtOnce)
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		g.Go(func() error {
			if err := stop(ctx, n, keeper); err != nil {
				errs[i] = fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in errs: one node's do not hide another's
	return errors.Join(errs...)
}

func stop(ctx context.Context, n Node, keeper string) error {
	if err := EndAgent(ctx, n.Dir); err != nil {
		return err
	}
	k := n.Keeper(keeper)
	if err := k.Kill(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(k.Dir); errors.Is(err, os.ErrNotExist) {
		return n.forgetBoot() // it never had a keeper
	}
	// A successor finds what the keeper left running, kills it, and records that it was lost; then it ends itself.
	err := k.Recover(ctx)
	dirs, loadErr := cgroup.Load(filepath.Join(k.Dir, "cgroups"))
	if err = errors.Join(err, loadErr); err != nil {
		// Without it, what is in the cgroups can be killed all the same.
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err = errors.Join(err, cgroup.Clean(ctx, dirs))
	}
	return errors.Join(err, clear(filepath.Join(n.Dir, "tmp")), n.forgetBoot())
}

// clear empties a directory.
func clear(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
