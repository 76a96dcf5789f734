package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
)

// Volume is a class of network volumes. Users name it; what is mounted, and how, is said here alone.
type Volume struct {
	Class  string `yaml:"class"`  // its name
	Driver string `yaml:"driver"` // shared, image, mount
	Path   string `yaml:"path"`   // of the folders (shared) or image files (image) on nodes
	// of the file system: what mount -t gets (mount); what mkfs makes (image; empty: ext4)
	Type    string `yaml:"type"`
	Source  string `yaml:"source"`  // what is mounted (mount)
	Options string `yaml:"options"` // of mount, beside nosuid and nodev, which it always has
	// one job at a time has a volume; others wait. Images always are
	Single   bool     `yaml:"single"`
	MaxSize  Size     `yaml:"max_size"` // of a volume; 0: any
	Quota    Size     `yaml:"quota"`    // of a project's volumes of the class together; 0: any
	Max      int32    `yaml:"max"`      // volumes of a project of the class; 0: 1000
	Projects []string `yaml:"projects"` // that may have them; empty: all
	Default  bool     `yaml:"default"`  // taken where a volume names no class
}

var (
	volumeClass = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
	fsType      = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,30}$`)
)

func (d *decoder) checkVolumes(c *Config) {
	seen, standard := map[string]bool{}, 0
	for i := range c.Volumes {
		v, path := &c.Volumes[i], fmt.Sprintf("volumes[%d]", i)
		switch {
		case !volumeClass.MatchString(v.Class):
			d.at(path+".class", "%q: a name has lower-case letters, digits and -, and begins with a letter", v.Class)
		case seen[v.Class]:
			d.at(path+".class", "%s is listed twice", v.Class)
		}
		seen[v.Class] = true
		if v.Default {
			standard++
		}
		d.checkDriver(v, path)
		if v.MaxSize < 0 || v.Quota < 0 || v.Max < 0 {
			d.at(path, "max_size, quota and max must not be negative")
		}
		for _, o := range strings.Split(v.Options, ",") {
			if slices.Contains([]string{"suid", "dev"}, o) || strings.ContainsAny(o, " \t\n") {
				d.at(path+".options", "%q: volumes are mounted with nosuid and nodev", o)
			}
		}
	}
	if standard > 1 {
		d.at("volumes", "%d classes are the default; there may be one", standard)
	}
}

func (d *decoder) checkDriver(v *Volume, path string) {
	folder := filepath.IsAbs(v.Path) && filepath.Clean(v.Path) == v.Path && v.Path != "/"
	switch storage.Driver(v.Driver) {
	case storage.Shared, storage.Image:
		if !folder {
			d.at(path+".path", "%q is not an absolute path of a folder, without . or .. in it", v.Path)
		}
		if v.Source != "" {
			d.at(path+".source", "driver %s mounts no source", v.Driver)
		}
	case storage.Mount:
		if v.Source == "" || strings.HasPrefix(v.Source, "-") {
			d.at(path+".source", "%q: expected what is mounted, as server:/export", v.Source)
		}
		if v.Type == "" {
			d.at(path+".type", "driver mount needs the type of the file system, as nfs4")
		}
		if v.Path != "" {
			d.at(path+".path", "driver mount has no path: each job has a place of its own where it is mounted")
		}
	default:
		d.at(path+".driver", "%q: expected shared, image or mount", v.Driver)
	}
	if v.Type != "" && !fsType.MatchString(v.Type) {
		d.at(path+".type", "%q is not a type of file system", v.Type)
	}
}

// CoreVolumes returns the classes of volumes. The Config has been checked.
func (c *Config) CoreVolumes() []storage.Class {
	var list []storage.Class
	for i := range c.Volumes {
		v := &c.Volumes[i]
		k := storage.Class{
			Name: v.Class, Driver: storage.Driver(v.Driver), Path: v.Path, Type: v.Type, Source: v.Source,
			Options: v.Options, Single: v.Single, MaxSize: core.Bytes(v.MaxSize), Quota: core.Bytes(v.Quota), Max: v.Max,
			Default: v.Default || len(c.Volumes) == 1,
		}
		for _, p := range v.Projects {
			k.Projects = append(k.Projects, core.ProjectName(p))
		}
		list = append(list, k)
	}
	return list
}
