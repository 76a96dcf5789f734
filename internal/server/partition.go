package server

import (
	"context"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
)

// partition changes one partition, or removes it where change is nil. The config file stays as it is: what it says
// holds again when it is read again.
func (s *server) partition(ctx context.Context, by core.Identity, name core.PartitionName,
	change *client.PartitionChange,
) error {
	if !by.Admin {
		return core.Errorf(core.Denied, "only an administrator changes partitions").Because("access_denied")
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next := *s.live.Load()
	next.Partitions = slices.Clone(next.Partitions)
	at := slices.IndexFunc(next.Partitions, func(p config.Partition) bool { return p.Name == string(name) })
	switch {
	case at < 0 && (change == nil || !change.New):
		return core.Errorf(core.NotFound, "there is no partition %q", name).Because("invalid_partition")
	case at >= 0 && change != nil && change.New:
		return core.Errorf(core.Conflict, "partition %s is there already", name).Because("invalid_partition")
	case change == nil:
		next.Partitions = slices.Delete(next.Partitions, at, at+1)
	case at < 0:
		next.Partitions = append(next.Partitions, config.Partition{Name: string(name), PriorityTier: 1, PriorityFactor: 1})
		at = len(next.Partitions) - 1
	}
	if change != nil {
		if change.Default != nil && *change.Default {
			for i := range next.Partitions {
				next.Partitions[i].Default = false // there is one
			}
		}
		alter(&next.Partitions[at], change)
	}
	if err := next.Check(); err != nil {
		return err
	}
	if _, err := engine.Do(ctx, s.engine,
		&state.Reconfigure{By: by, Config: engineConfig(&next).State, Nodes: next.CoreNodes()}); err != nil {
		return err
	}
	s.live.Store(&next)
	s.api.SetConfig(&next)
	return nil
}

func alter(p *config.Partition, c *client.PartitionChange) {
	put(&p.Nodes, c.Nodes)
	put(&p.Default, c.Default)
	put(&p.MaxNodes, c.MaxNodes)
	put(&p.MinNodes, c.MinNodes)
	put(&p.PriorityTier, c.PriorityTier)
	put(&p.PriorityFactor, c.PriorityFactor)
	if c.State != nil {
		p.State = strings.ToUpper(*c.State)
	}
	if c.MaxTime != nil {
		p.MaxTime = config.TimeLimit(*c.MaxTime)
	}
	if c.DefaultTime != nil {
		p.DefaultTime = config.TimeLimit(*c.DefaultTime)
	}
}

func put[T any](at, value *T) {
	if value != nil {
		*at = *value
	}
}
