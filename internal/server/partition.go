package server

import (
	"context"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
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
		next.Partitions = append(next.Partitions, config.Partition{
			Name: string(name), Nodes: core.NoNodes, MinNodes: 1, PriorityTier: 1, PriorityFactor: 1,
		})
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
	if change != nil {
		if err := s.checkPartition(&next.Partitions[at], change); err != nil {
			return err
		}
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

// checkPartition refuses what Slurm refuses with texts of its own.
func (s *server) checkPartition(p *config.Partition, c *client.PartitionChange) error {
	snap := s.engine.Snapshot()
	if err := config.CheckBilling(p.BillingWeights); c.BillingWeights != nil && err != nil {
		return core.Errorf(core.Invalid, "billing_weights: %v", err).Because("invalid_billing_weights")
	}
	if _, ok := snap.QOS(core.QOSName(p.QOS)); c.QOS != nil && p.QOS != "" && !ok {
		return core.Errorf(core.Invalid, "there is no QOS %q", p.QOS).Because("invalid_qos")
	}
	if c.Nodes == nil || strings.EqualFold(p.Nodes, "ALL") || p.Nodes == core.NoNodes {
		return nil
	}
	names, err := hostlist.Expand(p.Nodes, 1<<20)
	for _, n := range names {
		if _, ok := snap.Node(core.NodeName(n)); !ok {
			return core.Errorf(core.Invalid, "there is no node %q", n).Because("invalid_node")
		}
	}
	if err != nil {
		return core.Errorf(core.Invalid, "nodes: %v", err).Because("invalid_node")
	}
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
	alterAccess(p, &c.PartitionAccess)
	alterBounds(p, &c.PartitionBounds)
}

func alterAccess(p *config.Partition, c *client.PartitionAccess) {
	put(&p.AllocNodes, c.AllocNodes)
	put(&p.AllowProjects, c.AllowAccounts)
	put(&p.DenyProjects, c.DenyAccounts)
	put(&p.AllowQOS, c.AllowQOS)
	put(&p.DenyQOS, c.DenyQOS)
	put(&p.AllowGroups, c.AllowGroups)
	put(&p.Alternate, c.Alternate)
	put(&p.QOS, c.QOS)
	put(&p.Hidden, c.Hidden)
	put(&p.NoRoot, c.NoRoot)
	put(&p.AdminOnly, c.RootOnly)
	put(&p.ReqResv, c.ReqResv)
}

func alterBounds(p *config.Partition, c *client.PartitionBounds) {
	put(&p.CPUBind, c.CPUBind)
	if c.DefMemPerCPU != nil || c.DefMemPerNode != nil { // one takes the other's place
		p.DefMemPerCPU, p.DefMemPerNode = 0, 0
	}
	if c.MaxMemPerCPU != nil || c.MaxMemPerNode != nil {
		p.MaxMemPerCPU, p.MaxMemPerNode = 0, 0
	}
	for _, m := range []struct {
		at    *config.Size
		value *core.Bytes
	}{
		{&p.DefMemPerCPU, c.DefMemPerCPU},
		{&p.DefMemPerNode, c.DefMemPerNode},
		{&p.MaxMemPerCPU, c.MaxMemPerCPU},
		{&p.MaxMemPerNode, c.MaxMemPerNode},
		{&p.DefMemPerGPU, c.DefMemPerGPU},
	} {
		if m.value != nil {
			*m.at = config.Size(*m.value)
		}
	}
	put(&p.DefCPUsPerGPU, c.DefCPUsPerGPU)
	put(&p.MaxCPUsPerNode, c.MaxCPUsPerNode)
	put(&p.ExclusiveUser, c.ExclusiveUser)
	put(&p.LLN, c.LLN)
	put(&p.OverSubscribe, c.OverSubscribe)
	if c.OverTime != nil {
		p.OverTime = config.TimeLimit(*c.OverTime)
	}
	put(&p.PreemptMode, c.PreemptMode)
	if c.Grace != nil {
		p.Grace = config.Duration(c.Grace.Duration())
	}
	put(&p.BillingWeights, c.BillingWeights)
}

func put[T any](at, value *T) {
	if value != nil {
		*at = *value
	}
}
