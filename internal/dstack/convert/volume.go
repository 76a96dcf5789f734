package convert

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/dstack/config"
)

// onlyClasses tells what a volume is made of here.
const onlyClasses = "there are no cloud backends yet: write class: NAME in the place of backend and region " +
	"(`volumes` in the settings has the classes), or backend: kubernetes with storage_class_name: NAME"

// Volume is what a configuration asks for. The stock client knows no classes of ours: it asks for a volume of
// Kubernetes, whose storage class names the class.
func Volume(c *config.Configuration) (*core.Volume, error) {
	v := c.Volume
	out := &core.Volume{
		Name: config.Value(v.Name), Class: config.Value(v.Class), Node: core.NodeName(config.Value(v.Node)),
		Path: config.Value(v.VolumeID), ReadOnly: v.ReadOnly, Single: v.Single, Tags: map[string]string{},
	}
	for _, t := range v.Tags {
		out.Tags[t.Name] = t.Value
	}
	switch v.Backend {
	case "":
	case "kubernetes":
		out.Class, out.Path = config.Value(v.StorageClassName), config.Value(v.ClaimName)
		out.Single = true
		for _, m := range v.AccessModes {
			switch m {
			case "ReadWriteMany", "ReadOnlyMany":
				out.Single = false
				out.ReadOnly = out.ReadOnly || m == "ReadOnlyMany"
			case "ReadWriteOnce", "ReadWriteOncePod":
			default:
				return nil, config.Faults{c.Fault("unknown mode; expected ReadWriteOnce, ReadOnlyMany or ReadWriteMany",
					"access_modes")}
			}
		}
		if v.Region != "" {
			return nil, config.Faults{c.Fault("there are no regions: leave it out", "region")}
		}
	default:
		return nil, config.Faults{c.Fault(onlyClasses, "backend")}
	}
	if v.Size != nil {
		size := float64(*v.Size)
		if size <= 0 || size > maxVolumeGB {
			return nil, config.Faults{c.Fault(fmt.Sprintf("must be more than 0 and at most %dGB", maxVolumeGB), "size")}
		}
		out.Size = core.Bytes(size * float64(core.GiB))
	}
	if s := v.AutoCleanup; s != nil && *s >= 0 {
		if out.Cleanup = core.Seconds(*s); *s == 0 {
			return nil, config.Faults{c.Fault("must be more than 0, or off", "auto_cleanup_duration")}
		}
	}
	return out, nil
}

const maxVolumeGB = 1 << 20

// volumes are the network volumes that a run mounts.
func (b *builder) volumes() (list []core.VolumeMount) {
	for i := range b.run.Volumes {
		m := &b.run.Volumes[i]
		if m.IsInstance() || len(m.Names) == 0 {
			continue
		}
		list = append(list, core.VolumeMount{
			Name: strings.TrimSpace(m.Names[0]), Others: m.Names[1:], Target: m.Path,
		})
	}
	return list
}

// checkVolumes refuses what the form of a run allows and no server does.
func checkVolumes(r *config.Run) error {
	for i := range r.Volumes {
		if m := &r.Volumes[i]; !m.IsInstance() && (len(m.Names) == 0 || m.Names[0] == "") {
			return refuse("volumes: the volume at %s has no name", m.Path)
		}
	}
	return nil
}

// volumeNames are those of the volumes that a job has.
func volumeNames(j *core.Job) []string {
	out := []string{}
	for _, k := range storage.Mounted(j.Spec) {
		out = append(out, k.Name)
	}
	return out
}
