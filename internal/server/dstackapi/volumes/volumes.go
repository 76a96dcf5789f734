// Package volumes answers dstack's calls on network volumes.
package volumes

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

// Volumes answers calls on volumes.
type Volumes struct{ *call.Base }

// New makes the handlers.
func New(b *call.Base) *Volumes { return &Volumes{b} }

// Rows lists the routes.
func (a *Volumes) Rows() []front.Row {
	const base = "/api/project/{project}/volumes"
	return []front.Row{
		{Path: "/api/volumes/list", Level: front.Auth, Everywhere: true, Handle: front.OptionalBody(a.listAll)},
		{Path: base + "/list", Level: front.Member, Handle: front.NoBody(a.list)},
		{Path: base + "/get", Level: front.Member, Handle: front.Body(a.get)},
		{
			Path: base + "/create", Level: front.Member, Scope: core.ScopeSubmit, Action: "volume.create", Object: "volume",
			Handle: front.Body(a.create),
		},
		{
			Path: base + "/delete", Level: front.Member, Scope: core.ScopeSubmit, Action: "volume.delete", Object: "volume",
			Handle: front.Body(a.remove),
		},
	}
}

// ID is the id of a volume.
func ID(v *core.Volume) string {
	return wire.UUID(wire.KindVolume, v.Key().String()+"/"+wire.Time(v.Created))
}

// users finds the jobs that have volumes on nodes, in one reading of the live jobs.
func users(snap *state.Snapshot) map[core.VolumeKey][]wire.VolumeAttachment {
	out := map[core.VolumeKey][]wire.VolumeAttachment{}
	for j := range snap.Jobs() {
		if j.Alloc == nil || j.Spec.More().Volumes == nil {
			continue
		}
		for rank := range j.Alloc.Nodes {
			na := &j.Alloc.Nodes[rank]
			if na.Done {
				continue
			}
			at := wire.VolumeAttachment{Instance: wire.VolumeInstance{
				Name: string(na.Node), InstanceID: wire.UUID(wire.KindInstance, string(na.Node)),
			}}
			if n, ok := snap.Node(na.Node); ok && n.Fleet != "" {
				at.Instance.FleetName = &n.Fleet
				if h := snap.FleetHost(n); h != nil {
					at.Instance.InstanceNum = h.Num
				}
			}
			for i := range j.Spec.Extra.Volumes {
				k := core.VolumeKey{Project: j.Spec.Project, Name: storage.NameFor(&j.Spec.Extra.Volumes[i], rank)}
				out[k] = append(out[k], at)
			}
		}
	}
	return out
}

// show is a volume as clients see it.
func show(v *core.Volume, at []wire.VolumeAttachment) wire.Volume {
	zone := string(v.Node)
	w := wire.Volume{
		ID: ID(v), Name: v.Name, User: string(v.By), ProjectName: string(v.Project), Configuration: configuration(v),
		External: v.Path != "", CreatedAt: wire.Time(v.Created), LastProcessedAt: wire.Time(max(v.Created, v.Used)),
		Status: string(v.State), Attachments: at,
	}
	if at == nil {
		w.Attachments = []wire.VolumeAttachment{}
	}
	if v.State == core.VolumeDeleting { // clients know no such word
		w.Status = string(core.VolumeActive)
		message := "it is being deleted"
		if v.Message != "" {
			message = "it could not be deleted: " + v.Message
		}
		w.StatusMessage = &message
	} else if v.Message != "" {
		w.StatusMessage = &v.Message
	}
	if v.State == core.VolumeActive || v.State == core.VolumeDeleting {
		id := v.Key().String()
		if v.Path != "" {
			id = v.Path
		}
		w.VolumeID = &id
		w.ProvisioningData = &wire.VolumeProvisioning{
			Backend: "kubernetes", VolumeID: id, SizeGB: int64((v.Size + core.GiB - 1) / core.GiB), Attachable: true,
			Detachable: true,
		}
		if v.Bound {
			w.ProvisioningData.AvailabilityZone = &zone
		}
	}
	return w
}

// configuration is a volume's in the form that all clients read: they know no classes but Kubernetes'.
func configuration(v *core.Volume) json.RawMessage {
	c := config.Volume{
		Backend: "kubernetes", Name: &v.Name, StorageClassName: &v.Class, AccessModes: []string{"ReadWriteMany"},
		ReadOnly: v.ReadOnly, Tags: config.Tags{},
	}
	if v.Single {
		c.AccessModes = []string{"ReadWriteOnce"}
	}
	if v.Path != "" {
		c.ClaimName = &v.Path
	}
	if v.Size > 0 {
		size := config.Float(float64(v.Size) / float64(core.GiB))
		c.Size = &size
	}
	if v.Cleanup > 0 {
		s := int64(v.Cleanup)
		c.AutoCleanup = &s
	}
	b, err := json.Marshal(c)
	core.Assert(err == nil, "configuration of a volume: %v", err)
	return b
}

func newest(list []wire.Volume) {
	slices.SortStableFunc(list, func(a, b wire.Volume) int { return -strings.Compare(a.CreatedAt, b.CreatedAt) })
}

func (a *Volumes) list(c *front.Call) (any, error) {
	out, at := []wire.Volume{}, users(c.Snap)
	for _, v := range c.Snap.VolumesOf(c.Project.Name) {
		out = append(out, show(v, at[v.Key()]))
	}
	newest(out)
	return out, nil
}

type listAllBody struct {
	ProjectName   *string `json:"project_name"`
	OnlyActive    bool    `json:"only_active"`
	PrevCreatedAt *string `json:"prev_created_at" in:"time"`
	PrevID        *string `json:"prev_id" in:"uuid"`
	Limit         *int    `json:"limit" in:"ge=0,le=100"`
	Ascending     bool    `json:"ascending"`
}

const listLimit = 100

func (a *Volumes) listAll(c *front.Call, in *listAllBody) (any, error) {
	list, at := []wire.Volume{}, users(c.Snap)
	for _, v := range c.Snap.Volumes() {
		p, ok := c.Snap.Project(v.Project)
		if !ok || c.RoleIn(p) == core.RoleNone || c.TokenRecord != nil && c.TokenRecord.Project != "" &&
			c.TokenRecord.Project != v.Project {
			continue
		}
		if in.ProjectName != nil && *in.ProjectName != string(v.Project) || in.OnlyActive && v.State == core.VolumeFailed {
			continue
		}
		list = append(list, show(v, at[v.Key()]))
	}
	newest(list)
	if in.Ascending {
		slices.Reverse(list)
	}
	if in.PrevID != nil {
		i := slices.IndexFunc(list, func(v wire.Volume) bool { return strings.EqualFold(v.ID, *in.PrevID) })
		list = list[i+1:]
	}
	most := listLimit
	if in.Limit != nil && *in.Limit > 0 {
		most = *in.Limit
	}
	return list[:min(len(list), most)], nil
}

type getBody struct {
	Name string `json:"name" in:"required"`
}

func (a *Volumes) get(c *front.Call, in *getBody) (any, error) {
	v, ok := c.Snap.Volume(core.VolumeKey{Project: c.Project.Name, Name: in.Name})
	if !ok {
		return nil, front.ErrNotExists()
	}
	return show(v, users(c.Snap)[v.Key()]), nil
}

type createBody struct {
	Configuration json.RawMessage `json:"configuration" in:"required"`
}

func (a *Volumes) create(c *front.Call, in *createBody) (any, error) {
	conf, err := config.ReadJSON(in.Configuration)
	if err != nil {
		return nil, front.ErrConfig(err, "configuration")
	}
	if conf.Volume == nil {
		return nil, front.Errorf("A configuration of type %s is not a volume", conf.Kind)
	}
	v, err := convert.Volume(conf)
	if err != nil {
		return nil, front.ErrConfig(err, "configuration")
	}
	if v.Name == "" {
		v.Name = newName()
	}
	v.Project, v.Config = c.Project.Name, string(in.Configuration)
	c.About("volume", v.Key().String())
	made, err := engine.Do(c.Context(), a.Engine, &state.PutVolume{By: c.Identity, Volume: v})
	if core.ReasonOf(err) == "volume_exists" && v.Path == "" {
		return nil, front.ErrExists()
	}
	if err != nil {
		return nil, err
	}
	return show(made, nil), nil
}

func newName() string {
	var b [4]byte
	_, err := rand.Read(b[:])
	core.Assert(err == nil, "the system's random source fails: %v", err)
	return "volume-" + hex.EncodeToString(b[:])
}

type deleteBody struct {
	Names  []string `json:"names" in:"required,max=1000"`
	Forget bool     `json:"forget"` // Bireme's own: although the node has not removed it
}

// remove deletes volumes: if one of them is not there, none.
func (a *Volumes) remove(c *front.Call, in *deleteBody) (any, error) {
	c.About("volumes", strings.Join(in.Names, ", "))
	for _, name := range in.Names {
		if _, ok := c.Snap.Volume(core.VolumeKey{Project: c.Project.Name, Name: name}); !ok {
			return nil, front.ErrNotExists()
		}
	}
	for _, name := range in.Names {
		key := core.VolumeKey{Project: c.Project.Name, Name: name}
		drop := &state.DropVolume{By: c.Identity, Key: key, Forget: in.Forget}
		if _, err := engine.Do(c.Context(), a.Engine, drop); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
