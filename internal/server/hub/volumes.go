package hub

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/wire"
)

// class finds the class of a volume in the settings; nil: it is not there any more.
func (r *Rules) class(name string) *storage.Class {
	for i := range r.Volumes {
		if r.Volumes[i].Name == name {
			return &r.Volumes[i]
		}
	}
	return nil
}

// volumeOrder is what a volume's node is to do about it, if anything.
func (r *Rules) volumeOrder(v *core.Volume) (order, bool) {
	if v.State != core.VolumeSubmitted && v.State != core.VolumeDeleting {
		return order{}, false
	}
	class := r.class(v.Class)
	if class == nil {
		return order{}, false // it waits for its class to come back
	}
	t := wire.VolumeTask{Volume: wire.VolumeOf(v, class), Remove: v.State == core.VolumeDeleting}
	return order{typ: wire.TypeVolume, header: t}, true
}

// orderVolumes tells nodes what is to be done about volumes. The hub's mu is held.
func orderVolumes(rules *Rules, nodes map[core.NodeName]*node, list []*core.Volume) {
	for _, v := range list {
		n := nodes[v.Node]
		if n == nil || n.conn == nil || v.State == core.VolumeDeleting && v.Message != "" { // it could not, and says why
			continue
		}
		if o, ok := rules.volumeOrder(v); ok {
			n.conn.queue(o)
		}
	}
}

// volumeConn is what of a connection is about volumes.
type volumeConn struct{ *conn }

// order tells a node that has just connected what is to be done about its volumes.
func (c volumeConn) order() {
	k := c.conn
	for _, v := range k.h.engine.Snapshot().Volumes() {
		if v.Node != k.who.Name {
			continue
		}
		if o, ok := k.h.rules().volumeOrder(v); ok {
			k.queue(o)
		}
	}
}

// maxVolumeFault bounds what a node says.
const maxVolumeFault = 1 << 10

// done passes on what a node did about a volume.
func (c volumeConn) done(d wire.VolumeDone) {
	fault := d.Fault
	if len(fault) > maxVolumeFault {
		fault = fault[:maxVolumeFault]
	}
	c.report(&state.VolumeNews{
		Node: c.who.Name, Key: core.VolumeKey{Project: core.ProjectName(d.Project), Name: d.Name}, Created: d.Created,
		Gone: d.Remove, Fault: fault,
	}, nil)
}

// volumesOf are the volumes that a job mounts on one of its nodes. An error is why it cannot run there.
func (b *launchBuilder) volumesOf(j *core.Job, node core.NodeName) ([]wire.Volume, error) {
	mounts := j.Spec.More().Volumes
	if len(mounts) == 0 {
		return nil, nil
	}
	rank := slices.IndexFunc(j.Alloc.Nodes, func(a core.NodeAlloc) bool { return a.Node == node })
	var out []wire.Volume
	for i := range mounts {
		m := &mounts[i]
		key := core.VolumeKey{Project: j.Spec.Project, Name: storage.NameFor(m, rank)}
		v, ok := b.engine.Snapshot().Volume(key)
		if !ok || v.State != core.VolumeActive {
			return nil, &envError{core.Errorf(core.Conflict, "volume %s is not there any more", key)}
		}
		class := b.rules().class(v.Class)
		if class == nil {
			return nil, &envError{core.Errorf(core.Conflict, "volume %s: its class %s is not in the settings any more", key,
				v.Class)}
		}
		if v.Bound && v.Node != node {
			return nil, &envError{core.Errorf(core.Conflict, "volume %s is on node %s, and the job runs on %s", key, v.Node,
				node)}
		}
		w := wire.VolumeOf(v, class)
		w.Target = m.Target
		out = append(out, w)
	}
	return out, nil
}
