package admit

import (
	"path"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/engine/state/volumes"
)

// volumes checks the volumes that a job mounts, and completes it by what they mean for its place. It may be called
// again for the same spec.
func (a *Admission) volumes(spec *core.Spec) error {
	if len(spec.More().Volumes) == 0 {
		return nil
	}
	x := *spec.Extra
	x.Volumes = slices.Clone(x.Volumes)
	spec.Extra = &x
	if len(x.Volumes) > storage.MaxMounted {
		return invalidVolume("%d volumes are more than a job may mount, %d", len(x.Volumes), storage.MaxMounted)
	}
	var homes []core.NodeName // by rank, of those that are bound to a node
	targets := map[string]bool{}
	for i := range x.Volumes {
		m := &x.Volumes[i]
		if err := checkTarget(m.Target); err != nil {
			return err
		}
		if targets[m.Target] {
			return invalidVolume("volume %s: two volumes are mounted at %s", m.Name, m.Target)
		}
		targets[m.Target] = true
		at, err := a.volume(spec, m)
		if err != nil {
			return err
		}
		for rank, home := range at {
			if rank < len(homes) && homes[rank] != home {
				return invalidVolume("volume %s is on node %s, and another of the job's on %s", storage.NameFor(m, rank), home,
					homes[rank])
			}
		}
		if len(at) > 0 {
			homes = at
		}
	}
	for i := range x.Volumes {
		if req := x.Licenses.Request(); x.Volumes[i].Single && req != nil && req.Any {
			return invalidVolume("volume %s, which one job at a time may have, cannot be combined with a choice of licenses",
				x.Volumes[i].Name)
		}
	}
	return placeAt(&x, homes)
}

func invalidVolume(format string, args ...any) error {
	return core.Errorf(core.Invalid, format, args...).Because("invalid_volume")
}

// checkTarget refuses places that belong to the system of a container or a node.
func checkTarget(target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || strings.ContainsAny(target, ":\x00\n") {
		return invalidVolume("volume at %.200q: expected an absolute path without . or .. in it", target)
	}
	switch first, _, _ := strings.Cut(target[1:], "/"); first {
	case "", "proc", "sys", "dev", ".bireme":
		return invalidVolume("volume at %s: it must not be /, nor below /proc, /sys, /dev or /.bireme", target)
	}
	return nil
}

// volume finds what a job mounts by one of its entries, and gives the nodes that these volumes are bound to, by rank.
func (a *Admission) volume(spec *core.Spec, m *core.VolumeMount) (homes []core.NodeName, err error) {
	names := append([]string{m.Name}, m.Others...)
	if len(names) > storage.MaxMounted {
		return nil, invalidVolume("%d names of one volume are more than %d", len(names), storage.MaxMounted)
	}
	for _, name := range names {
		m.Name, m.Others = name, nil
		if homes, err = a.volumeNamed(spec, m); err == nil || core.ReasonOf(err) != "no_volume" {
			return homes, err
		}
	}
	return nil, err
}

func (a *Admission) volumeNamed(spec *core.Spec, m *core.VolumeMount) (homes []core.NodeName, err error) {
	n := 1
	if storage.PerNode(m) {
		n = int(max(1, spec.Shape.NodesMin))
		if spec.More().Het != nil || spec.Shape.NodesMax > spec.Shape.NodesMin {
			return nil, invalidVolume("volume %s: a volume for each node needs a job with a fixed number of nodes, "+
				"and without groups", m.Name)
		}
	}
	m.Single = false
	for rank := range n {
		name := storage.NameFor(m, rank)
		if err := storage.CheckName(name); err != nil {
			return nil, err
		}
		v, ok := a.rec.Volume(core.VolumeKey{Project: spec.Project, Name: name})
		if !ok {
			return nil, core.Errorf(core.Invalid, "there is no volume %s in project %s; `bireme volume list` has all",
				name, spec.Project).Because("no_volume")
		}
		if v.State != core.VolumeActive {
			return nil, invalidVolume("volume %s cannot be mounted: it is %s%s", name, v.State, because(v.Message))
		}
		if _, err := volumes.FindClass(a.cfg.Volumes, v.Class, spec.Project); err != nil {
			return nil, invalidVolume("volume %s: %v", name, err)
		}
		m.Single = m.Single || v.Single
		if v.Bound {
			homes = append(homes, v.Node)
		}
	}
	if m.Single && !storage.PerNode(m) && max(spec.Shape.NodesMin, spec.Shape.NodesMax) > 1 {
		return nil, invalidVolume("volume %s can be mounted on one node at a time: for a job on several nodes make one for "+
			"each, called %s-0 and so on, and name %s-${{ dstack.node_rank }}", m.Name, m.Name, m.Name)
	}
	if m.Single && spec.More().Het != nil {
		return nil, invalidVolume("volume %s, which one job at a time may have, cannot be mounted by a run with groups",
			m.Name)
	}
	if m.Single && spec.Array != "" && storage.PerNode(m) {
		return nil, invalidVolume("volume %s: an array has no volumes of its own for each node", m.Name)
	}
	return homes, nil
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// placeAt has a job run on the nodes that its volumes are bound to.
func placeAt(x *core.Extra, homes []core.NodeName) error {
	if len(homes) == 0 {
		return nil
	}
	if !slices.IsSorted(homes) || len(slices.Compact(slices.Clone(homes))) != len(homes) {
		return invalidVolume("the volumes of the job's nodes are on %v: each must be on a node of its own, in the order of "+
			"the nodes' names", homes)
	}
	names := make([]string, len(homes))
	for i, n := range homes {
		names[i] = string(n)
	}
	if x.NodeList != "" {
		list, err := hostlist.Expand(x.NodeList, 1<<16)
		if err != nil {
			return invalidVolume("node list %.200q: %v", x.NodeList, err)
		}
		for _, n := range list {
			if !slices.Contains(names, n) {
				return invalidVolume("the volumes of the job are on %s, and it names node %s", strings.Join(names, ", "), n)
			}
		}
	}
	x.NodeList = strings.Join(names, ",")
	return nil
}
