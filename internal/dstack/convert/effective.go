package convert

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Defaults are what the server adds to a run's description.
type Defaults struct {
	SSHKeyPub string // the user's server-made key
}

// nameForm is the form of a run's name.
var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{1,40}$`) })

// maxUtilizationWindow bounds utilization_policy.time_window, in seconds: samples are kept so long.
const maxUtilizationWindow = 3600

// Completed is the description with what a client leaves out: the plan and the run show it so.
func (s *Spec) Completed() *Spec {
	out := *s
	c := &out.Configuration
	if t := c.Task; t != nil && t.Nodes == nil && len(t.Groups) == 0 {
		copied, one := *t, 1
		copied.Nodes = &one
		c.Task = &copied
	}
	if out.FileArchives == nil { // clients refuse a null
		out.FileArchives = []wire.FileArchiveTarget{}
	}
	return &out
}

// Effective is the description with the server's defaults. The error is for the user.
func (s *Spec) Effective(d Defaults) (*Spec, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	out := s.Completed()
	c := &out.Configuration
	if c.Run().Priority == nil {
		zero := 0
		switch {
		case c.Task != nil:
			copied := *c.Task
			copied.Priority, c.Task = &zero, &copied
		case c.DevEnvironment != nil:
			copied := *c.DevEnvironment
			copied.Priority, c.DevEnvironment = &zero, &copied
		case c.Service != nil:
			copied := *c.Service
			copied.Priority, c.Service = &zero, &copied
		}
	}
	if out.RepoID == nil {
		none := "none"
		out.RepoID, out.RepoData = &none, json.RawMessage(`{"repo_type":"virtual"}`)
	}
	if out.SSHKeyPub == nil && d.SSHKeyPub != "" {
		out.SSHKeyPub = &d.SSHKeyPub
	}
	return out, nil
}

func refuse(format string, args ...any) error {
	return core.Errorf(core.Invalid, format, args...).Because("invalid_run")
}

// check refuses what the form of a description allows and a run does not.
func (s *Spec) check() error {
	c := &s.Configuration
	r := c.Run()
	if r == nil {
		return refuse("A configuration of type %s is not a run", c.Kind)
	}
	if name := s.Name(); name != "" && !nameForm().MatchString(name) {
		return refuse("Resource name should match regex '%s'", nameForm())
	}
	if c.Service != nil {
		if err := checkService(c.Service); err != nil {
			return err
		}
	}
	if (s.RepoID == nil) != (len(s.RepoData) == 0 || string(s.RepoData) == "null") {
		return refuse("repo_id and repo_data must be set together")
	}
	p := s.Policy()
	if _, seconds := p.Retry.Acts(); seconds < 0 {
		return refuse("Duration cannot be negative")
	}
	if u := p.UtilizationPolicy; u != nil && u.TimeWindow > maxUtilizationWindow {
		return refuse("Maximum utilization_policy.time_window is %ds", maxUtilizationWindow)
	}
	if t := c.Task; t != nil && len(t.Commands) == 0 && len(t.Groups) == 0 && r.Entrypoint == nil && r.Image == nil {
		return refuse("Could not determine what command to run. " +
			"Please specify either `commands` or `entrypoint` in your run configuration")
	}
	if r.Dstack {
		return refuse("`dstack: true` is not supported yet: there is no access to the server from inside a run")
	}
	if err := checkVolumes(r); err != nil {
		return err
	}
	return s.checkAccelerator(r)
}

// checkAccelerator refuses images that cannot serve what is asked for.
func (s *Spec) checkAccelerator(r *config.Run) error {
	vendor := ""
	if g := r.Resources.GPU; g != nil {
		vendor = config.Value(g.Vendor)
	}
	arm := config.Value(r.Resources.CPU.Arch) == "arm"
	switch {
	case r.Image == nil && slices.Contains([]string{"amd", "intel", "tenstorrent"}, vendor):
		return refuse("`image` is required if `resources.gpu.vendor` is `%s`", vendor)
	case r.Image == nil && arm && config.Value(r.Docker):
		return refuse("`docker: true` is not supported on ARM")
	case r.Image == nil && arm:
		return refuse("`image` is required if `resources.cpu.arch` is `arm`")
	}
	return nil
}
