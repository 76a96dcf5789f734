package wire

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
)

// Volume is a network volume as a node needs it. All but the names is the administrator's.
type Volume struct {
	Project string         `json:"project"`
	Name    string         `json:"name"`
	Created core.Time      `json:"created,omitempty"` // of the record, so that an answer is not taken for another one's
	Class   string         `json:"class"`
	Driver  storage.Driver `json:"driver"`
	Base    string         `json:"base,omitempty"` // path of the class
	Path    string         `json:"path,omitempty"` // of a volume that was there before, below Base
	Type    string         `json:"type,omitempty"`
	Source  string         `json:"source,omitempty"`
	Options string         `json:"options,omitempty"`
	Size    int64          `json:"size,omitempty"`
	// Of a launch: where the job sees it.
	Target   string `json:"target,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Label names the volume in messages.
func (v *Volume) Label() string { return fmt.Sprintf("volume %s/%s", v.Project, v.Name) }

// VolumeOf is a volume of a class.
func VolumeOf(v *core.Volume, c *storage.Class) Volume {
	return Volume{
		Project: string(v.Project), Name: v.Name, Created: v.Created, Class: v.Class, Driver: c.Driver, Base: c.Path,
		Path: v.Path, Type: c.Type, Source: c.Source, Options: c.Options, Size: int64(v.Size), ReadOnly: v.ReadOnly,
	}
}

// Frames about volumes.
const (
	TypeVolume     Type = 120 + iota // server → agent: VolumeTask
	TypeVolumeDone                   // agent → server: VolumeDone
)

// VolumeTask has a node make a volume, or remove it. Told again, it does it again, which changes nothing.
type VolumeTask struct {
	Volume Volume `json:"volume"`
	Remove bool   `json:"remove,omitempty"`
}

// VolumeDone is what became of a task.
type VolumeDone struct {
	Project string    `json:"project"`
	Name    string    `json:"name"`
	Created core.Time `json:"created"`
	Remove  bool      `json:"remove,omitempty"`
	Fault   string    `json:"fault,omitempty"` // why not; empty: it is done
}

// DecodeAs reads a frame's header as a message of type M.
