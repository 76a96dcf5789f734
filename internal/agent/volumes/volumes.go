// Package volumes makes and removes network volumes for the agent. Jobs' mounts are the keeper's.
package volumes

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/volume"
	"bireme.dev/bireme/internal/wire"
)

// Maker does what the server asks about volumes, one at a time, beside the session: the server asks again when it has
// heard nothing.
type Maker struct {
	mu   sync.Mutex // held while one is made or removed
	work sync.WaitGroup
}

// patience is how long making or removing a volume may take; large ones take long to remove.
const patience = 30 * time.Minute

// Take begins what a frame asks for, until ctx ends, and tells what became of it. dir is the agent's.
func (m *Maker) Take(ctx context.Context, f wire.Frame, node core.NodeName, dir string,
	tell func(wire.Type, any, ...[]byte),
) error {
	var t wire.VolumeTask
	if err := f.Decode(&t); err != nil {
		return err
	}
	m.work.Go(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if ctx.Err() == nil {
			tell(wire.TypeVolumeDone, do(ctx, &t, node, filepath.Join(dir, "volumes-made")))
		}
	})
	return nil
}

// Wait returns when nothing is done any more.
func (m *Maker) Wait() { m.work.Wait() }

func do(ctx context.Context, t *wire.VolumeTask, node core.NodeName, dir string) wire.VolumeDone {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	run := func(argv []string) ([]byte, error) {
		return exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	}
	var err error
	if t.Remove {
		err = volume.Remove(ctx, &t.Volume, dir, run)
	} else {
		err = volume.Make(&t.Volume, dir, run)
	}
	done := wire.VolumeDone{Project: t.Volume.Project, Name: t.Volume.Name, Created: t.Volume.Created, Remove: t.Remove}
	if err != nil {
		done.Fault = fmt.Sprintf("node %s: %v", node, err)
	}
	return done
}
