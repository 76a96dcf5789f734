package convert

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Public is the description without what is private to its user: values of variables, commands, logins of registries.
// The names of variables stay.
func (s *Spec) Public() *Spec {
	out := *s
	c := &out.Configuration
	hide := func(r *config.Run) {
		env := make(config.Env, len(r.Env))
		for i, v := range r.Env {
			env[i] = config.Variable{Name: v.Name}
		}
		r.Env, r.RegistryAuth = env, nil
	}
	switch {
	case c.Task != nil:
		t := *c.Task
		hide(&t.Run)
		t.Commands = []string{}
		if r := &t.Run; r.Image == nil && len(s.Configuration.Task.Commands) > 0 {
			t.Commands = []string{":"} // a task has commands or an image
		}
		t.Groups = slices.Clone(t.Groups)
		for i := range t.Groups {
			t.Groups[i].Commands = hidden(t.Groups[i].Commands)
		}
		c.Task = &t
	case c.DevEnvironment != nil:
		d := *c.DevEnvironment
		hide(&d.Run)
		d.Init, d.Setup = []string{}, []string{}
		c.DevEnvironment = &d
	case c.Service != nil:
		v := *c.Service
		hide(&v.Run)
		v.Commands, v.Groups = hidden(v.Commands), slices.Clone(v.Groups)
		for i := range v.Groups {
			v.Groups[i].Commands = hidden(v.Groups[i].Commands)
		}
		c.Service = &v
	}
	return &out
}

// hidden are commands of which is only told that there are some.
func hidden(commands []string) []string {
	if len(commands) == 0 {
		return []string{}
	}
	return []string{":"}
}

// Described is a description of a job that was submitted without one. j may be nil.
func Described(name string, j *core.Job) *Spec {
	t := &config.Task{Ports: []config.Port{}, Commands: []string{":"}}
	t.Type, t.Name, t.Env = config.KindTask, &name, config.Env{}
	t.Volumes, t.Repos, t.Files, t.Setup = []config.Mount{}, []config.Repo{}, []config.File{}, []string{}
	t.Resources = config.DefaultResources()
	if j != nil && j.Spec != nil {
		nodes := int(max(1, j.Spec.Shape.NodesMin))
		if j.Alloc != nil {
			nodes = max(1, len(j.Alloc.Nodes))
		}
		t.Nodes = &nodes
		if line := strings.TrimSpace(j.Spec.From.Line); line != "" {
			t.Commands = []string{line}
		} else if j.Spec.Name != "" {
			t.Commands = []string{j.Spec.Name}
		}
		if box := j.Spec.More().Container; box != nil && box.Image != "" {
			t.Image = &box.Image
		}
		priority := int(j.Spec.More().RunPriority)
		t.Priority = &priority
		cpus := int64(max(1, j.Spec.Shape.CPUsPerTask))
		t.Resources.CPU.Count = config.Range{Min: &cpus}
	}
	return &Spec{
		RunName: &name, Configuration: config.Configuration{Kind: config.KindTask, Task: t},
		FileArchives: []wire.FileArchiveTarget{},
	}
}
