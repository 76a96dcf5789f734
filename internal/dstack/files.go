package dstack

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is one item of `files`: a file or folder of whoever applies the configuration, and where it goes.
type File struct {
	Local string // relative: to the configuration's folder; may begin with ~/
	Path  string // relative: to the working directory; may begin with ~/
}

// files reads what is copied into the container: LOCAL, LOCAL:PATH, or a mapping.
func (r *reader) files(n *yaml.Node, at string) {
	items, ok := r.items(n, at)
	if !ok {
		return
	}
	for i, item := range items {
		p := index(at, i)
		var f File
		if item.Kind == yaml.MappingNode {
			for _, e := range r.entries(item, p) {
				switch q := join(p, e.key.Value); e.key.Value {
				case "local_path":
					f.Local, _ = r.text(e.value, q)
				case "path":
					f.Path, _ = r.text(e.value, q)
				default:
					r.unknown(e.key, q, []string{"local_path", "path"})
				}
			}
		} else {
			s, ok := r.text(item, p)
			if !ok {
				continue
			}
			var cut bool
			f.Local, f.Path, cut = strings.Cut(s, ":")
			if !cut {
				f.Path = f.Local
			}
			// As dstack 0.22.5: what looks like a drive of Windows is none of ours.
			if strings.Contains(f.Path, ":") || cut && len(f.Local) == 1 && strings.HasPrefix(f.Path, "/") {
				r.add(item, p, "must be LOCAL or LOCAL:PATH, not %q; what has a colon in it, or one letter before "+
					"it, is written {local_path: LOCAL, path: PATH}", clip(s))
				continue
			}
		}
		switch {
		case f.Local == "" || f.Path == "":
			r.add(item, p, "needs both a local path and one in the container")
		case ofSomebody(f.Local) || ofSomebody(f.Path):
			r.add(item, p, "a path may begin with ~/, but not with ~NAME")
		case strings.ContainsRune(f.Local+f.Path, 0):
			r.add(item, p, "must not contain a NUL byte")
		default:
			r.task.Files = append(r.task.Files, f)
		}
	}
}

// ofSomebody tells of a path below the home of a user it names.
func ofSomebody(p string) bool {
	return strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/")
}
