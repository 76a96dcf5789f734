package config

import (
	"math"
	"strconv"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// Float is a number that the normal form writes with a point: 8.0.
type Float float64

// MarshalJSON writes the number as Python does; what is no finite number is null.
func (f Float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return []byte("null"), nil
	}
	return []byte(tree.FormatFloat(v)), nil
}

// Env is the variables of a run in the order of the file.
type Env []Variable

// Variable is one of them.
type Variable struct {
	Name  string
	Value string
	From  string // the caller's variable that is to give the value; "": Value does
}

// MarshalJSON writes a mapping; a value that is still to come from the caller is {"key": NAME}.
func (e Env) MarshalJSON() ([]byte, error) {
	return tree.WriteObject(len(e), func(i int) (string, any) {
		if e[i].From != "" {
			return e[i].Name, map[string]string{"key": e[i].From}
		}
		return e[i].Name, e[i].Value
	})
}

// Tags is a mapping that keeps its order. Nil is null.
type Tags []Tag

// Tag is one of them.
type Tag struct{ Name, Value string }

// MarshalJSON writes a mapping or null.
func (t Tags) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("null"), nil
	}
	return tree.WriteObject(len(t), func(i int) (string, any) { return t[i].Name, t[i].Value })
}

// Get gives the value of a tag.
func (t Tags) Get(name string) (string, bool) {
	for i := range t {
		if t[i].Name == name {
			return t[i].Value, true
		}
	}
	return "", false
}

// MarshalJSON writes "off" or seconds.
func (l Limit) MarshalJSON() ([]byte, error) {
	if l.Off {
		return []byte(`"off"`), nil
	}
	return strconv.AppendInt(nil, l.Seconds, 10), nil
}

// MarshalJSON writes the form that was written.
func (r Retry) MarshalJSON() ([]byte, error) {
	if !r.Mapping {
		return tree.Marshal(r.On)
	}
	return tree.Marshal(struct {
		Events   []string `json:"on_events"`
		Duration *int64   `json:"duration"`
	}{r.Events, r.Duration})
}

// MarshalJSON writes the selector's own keys.
func (s InstanceSelector) MarshalJSON() ([]byte, error) {
	switch {
	case s.Fleet != nil:
		return tree.Marshal(struct {
			Fleet    *Ref `json:"fleet"`
			Instance int  `json:"instance"`
		}{s.Fleet, s.Instance})
	case s.Hostname != "":
		return tree.Marshal(map[string]string{"hostname": s.Hostname})
	}
	return tree.Marshal(map[string]string{"name": s.Name})
}

// Mount is a volume of a run: a network volume by name (any of Names), or a path of the instance.
type Mount struct {
	Names        []string // nil: an instance volume
	List         bool     // Names was written as a list
	InstancePath string
	Path         string // in the container
	Optional     bool   // of an instance volume
}

// IsInstance reports whether it is a path of the instance.
func (m *Mount) IsInstance() bool { return m.Names == nil }

// MarshalJSON writes the keys of the mount's kind.
func (m Mount) MarshalJSON() ([]byte, error) {
	if m.IsInstance() {
		return tree.Marshal(struct {
			InstancePath string `json:"instance_path"`
			Path         string `json:"path"`
			Optional     bool   `json:"optional"`
		}{m.InstancePath, m.Path, m.Optional})
	}
	var name any = m.Names
	if !m.List && len(m.Names) == 1 {
		name = m.Names[0]
	}
	return tree.Marshal(struct {
		Name any    `json:"name"`
		Path string `json:"path"`
	}{name, m.Path})
}

// MarshalJSON writes a name or a mapping.
func (h SSHHost) MarshalJSON() ([]byte, error) {
	if h.Short {
		return tree.Marshal(h.Hostname)
	}
	type long SSHHost
	return tree.Marshal(long(h))
}

// MarshalJSON writes a number or "auto".
func (b Blocks) MarshalJSON() ([]byte, error) {
	if b.Auto {
		return []byte(`"auto"`), nil
	}
	return strconv.AppendInt(nil, int64(b.Count), 10), nil
}

// MarshalJSON leaves a target out that is the minimum.
func (n FleetNodes) MarshalJSON() ([]byte, error) {
	out := struct {
		Min    int  `json:"min"`
		Target *int `json:"target,omitempty"`
		Max    *int `json:"max"`
	}{Min: n.Min, Max: n.Max}
	if n.Target != n.Min {
		out.Target = &n.Target
	}
	return tree.Marshal(out)
}

// MarshalJSON writes true, false or the reference.
func (g GatewayChoice) MarshalJSON() ([]byte, error) {
	if g.Ref != nil {
		return tree.Marshal(g.Ref)
	}
	return tree.Marshal(g.Use)
}

// MarshalJSON writes true, false or "auto".
func (h HTTPS) MarshalJSON() ([]byte, error) {
	if h.Auto {
		return []byte(`"auto"`), nil
	}
	return tree.Marshal(h.On)
}

// MarshalJSON writes the keys of the model's format.
func (m Model) MarshalJSON() ([]byte, error) {
	if m.Format == "tgi" {
		return tree.Marshal(struct {
			Type         string  `json:"type"`
			Name         string  `json:"name"`
			Format       string  `json:"format"`
			ChatTemplate *string `json:"chat_template"`
			EOSToken     *string `json:"eos_token"`
		}{m.Type, m.Name, m.Format, m.ChatTemplate, m.EOSToken})
	}
	return tree.Marshal(struct {
		Type   string `json:"type"`
		Name   string `json:"name"`
		Format string `json:"format"`
		Prefix string `json:"prefix"`
	}{m.Type, m.Name, m.Format, m.Prefix})
}

// MarshalJSON writes the keys of the volume's backend.
func (v Volume) MarshalJSON() ([]byte, error) {
	type head struct {
		Type    Kind    `json:"type"`
		Backend string  `json:"backend"`
		Name    *string `json:"name"`
		Cleanup *int64  `json:"auto_cleanup_duration"`
		Tags    Tags    `json:"tags"`
	}
	h := head{KindVolume, v.Backend, v.Name, v.AutoCleanup, v.Tags}
	switch v.Backend {
	case "":
		return tree.Marshal(struct {
			Type     Kind    `json:"type"`
			Class    *string `json:"class"`
			Name     *string `json:"name"`
			Size     *Float  `json:"size"`
			Node     *string `json:"node"`
			VolumeID *string `json:"volume_id"`
			ReadOnly bool    `json:"read_only"`
			Single   bool    `json:"single"`
			Cleanup  *int64  `json:"auto_cleanup_duration"`
			Tags     Tags    `json:"tags"`
		}{KindVolume, v.Class, v.Name, v.Size, v.Node, v.VolumeID, v.ReadOnly, v.Single, v.AutoCleanup, v.Tags})
	case "kubernetes":
		return tree.Marshal(struct {
			head
			Size             *Float   `json:"size"`
			Region           string   `json:"region"`
			ClaimName        *string  `json:"claim_name"`
			StorageClassName *string  `json:"storage_class_name"`
			AccessModes      []string `json:"access_modes"`
			ReadOnly         bool     `json:"read_only"`
		}{h, v.Size, v.Region, v.ClaimName, v.StorageClassName, v.AccessModes, v.ReadOnly})
	case "daytona", "lium":
		return tree.Marshal(struct {
			head
			VolumeID *string `json:"volume_id"`
		}{h, v.VolumeID})
	}
	type placed struct {
		head
		Size     *Float  `json:"size"`
		VolumeID *string `json:"volume_id"`
		Region   string  `json:"region"`
	}
	p := placed{h, v.Size, v.VolumeID, v.Region}
	if v.Backend == "runpod" {
		return tree.Marshal(p)
	}
	return tree.Marshal(struct {
		placed
		AvailabilityZone *string `json:"availability_zone"`
	}{p, v.AvailabilityZone})
}

// MarshalJSON writes a text or a mapping with a path.
func (p PresetPrompt) MarshalJSON() ([]byte, error) {
	if p.Path != "" {
		return tree.Marshal(map[string]string{"path": p.Path})
	}
	return tree.Marshal(p.Text)
}
