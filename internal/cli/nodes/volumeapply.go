package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

// VolumeApply is `bireme apply` of a volume.
type VolumeApply struct {
	App     *app.App
	Name    string // of the volume; "": the file has it
	Project string
	Yes     bool // do not ask
	Detach  bool // do not wait until it is there
}

// Run makes a volume that is not there. One that is there stays as it is: to change it would be to lose what is in it.
func (o *VolumeApply) Run(ctx context.Context, file string, cfg *config.Configuration) error {
	if o.Name != "" {
		cfg.Volume.Name = &o.Name
	}
	want, err := convert.Volume(cfg)
	if err != nil {
		return err
	}
	if want.Name == "" {
		return app.Usagef("apply: %s: the volume has no name; set name in the file or give -n", file)
	}
	if err := storage.CheckName(want.Name); err != nil {
		return config.Faults{cfg.Fault(err.Error(), "name")}
	}
	c, err := o.App.Connect()
	if err != nil {
		return err
	}
	project, err := app.Project(ctx, c, o.Project)
	if err != nil {
		return err
	}
	d := client.Dstack{Client: c, Project: project}
	var v wire.Volume
	switch err := d.Post(ctx, "volumes/get", map[string]any{"name": want.Name}, &v); {
	case err == nil:
		return o.present(&v, want)
	case core.CodeOf(err) != core.NotFound:
		return err
	}
	if !o.App.Confirm(o.Yes, "Create volume %s?", want.Name) {
		return o.App.Declined("nothing was changed")
	}
	if err := d.Post(ctx, "volumes/create", map[string]any{"configuration": cfg}, &v); err != nil {
		return err
	}
	for v.Status == string(core.VolumeSubmitted) && !o.Detach {
		if err := app.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if err := d.Post(ctx, "volumes/get", map[string]any{"name": want.Name}, &v); err != nil {
			return err
		}
	}
	if v.Status == string(core.VolumeFailed) {
		return fmt.Errorf("volume %s could not be made: %s", v.Name, config.Value(v.StatusMessage))
	}
	_, err = fmt.Fprintf(o.App.Out, "volume %s: %s\n", v.Name, v.Status)
	return err
}

// present says what is to be said of a volume that is there.
func (o *VolumeApply) present(v *wire.Volume, want *core.Volume) error {
	var have config.Configuration
	if err := json.Unmarshal(v.Configuration, &have); err != nil {
		return err
	}
	is, err := convert.Volume(&have)
	if err != nil {
		return err
	}
	if want.Class != "" && is.Class != want.Class || want.Size != 0 && is.Size != want.Size || is.Path != want.Path {
		return core.Errorf(core.Conflict, "volume %s is there, and another one: of class %s, with %d bytes; to replace it, "+
			"delete it and what is in it: bireme volume delete %s", v.Name, is.Class, is.Size, v.Name)
	}
	o.App.Note("volume %s: no changes", v.Name)
	return nil
}
