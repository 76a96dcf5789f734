package storage

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Bounds of volumes.
const (
	MaxOfProject = 1000 // of a project
	MaxMounted   = 32   // that a job mounts
	MaxTags      = 64
	maxPath      = 1024
)

func isName(name string) bool {
	const letters, most = "abcdefghijklmnopqrstuvwxyz", 41
	return len(name) >= 2 && len(name) <= most && strings.IndexByte(letters, name[0]) >= 0 &&
		strings.Trim(name, letters+"0123456789-") == ""
}

// CheckName refuses names that volumes cannot have.
func CheckName(name string) error {
	if !isName(name) {
		return core.Errorf(core.Invalid, "volume %.60q: a name has 2 to 41 lower-case letters, digits and -, a letter first",
			name).Because("invalid_name")
	}
	return nil
}

// CheckPath refuses paths that lead out of what they are below.
func CheckPath(path string) error {
	bad := path == "" || len(path) > maxPath || strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0)
	for part := range strings.SplitSeq(path, "/") {
		bad = bad || part == "" || part == "." || part == ".."
	}
	if bad {
		return core.Errorf(core.Invalid, "volume_id: %.60q: expected a path below that of the class, without . and ..",
			path).Because("invalid_volume")
	}
	return nil
}

// Driver is how volumes of a class are stored and mounted.
type Driver string

// The drivers.
const (
	Shared Driver = "shared" // folders of a path that all nodes have
	Image  Driver = "image"  // files with a file system in them, each on one node
	Mount  Driver = "mount"  // folders of a file system that a node mounts for the job
)

// Class is a kind of volumes, as the settings have it. Nothing of it is a user's.
type Class struct {
	Name     string             `json:"name"`
	Driver   Driver             `json:"driver"`
	Path     string             `json:"path,omitempty"`    // of folders (shared) or files (image) on nodes
	Type     string             `json:"type,omitempty"`    // of a file system to mount, or (image) to make
	Source   string             `json:"source,omitempty"`  // what is mounted
	Options  string             `json:"options,omitempty"` // of mount, beside nosuid and nodev
	Single   bool               `json:"single,omitempty"`  // a volume has one job at a time; always with image
	MaxSize  core.Bytes         `json:"max_size,omitempty"`
	Quota    core.Bytes         `json:"quota,omitempty"` // of all volumes of a project together
	Max      int32              `json:"max,omitempty"`   // volumes of a project; 0: MaxOfProject
	Projects []core.ProjectName `json:"projects,omitempty"`
	Default  bool               `json:"default,omitempty"` // taken where none is named
}
