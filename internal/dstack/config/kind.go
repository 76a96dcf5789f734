package config

import (
	"fmt"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// Kind is the type of a configuration.
type Kind string

// The kinds, as the key `type` has them.
const (
	KindTask           Kind = "task"
	KindDevEnvironment Kind = "dev-environment"
	KindService        Kind = "service"
	KindFleet          Kind = "fleet"
	KindVolume         Kind = "volume"
	KindGateway        Kind = "gateway"
	KindPreset         Kind = "preset"
)

// IsRun reports whether a configuration of this kind is applied as a run.
func (k Kind) IsRun() bool { return k == KindTask || k == KindDevEnvironment || k == KindService }

// Configuration is one of the kinds. Exactly the field of its kind is set.
type Configuration struct {
	Kind           Kind
	Task           *Task
	DevEnvironment *DevEnvironment
	Service        *Service
	Fleet          *Fleet
	Volume         *Volume
	Gateway        *Gateway
	Preset         *Preset

	// Additions are Bireme's own keys. In the normal form they are tags of the run.
	Additions Additions

	root *tree.Node // as it was read, for the place of later faults
}

// value is the field of the configuration's kind.
func (c *Configuration) value() any {
	switch c.Kind {
	case KindTask:
		return c.Task
	case KindDevEnvironment:
		return c.DevEnvironment
	case KindService:
		return c.Service
	case KindFleet:
		return c.Fleet
	case KindVolume:
		return c.Volume
	case KindGateway:
		return c.Gateway
	case KindPreset:
		return c.Preset
	}
	return nil
}

// Run gives the properties that tasks, dev environments and services share, nil for other kinds.
func (c *Configuration) Run() *Run {
	switch {
	case c.Task != nil:
		return &c.Task.Run
	case c.DevEnvironment != nil:
		return &c.DevEnvironment.Run
	case c.Service != nil:
		return &c.Service.Run
	}
	return nil
}

// Policy gives the profile properties of a run or a preset, nil for other kinds.
func (c *Configuration) Policy() *Policy {
	switch {
	case c.Task != nil:
		return &c.Task.Policy
	case c.DevEnvironment != nil:
		return &c.DevEnvironment.Policy
	case c.Service != nil:
		return &c.Service.Policy
	case c.Preset != nil:
		return &c.Preset.Policy
	}
	return nil
}

// Name is what the configuration calls itself, "" where it does not.
func (c *Configuration) Name() string {
	switch {
	case c.Run() != nil:
		return Value(c.Run().Name)
	case c.Fleet != nil:
		return Value(c.Fleet.Name)
	case c.Volume != nil:
		return Value(c.Volume.Name)
	case c.Gateway != nil:
		return Value(c.Gateway.Name)
	case c.Preset != nil:
		return Value(c.Preset.Name)
	}
	return ""
}

// MarshalJSON writes the normal form.
func (c Configuration) MarshalJSON() ([]byte, error) {
	v := c.value()
	if v == nil {
		return nil, fmt.Errorf("a configuration of type %q cannot be written", c.Kind)
	}
	return tree.Marshal(v)
}

// Value is *p, or the zero value where p is nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
