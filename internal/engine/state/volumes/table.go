package volumes

import (
	"cmp"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/core/storage"
)

// Table is the volumes at one moment. That of a snapshot never changes.
type Table struct {
	volumes map[core.VolumeKey]*core.Volume
}

// NewTable builds a table of stored records. One that cannot be used has failed, and says why.
func NewTable(list []*core.Volume) Table {
	t := Table{volumes: map[core.VolumeKey]*core.Volume{}}
	for _, v := range list {
		if why := stored(v); why != "" {
			bad := *v
			bad.State, bad.Message, bad.Size = core.VolumeFailed, "its stored record cannot be used: "+why, max(0, v.Size)
			bad.Cleanup, bad.Path = 0, ""
			v = &bad
		}
		t.volumes[v.Key()] = v
	}
	return t
}

// stored says why a stored record cannot be used; empty: it can.
func stored(v *core.Volume) string {
	switch {
	case storage.CheckName(v.Name) != nil:
		return "its name"
	case v.Path != "" && storage.CheckPath(v.Path) != nil:
		return "its path"
	case v.Size < 0 || v.Cleanup < 0:
		return "a number below 0"
	case !slices.Contains([]core.VolumeState{
		core.VolumeSubmitted, core.VolumeActive, core.VolumeFailed, core.VolumeDeleting,
	}, v.State):
		return "its state"
	}
	return ""
}

// Volume finds a volume.
func (t *Table) Volume(k core.VolumeKey) (*core.Volume, bool) { v, ok := t.volumes[k]; return v, ok }

// Volumes lists them, by project and name.
func (t *Table) Volumes() []*core.Volume {
	return slices.SortedFunc(maps.Values(t.volumes), func(a, b *core.Volume) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Name, b.Name))
	})
}

// VolumesOf lists those of a project, by name.
func (t *Table) VolumesOf(p core.ProjectName) []*core.Volume {
	return slices.DeleteFunc(t.Volumes(), func(v *core.Volume) bool { return v.Project != p })
}

// Journal is where a Registry records what it changes.
type Journal interface {
	Now() core.Time
	Changes() *core.Changes // of the batch under way
	Event(core.EventKind, core.Event)
}

// Registry is the one writer of a Table.
type Registry struct {
	t     *Table
	log   Journal
	owned bool                   // no snapshot shares the map
	users map[core.VolumeKey]int // live jobs that mount it
}

// NewRegistry makes the writer of a table.
func NewRegistry(t *Table, log Journal) *Registry {
	return &Registry{t: t, log: log, users: map[core.VolumeKey]int{}}
}

// Published notes that a snapshot has the table as it is: it is copied before its next change.
func (r *Registry) Published() { r.owned = false }

func (r *Registry) own() {
	if !r.owned {
		r.t.volumes, r.owned = maps.Clone(r.t.volumes), true
	}
}

func (r *Registry) store(v *core.Volume, by core.UserName, done string) {
	r.own()
	r.t.volumes[v.Key()] = v
	c := r.log.Changes()
	c.Volumes = append(without(c.Volumes, v.Key()), v)
	r.event(v, by, done)
}

func (r *Registry) remove(v *core.Volume, by core.UserName) {
	r.own()
	delete(r.t.volumes, v.Key())
	c := r.log.Changes()
	c.Volumes = without(c.Volumes, v.Key())
	c.GoneVolumes = append(c.GoneVolumes, v.Key())
	r.event(v, by, "deleted")
}

func without(list []*core.Volume, k core.VolumeKey) []*core.Volume {
	return slices.DeleteFunc(list, func(o *core.Volume) bool { return o.Key() == k })
}

func (r *Registry) event(v *core.Volume, by core.UserName, done string) {
	data := jsontext.AppendString([]byte(`{"project":`), string(v.Project))
	data = jsontext.AppendString(append(data, `,"volume":`...), v.Name)
	data = jsontext.AppendString(append(data, `,"done":`...), done)
	if v.Message != "" {
		data = jsontext.AppendString(append(data, `,"message":`...), v.Message)
	}
	r.log.Event(core.VolumeChanged, core.Event{User: v.By, By: by, Data: append(data, '}')})
}

// JobChanged counts the live jobs that mount volumes, and notes when one was left; old is nil for a new job.
func (r *Registry) JobChanged(old, j *core.Job) {
	if (old == nil || old.Spec.More().Volumes == nil) && j.Spec.More().Volumes == nil {
		return
	}
	if old != nil && old.Live() {
		r.count(old, -1)
	}
	if j.Live() {
		r.count(j, 1)
	}
}

// Left notes the time at which a job gave its volumes back.
func (r *Registry) Left(old, j *core.Job) {
	if old == nil || old.Alloc == nil || j.Alloc != nil && j.Live() || old.Spec.More().Volumes == nil {
		return
	}
	for _, k := range storage.Mounted(old.Spec) {
		if v := r.t.volumes[k]; v != nil && v.Used != r.log.Now() {
			next := *v
			next.Used = r.log.Now()
			r.store(&next, "", "left")
		}
	}
}

func (r *Registry) count(j *core.Job, n int) {
	for _, k := range storage.Mounted(j.Spec) {
		if r.users[k] += n; r.users[k] <= 0 {
			delete(r.users, k)
		}
	}
}

// NextTime is when the next volume that nobody uses is to be deleted; 0: never.
func (r *Registry) NextTime() (next core.Time) {
	for _, v := range r.t.volumes {
		if due := r.due(v); due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return next
}

func (r *Registry) due(v *core.Volume) core.Time {
	if v.Cleanup == 0 || v.Path != "" || v.State != core.VolumeActive || r.users[v.Key()] > 0 {
		return 0
	}
	return max(v.Created, v.Used).Add(v.Cleanup.Duration())
}

// RunTimers begins to delete the volumes that nobody has used for too long.
func (r *Registry) RunTimers(maker Maker) {
	for _, v := range r.t.Volumes() {
		if due := r.due(v); due != 0 && due <= r.log.Now() {
			r.delete(v, "", maker)
		}
	}
}
