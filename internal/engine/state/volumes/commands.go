package volumes

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/engine/state/people"
)

// The commands.
type (
	// Put makes a volume. A volume that is there is not changed.
	Put struct {
		By     core.Identity
		Volume *core.Volume
	}
	// Drop deletes a volume that no job uses.
	Drop struct {
		By  core.Identity
		Key core.VolumeKey
		// Forget removes the record although its node cannot remove the volume: an administrator's.
		Forget bool
	}
	// News is what a node did about a volume.
	News struct {
		Node    core.NodeName
		Key     core.VolumeKey
		Created core.Time // of the record that it was told of
		Gone    bool      // it has removed it
		Fault   string    // why it could not
	}
)

// Maker finds the node that is to make a project's volume, or remove it: the one that is wanted, or any.
type Maker func(project core.ProjectName, want core.NodeName) (core.NodeName, error)

// Authorize refuses those who may not make or delete a project's volumes.
func Authorize(t *people.Tables, by core.Identity, project core.ProjectName, least core.Role) error {
	if _, ok := t.Project(project); !ok {
		return core.Errorf(core.NotFound, "there is no project %q", project).Because("invalid_project")
	}
	if err := people.CheckTokenProject(by, project); err != nil {
		return err
	}
	role := t.Role(by.User, project)
	if by.Plain && role.Rank() > core.RoleUser.Rank() {
		role = core.RoleUser
	}
	if by.Admin || role.Rank() >= least.Rank() {
		return nil
	}
	return core.Errorf(core.Denied, "you may not do this with volumes of project %s", project).Because("access_denied")
}

// Put makes a volume.
func (r *Registry) Put(t *people.Tables, classes []storage.Class, in *Put, maker Maker) (*core.Volume, error) {
	v := *in.Volume
	if err := Authorize(t, in.By, v.Project, core.RoleUser); err != nil {
		return nil, err
	}
	if err := storage.CheckName(v.Name); err != nil {
		return nil, err
	}
	if _, ok := r.t.volumes[v.Key()]; ok {
		return nil, core.Errorf(core.Conflict, "volume %s already exists in project %s", v.Name,
			v.Project).Because("volume_exists")
	}
	class, err := FindClass(classes, v.Class, v.Project)
	if err != nil {
		return nil, err
	}
	v.Class = class.Name
	if err := r.check(in, &v, class); err != nil {
		return nil, err
	}
	if v.Node, err = maker(v.Project, v.Node); err != nil {
		return nil, err
	}
	v.Bound = class.Driver == storage.Image
	v.Single = v.Single || class.Single || v.Bound
	v.By, v.Created, v.Used, v.State, v.Message = in.By.User, r.log.Now(), 0, core.VolumeSubmitted, ""
	r.store(&v, in.By.User, "created")
	return &v, nil
}

// check refuses what of a volume its class and its project have no place for.
func (r *Registry) check(in *Put, v *core.Volume, class *storage.Class) error {
	invalid := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_volume")
	}
	if v.Path != "" {
		if !in.By.Admin {
			return core.Errorf(core.Denied, "volume_id: only administrators may take over a volume that is there already: "+
				"it may be somebody else's").Because("access_denied")
		}
		if err := storage.CheckPath(v.Path); err != nil {
			return err
		}
		for _, o := range r.t.volumes {
			if o.Class == class.Name && o.Path == v.Path {
				return core.Errorf(core.Conflict, "volume_id: %s is volume %s already", v.Path, o.Key()).Because("volume_exists")
			}
		}
		if v.Cleanup != 0 {
			return invalid("auto_cleanup_duration: a volume that was there before is not deleted")
		}
	}
	switch {
	case v.Path == "" && v.Size <= 0:
		return invalid("size: a volume needs a size, or the volume_id of one that is there")
	case v.Size < 0 || v.Cleanup < 0:
		return invalid("size and auto_cleanup_duration must not be negative")
	case class.Driver == storage.Image && v.Path == "" && v.Size < minImage:
		return invalid("size: %d bytes are less than the least of class %s, %d", v.Size, class.Name, minImage)
	case class.MaxSize > 0 && v.Size > class.MaxSize:
		return core.Errorf(core.Exhausted, "size: %d bytes are more than a volume of class %s may have, %d", v.Size,
			class.Name, class.MaxSize).Because("limit_volumes")
	case len(v.Tags) > storage.MaxTags:
		return invalid("tags: %d are more than %d", len(v.Tags), storage.MaxTags)
	case len(v.Config) > core.MaxCredentialInfo:
		return invalid("the configuration has %d bytes; %d are allowed", len(v.Config), core.MaxCredentialInfo)
	}
	count, sum, most := 0, v.Size, storage.MaxOfProject
	for _, o := range r.t.volumes {
		if o.Project == v.Project && o.Class == v.Class {
			count, sum = count+1, sum+o.Size
		}
	}
	if class.Max > 0 {
		most = min(most, int(class.Max))
	}
	if count >= most {
		return core.Errorf(core.Exhausted, "project %s has %d volumes of class %s, as many as it may have", v.Project, count,
			class.Name).Because("limit_volumes")
	}
	if class.Quota > 0 && sum > class.Quota {
		return core.Errorf(core.Exhausted, "size: the volumes of project %s in class %s would have %d bytes, more than its "+
			"quota of %d", v.Project, class.Name, sum, class.Quota).Because("limit_volumes")
	}
	return nil
}

// minImage holds a file system with room for something.
const minImage = 8 * core.MiB

// FindClass finds a class that a project may use; without a name the default one.
func FindClass(classes []storage.Class, name string, project core.ProjectName) (*storage.Class, error) {
	var names []string
	for i := range classes {
		c := &classes[i]
		if len(c.Projects) > 0 && !slices.Contains(c.Projects, project) {
			continue
		}
		if name == c.Name || name == "" && c.Default {
			return c, nil
		}
		names = append(names, c.Name)
	}
	switch {
	case len(names) == 0:
		return nil, core.Errorf(core.Invalid, "this cluster has no volumes for project %s: an administrator defines classes "+
			"of volumes in the settings (volumes)", project).Because("invalid_volume")
	case name == "":
		return nil, core.Errorf(core.Invalid, "class: name one of the classes of volumes: %v",
			names).Because("invalid_volume")
	}
	return nil, core.Errorf(core.Invalid, "there is no class of volumes %.60q%s", name,
		nearest.Hint(name, names)).Because("invalid_volume")
}

// Drop begins to delete a volume. job finds a live job that mounts it.
func (r *Registry) Drop(t *people.Tables, in *Drop, maker Maker, job func(core.VolumeKey) core.JobID) error {
	if err := Authorize(t, in.By, in.Key.Project, core.RoleUser); err != nil {
		return err
	}
	v, ok := r.t.volumes[in.Key]
	if !ok {
		return core.Errorf(core.NotFound, "there is no volume %.60q in project %s", in.Key.Name,
			in.Key.Project).Because("invalid_volume")
	}
	if v.By != in.By.User {
		if err := Authorize(t, in.By, in.Key.Project, core.RoleManager); err != nil {
			return core.Errorf(core.Denied, "volume %s is %s's: they, a manager of project %s or an administrator may delete it",
				v.Name, v.By, v.Project).Because("access_denied")
		}
	}
	if in.Forget && !in.By.Admin {
		return core.Errorf(core.Denied, "only administrators may forget a volume that its node has not removed").
			Because("access_denied")
	}
	if r.users[in.Key] > 0 {
		return core.Errorf(core.Conflict, "volume %s is in use: job %d mounts it; wait for its end, or cancel it", v.Name,
			job(in.Key)).Because("volume_in_use")
	}
	if in.Forget {
		r.remove(v, in.By.User)
		return nil
	}
	r.delete(v, in.By.User, maker)
	return nil
}

// delete has a volume's node remove it. One that was there before Bireme stays where it is.
func (r *Registry) delete(v *core.Volume, by core.UserName, maker Maker) {
	if v.Path != "" {
		r.remove(v, by)
		return
	}
	next := *v
	next.State, next.Message = core.VolumeDeleting, ""
	if !v.Bound {
		node, err := maker(v.Project, v.Node)
		if err != nil {
			node, err = maker(v.Project, "")
		}
		if err == nil {
			next.Node = node
		}
	}
	r.store(&next, by, "deleting")
}

// News takes what a node did.
func (r *Registry) News(in *News) {
	v, ok := r.t.volumes[in.Key]
	if !ok || v.Created != in.Created || v.Node != in.Node {
		return // it was told of another one
	}
	next := *v
	switch {
	case in.Gone && v.State == core.VolumeDeleting && in.Fault == "":
		r.remove(v, "")
		return
	case in.Gone && v.State == core.VolumeDeleting:
		if next.Message = in.Fault; v.Message == in.Fault {
			return
		}
		r.store(&next, "", "not deleted")
	case !in.Gone && v.State == core.VolumeSubmitted && in.Fault != "":
		next.State, next.Message = core.VolumeFailed, in.Fault
		r.store(&next, "", "failed")
	case !in.Gone && v.State == core.VolumeSubmitted:
		next.State = core.VolumeActive
		r.store(&next, "", "active")
	}
}
