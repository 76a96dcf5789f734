package nodes

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nodenotes"
)

// change applies what an administrator says of a node. Weight and features hold until the settings are read again.
func (e *Edit) change(c *nodenotes.Change) error {
	if c == nil {
		return nil
	}
	n := e.Node
	notes := nodenotes.Notes{}
	if n.Notes != nil {
		notes = *n.Notes
	}
	put(&n.Weight, c.Weight)
	put(&n.Host.Addr, c.Addr)
	put(&n.Host.Hostname, c.Hostname)
	put(&notes.Comment, c.Comment)
	put(&notes.Extra, c.Extra)
	put(&notes.CPUBind, c.CPUBind)
	available := notes.Available
	if available == nil {
		available = n.Features
	}
	switch {
	case c.Available != nil && c.Features == nil:
		available, n.Features = *c.Available, *c.Available // as Slurm: all of them
	case c.Available != nil:
		available = *c.Available
	}
	if c.Features != nil {
		for _, f := range *c.Features {
			if !slices.Contains(available, f) {
				return core.Errorf(core.Invalid, "node %s: feature %q is not one of those available", n.Name,
					f).Because("features_not_available")
			}
		}
		n.Features = *c.Features
	}
	if notes.Available = available; slices.Equal(available, n.Features) {
		notes.Available = nil
	}
	n.Notes = &notes
	if notes.Comment == "" && notes.Extra == "" && notes.CPUBind == "" && notes.Available == nil {
		n.Notes = nil
	}
	return nil
}

func put[T any](at, value *T) {
	if value != nil {
		*at = *value
	}
}
