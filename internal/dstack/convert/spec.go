package convert

import (
	"encoding/json"
	"errors"
	"reflect"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Spec is a run as its client describes it, read. Its parts are never changed in place: Effective makes a copy.
type Spec struct {
	RunName           *string                  `json:"run_name"`
	RepoID            *string                  `json:"repo_id"`
	RepoData          json.RawMessage          `json:"repo_data"`
	RepoCodeHash      *string                  `json:"repo_code_hash"`
	RepoDir           *string                  `json:"repo_dir"`
	FileArchives      []wire.FileArchiveTarget `json:"file_archives"`
	WorkingDir        *string                  `json:"working_dir"`
	ConfigurationPath *string                  `json:"configuration_path"`
	Configuration     config.Configuration     `json:"configuration"`
	Profile           *config.Profile          `json:"profile"`
	SSHKeyPub         *string                  `json:"ssh_key_pub"`
}

// Read reads what a client sent. The faults lead to their places from loc.
func Read(in *wire.RunSpec, loc ...any) (*Spec, wire.Invalid) {
	s := &Spec{
		RunName: in.RunName, RepoID: in.RepoID, RepoData: in.RepoData, RepoCodeHash: in.RepoCodeHash, RepoDir: in.RepoDir,
		FileArchives: in.FileArchives, WorkingDir: in.WorkingDir, ConfigurationPath: in.ConfigurationPath,
		SSHKeyPub: in.SSHKeyPub,
	}
	if s.FileArchives == nil {
		s.FileArchives = []wire.FileArchiveTarget{}
	}
	var faults wire.Invalid
	c, err := config.ReadJSON(in.Configuration)
	faults = append(faults, details(err, loc, "configuration")...)
	if c != nil {
		s.Configuration = *c
	}
	if len(in.Profile) > 0 && string(in.Profile) != "null" {
		p, err := config.ReadProfileJSON(in.Profile)
		faults = append(faults, details(err, loc, "profile")...)
		s.Profile = p
	}
	return s, faults
}

// details are the faults of one key of a run's description.
func details(err error, loc []any, key string) (out wire.Invalid) {
	if err == nil {
		return nil
	}
	var faults config.Faults
	if !errors.As(err, &faults) {
		return wire.Invalid{{Type: "value_error", Loc: append(append([]any{}, loc...), key), Msg: err.Error()}}
	}
	for _, d := range faults.Details(append(append([]any{}, loc...), key)...) {
		input, err := json.Marshal(d.Input)
		if err != nil {
			input = []byte("null")
		}
		out = append(out, wire.Detail{Type: d.Type, Loc: d.Loc, Msg: d.Msg, Input: input, Ctx: d.Ctx})
	}
	return out
}

// Stored reads a description that was stored by JSON.
func Stored(data []byte) (*Spec, error) {
	s := &Spec{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, err
	}
	return s, nil
}

// JSON is the description as clients read it.
func (s *Spec) JSON() (json.RawMessage, error) { return json.Marshal(s) }

// Name is the run's name, empty where none was given.
func (s *Spec) Name() string {
	if s.RunName != nil && *s.RunName != "" {
		return *s.RunName
	}
	return s.Configuration.Name()
}

// Policy is the profile's part of the configuration over the profile itself: what the configuration has wins.
func (s *Spec) Policy() config.Policy {
	var out config.Policy
	if p := s.Configuration.Policy(); p != nil {
		out = *p
	}
	if s.Profile == nil {
		return out
	}
	to, from := reflect.ValueOf(&out).Elem(), reflect.ValueOf(s.Profile.Policy)
	for i := range to.NumField() {
		if f := to.Field(i); f.IsNil() {
			f.Set(from.Field(i))
		}
	}
	return out
}

// MaxNodes bounds the nodes of a run: clients are told of each.
const MaxNodes = 10_000

// Nodes is how many nodes the run is on. More than MaxNodes, which nobody gets, are one more than that.
func (s *Spec) Nodes() int { return min(s.nodes(), MaxNodes+1) }

func (s *Spec) nodes() int {
	t := s.Configuration.Task
	switch {
	case t == nil:
		return 1
	case len(t.Groups) > 0:
		n := 0
		for i := range t.Groups {
			n += min(t.Groups[i].Nodes, MaxNodes+1)
		}
		return n
	case t.Nodes != nil:
		return *t.Nodes
	}
	return 1
}

// Ports are those that an attached user finds at home.
func (s *Spec) Ports() []config.Port {
	switch c := &s.Configuration; {
	case c.Task != nil:
		return c.Task.Ports
	case c.DevEnvironment != nil:
		return c.DevEnvironment.Ports
	}
	return nil
}
