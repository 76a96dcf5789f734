package fleets

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

type planBody struct {
	Spec json.RawMessage `json:"spec" in:"required"`
}

type applyBody struct {
	Plan  applyPlan `json:"plan" in:"required"`
	Force bool      `json:"force"`
}

type applyPlan struct {
	Spec            json.RawMessage `json:"spec" in:"required"`
	CurrentResource json.RawMessage `json:"current_resource"`
}

// wanted is a fleet that a client asks for.
type wanted struct {
	name string
	full *config.Configuration
	conf *config.Fleet // of full
	spec wire.FleetSpec
	sent json.RawMessage // the spec as it came, with its keys
}

// read checks a spec. loc leads to it from "body".
func (a *Fleets) read(c *front.Call, raw json.RawMessage, loc ...any) (*wanted, error) {
	w := &wanted{sent: raw}
	if err := json.Unmarshal(raw, &w.spec); err != nil || len(w.spec.Configuration) == 0 {
		return nil, front.ErrInvalid(wire.Invalid{{
			Type: "missing", Loc: append(loc, "configuration"), Msg: "Field required", Input: raw,
		}})
	}
	conf, err := config.ReadJSON(w.spec.Configuration)
	if err != nil {
		return nil, front.ErrConfig(err, append(loc, "configuration")...)
	}
	if conf.Fleet == nil {
		return nil, front.ErrInvalid(wire.Invalid{{
			Type: "literal_error", Loc: append(loc, "configuration", "type"), Msg: "Input should be 'fleet'",
			Input: mustJSON(conf.Kind), Ctx: map[string]any{"expected": "'fleet'"},
		}})
	}
	w.full, w.conf = conf, conf.Fleet
	if w.conf.Name != nil && *w.conf.Name != "" {
		w.name = *w.conf.Name
	}
	switch {
	case w.conf.SSH == nil:
		return nil, front.Errorf("Fleets of cloud machines (nodes) are not supported yet: list hosts under ssh_config, " +
			"or use the nodes of the cluster, which appear as fleets named by partition")
	case w.name == "":
		w.name = newName()
	case !isName(w.name):
		return nil, front.Errorf("Resource name should match regex '^[a-z][a-z0-9-]{1,40}$'")
	}
	f, ours := c.Snap.Fleet(w.name)
	if ours && f.Project != c.Project.Name && (f.Project != "" || isLimited(c)) { // names are the cluster's
		return nil, front.ErrExists()
	}
	if !ours {
		for _, p := range c.Snap.Partitions() {
			if string(p.Name) == w.name {
				return nil, front.Conflictf("%s is a partition of the cluster, which its settings make: choose another name",
					w.name)
			}
		}
	}
	return w, nil
}

// isLimited reports whether the call's token is for one project only.
func isLimited(c *front.Call) bool { return c.TokenRecord != nil && c.TokenRecord.Project != "" }

func isName(name string) bool {
	const most = 41
	if len(name) < 2 || len(name) > most || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func newName() string {
	var b [4]byte
	_, err := rand.Read(b[:])
	core.Assert(err == nil, "the system's random source fails: %v", err)
	return "fleet-" + hex.EncodeToString(b[:])
}

// native is the fleet in Bireme's own words. Its keys came with it.
func (w *wanted) native(c *front.Call) (*client.FleetSpec, error) {
	out, err := convert.Fleet(w.full, func(file string) ([]byte, error) {
		return nil, fmt.Errorf("the client sent no private key for %s", file)
	})
	if err != nil {
		return nil, front.Errorf("%v", err)
	}
	for _, v := range w.conf.Env {
		if v.From != "" {
			return nil, front.Errorf("env: %s has no value", v.Name)
		}
	}
	out.Project = c.Project.Name
	if f, ok := c.Snap.Fleet(w.name); ok {
		out.Project = f.Project // one of everybody's stays that
	}
	return out, nil
}

func (a *Fleets) plan(c *front.Call, in *planBody) (any, error) {
	w, err := a.read(c, in.Spec, "body", "spec")
	if err != nil {
		return nil, err
	}
	out := wire.FleetPlan{
		ProjectName: string(c.Project.Name), User: string(c.User), Spec: in.Spec, EffectiveSpec: w.stored(true),
		Offers: []struct{}{}, Action: "create",
	}
	if c.Admin { // others are refused when they apply; what is there is shown to all
		spec, err := w.native(c)
		if err != nil {
			return nil, err
		}
		spec.DryRun, spec.Force = true, true
		if _, err := a.fleets.Apply(c.Context(), c.Caller, w.name, spec, ""); err != nil {
			return nil, err
		}
	}
	if out.CurrentResource = a.find(c, &getBody{Name: &w.name}); out.CurrentResource != nil {
		out.Action = "update"
	}
	return out, nil
}

func (a *Fleets) apply(c *front.Call, in *applyBody) (any, error) {
	w, err := a.read(c, in.Plan.Spec, "body", "plan", "spec")
	if err != nil {
		return nil, err
	}
	c.About("fleet", w.name)
	if !c.Admin { // who adds hosts runs a program on them as root
		return nil, front.ErrForbidden()
	}
	spec, err := w.native(c)
	if err != nil {
		return nil, err
	}
	spec.Force = in.Force
	if _, err := a.fleets.Apply(c.Context(), c.Caller, w.name, spec, string(w.stored(false))); err != nil {
		return nil, err
	}
	c.Snap = a.Engine.Snapshot()
	f := a.find(c, &getBody{Name: &w.name})
	if f == nil {
		return nil, front.ErrNotExists()
	}
	return f, nil
}

type deleteBody struct {
	Names []string `json:"names" in:"required,max=100"`
}

// remove deletes fleets. Names that there are not are passed over.
func (a *Fleets) remove(c *front.Call, in *deleteBody) (any, error) {
	for _, name := range in.Names {
		if err := a.drop(c, name, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

type deleteInstancesBody struct {
	Name         string  `json:"name" in:"required"`
	InstanceNums []int32 `json:"instance_nums" in:"required,max=1000"`
}

// removeInstances deletes hosts of a fleet. Numbers that there are not are passed over.
func (a *Fleets) removeInstances(c *front.Call, in *deleteInstancesBody) (any, error) {
	nums := []int32{}
	if f, ok := c.Snap.Fleet(in.Name); ok {
		for _, n := range in.InstanceNums {
			if f.Host(n) != nil {
				nums = append(nums, n)
			}
		}
		if len(nums) == 0 {
			return nil, nil
		}
	}
	return nil, a.drop(c, in.Name, nums)
}

func (a *Fleets) drop(c *front.Call, name string, nums []int32) error {
	c.About("fleet", name)
	f, ok := c.Snap.Fleet(name)
	if !ok || f.Project != c.Project.Name && (f.Project != "" || !c.Admin || isLimited(c)) {
		if there := a.find(c, &getBody{Name: &name}); there != nil && !ok {
			return front.Conflictf("%s is a partition of the cluster, which its settings make: it cannot be deleted from here",
				name)
		}
		return nil
	}
	_, err := engine.Do(c.Context(), a.Engine, &state.DropFleet{By: c.Identity, Name: name, Hosts: nums})
	switch core.ReasonOf(err) {
	case "node_busy":
		if nums != nil {
			return front.Conflictf("Failed to delete fleet %s instances. Fleet instances are in use.", name)
		}
		return front.Conflictf("Failed to delete fleet %s. Fleet is in use.", name)
	case "access_denied":
		return front.ErrForbidden()
	}
	return err
}
