package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/agent/backoff"
	"bireme.dev/bireme/internal/agent/docker"
)

// images keeps the node's images within their limit and fetches what the cluster wants to be there. Only images that
// jobs of this agent ran are ever removed: the engine may have other users. When each was last used is kept in a file,
// for the next agent; without it nothing is removed until jobs have run again.
type images struct {
	log    *slog.Logger
	engine *docker.Client
	makers *makers // of images that are files
	file   string

	mu       sync.Mutex
	limit    int64
	prefetch []string
	// what is wanted and there, by the engine's id: it may have longer names than we were told
	wanted map[string]bool
	last   map[string]time.Time // by the engine's id
	wake   chan struct{}
}

func newImages(log *slog.Logger, engine *docker.Client, m *makers, dir string) *images {
	i := &images{
		log: log, engine: engine, makers: m, file: filepath.Join(dir, "images.json"),
		last: map[string]time.Time{}, wake: make(chan struct{}, 1),
	}
	b, err := os.ReadFile(i.file)
	if err == nil {
		err = json.Unmarshal(b, &i.last)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("when images were used is not known", "err", err)
	}
	return i
}

// settle takes the cluster's wishes.
func (i *images) settle(limit int64, prefetch []string) {
	i.mu.Lock()
	changed := i.limit != limit || !slices.Equal(i.prefetch, prefetch)
	i.limit, i.prefetch = limit, slices.Clone(prefetch)
	i.mu.Unlock()
	if changed {
		i.nudge()
	}
}

// used notes that a job ran an image.
func (i *images) used(id string) {
	if id == "" {
		return
	}
	i.mu.Lock()
	i.last[id] = time.Now()
	i.mu.Unlock()
	i.nudge()
}

func (i *images) nudge() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// run does what settle and used ask for until ctx ends. What fails is tried again after a while.
func (i *images) run(ctx context.Context) error {
	back := backoff.Backoff{Least: time.Second, Most: 5 * time.Minute}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-i.wake:
		}
		err := errors.Join(i.fetch(ctx), i.trim(ctx), i.save())
		if err == nil {
			back.Reset()
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		i.log.Warn("images", "err", err)
		if !back.Wait(ctx) {
			return nil
		}
		i.nudge()
	}
}

// fetch pulls the images that are wanted and not there.
func (i *images) fetch(ctx context.Context) error {
	i.mu.Lock()
	list := i.prefetch
	i.mu.Unlock()
	var faults []error
	wanted := map[string]bool{}
	for _, ref := range list {
		if mine, err := i.makers.prefetch(ref); mine {
			faults = append(faults, err)
			continue
		}
		m, err := i.engine.Image(ctx, ref)
		if errors.Is(err, os.ErrNotExist) {
			if err = i.engine.Pull(ctx, ref, nil, nil); err == nil {
				m, err = i.engine.Image(ctx, ref)
			}
		}
		if err == nil {
			wanted[m.ID] = true
		}
		faults = append(faults, err)
	}
	i.mu.Lock()
	i.wanted = wanted
	i.mu.Unlock()
	return errors.Join(faults...)
}

// trim removes the images not used for longest until the rest is within the limit.
func (i *images) trim(ctx context.Context) error {
	i.mu.Lock()
	limit, wanted, list, used := i.limit, i.wanted, i.prefetch, len(i.last)
	i.mu.Unlock()
	// nobody asks for an engine that nothing was run by
	if err := i.makers.trim(limit, list); err != nil || limit <= 0 || used == 0 {
		return err
	}
	all, err := i.engine.Images(ctx)
	if err != nil {
		return err
	}
	i.mu.Lock()
	ours := slices.DeleteFunc(all, func(m docker.Image) bool {
		return i.last[m.ID].IsZero() || wanted[m.ID]
	})
	slices.SortFunc(ours, func(a, b docker.Image) int { return i.last[b.ID].Compare(i.last[a.ID]) }) // the latest first
	i.mu.Unlock()
	var sum int64
	for _, m := range ours {
		if sum += m.Size; sum <= limit {
			continue
		}
		names := m.RepoTags
		if len(names) == 0 {
			names = []string{m.ID}
		}
		for _, name := range names {
			if err := i.engine.RemoveImage(ctx, name); err != nil {
				return err
			}
		}
		i.log.Info("image removed: the cache is full", "image", m.Digest(), "size", m.Size)
	}
	return nil
}

// save keeps what was noted, without images that are long gone.
func (i *images) save() error {
	i.mu.Lock()
	for id, at := range i.last {
		if time.Since(at) > 90*24*time.Hour {
			delete(i.last, id)
		}
	}
	b, err := json.Marshal(i.last)
	empty := len(i.last) == 0
	i.mu.Unlock()
	if err != nil || empty {
		return err
	}
	tmp := i.file + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, i.file)
}
