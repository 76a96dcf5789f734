package fleets

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// HostNews is what was found out about a host. Nil fields stay.
type HostNews struct{ HostKey, JumpKey, Peer, Cert, Cause, Runs *string }

// Apply sets what was found out and reports whether the host changed.
func (in *HostNews) Apply(h *core.FleetHost, now core.Time) bool {
	was := *h
	for _, x := range []struct {
		to   *string
		from *string
	}{
		{&h.HostKey, in.HostKey},
		{&h.JumpKey, in.JumpKey},
		{&h.Peer, in.Peer},
		{&h.Cert, in.Cert},
		{&h.Cause, in.Cause},
		{&h.Runs, in.Runs},
	} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if h.Cause != was.Cause {
		h.Since = now
	}
	return *h != was
}

// Clone returns a copy of a fleet whose hosts may be changed.
func Clone(f *core.Fleet) *core.Fleet {
	next := *f
	next.Hosts = slices.Clone(f.Hosts)
	return &next
}

// CheckIdle refuses to remove hosts on which jobs run, unless forced. jobsOn lists the jobs of a node.
func CheckIdle(f *core.Fleet, force bool, how string, jobsOn func(core.NodeName) []core.JobID) error {
	if force {
		return nil
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		if jobs := jobsOn(h.Node); h.Leaving && len(jobs) > 0 {
			return core.Errorf(core.Conflict,
				"host %s (node %s) stays: job %d runs there; wait, cancel it, or use %s, which ends what runs there",
				h.Login.Host, h.Node, jobs[0], how).Because("node_busy")
		}
	}
	return nil
}

// CheckBlocks refuses a fleet whose known nodes cannot be split into its blocks.
func CheckBlocks(f *core.Fleet, node NodeFunc) error {
	for i := range f.Hosts {
		h := &f.Hosts[i]
		n, ok := node(h.Node)
		if !ok || n.Flags.Has(core.NodeUnknown) || h.Leaving {
			continue
		}
		if _, err := n.Hardware.Split(h.Blocks); err != nil {
			return core.Errorf(core.Conflict, "host %s (node %s): %v", h.Login.Host, h.Node, err).Because("invalid_blocks")
		}
	}
	return nil
}

// Reseal replaces the sealed texts of a fleet. It returns a copy and reports whether anything was replaced. runs is for
// FleetHost.Runs.
func Reseal(f *core.Fleet, texts, runs map[string]string) (*core.Fleet, bool) {
	next, changed := *f, false
	next.Keys, next.Hosts = slices.Clone(f.Keys), slices.Clone(f.Hosts)
	put := func(at *string, by map[string]string) {
		if text, ok := by[*at]; ok && *at != "" {
			*at, changed = text, true
		}
	}
	put(&next.Env.Sealed, texts)
	for i := range next.Keys {
		put(&next.Keys[i].Sealed, texts)
	}
	for i := range next.Hosts {
		put(&next.Hosts[i].Runs, runs)
	}
	return &next, changed
}
