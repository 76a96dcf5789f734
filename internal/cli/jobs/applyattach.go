package jobs

import (
	"context"
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/wire"
)

// submit submits a run and stays with it, unless the user wants to leave at once.
func (o *applyOptions) submit(ctx context.Context, c *client.Client, sub *client.Submit) error {
	t := &attachment{
		app: o.app, client: c, project: o.project, name: o.name, host: o.app.Terminal, hold: countsIdle(&sub.Spec),
	}
	if !o.detach && !o.json { // a port in use is told of before anything is begun
		named, err := parsePorts(o.ports)
		if err == nil {
			t.forwards, err = chooseForwards(declaredPorts(&sub.Spec), named, o.host)
		}
		if err != nil {
			return err
		}
	}
	made, err := c.Submit(ctx, sub)
	if err != nil {
		return err
	}
	if made.Warning != "" {
		o.app.Note("bireme: %s", made.Warning)
	}
	if o.json {
		return o.printRun(ctx, o.app, c)
	}
	if o.detach {
		return o.leave("submitted", fmt.Sprintf("run %s, job %d", sub.Run, made.ID))
	}
	o.app.Note("run %s, job %d", sub.Run, made.ID)
	t.job = strconv.FormatInt(int64(made.ID), 10)
	return t.run(ctx)
}

// updated tells of a run that changed in place, and stays with it unless the user wants to leave.
func (o *applyOptions) updated(ctx context.Context, c *client.Client, run *wire.Run, sub *client.Submit) error {
	switch {
	case o.json:
		return o.app.PrintJSON(run)
	case o.detach:
		return o.leave("updated", fmt.Sprintf("run %s updated, job %d", o.name, run.BiremeJob))
	}
	o.app.Note("run %s updated", o.name)
	t := &attachment{
		app: o.app, client: c, project: o.project, name: o.name, host: o.app.Terminal, hold: countsIdle(&sub.Spec),
		job: strconv.FormatInt(run.BiremeJob, 10),
	}
	named, err := parsePorts(o.ports)
	if err == nil {
		t.forwards, err = chooseForwards(declaredPorts(&sub.Spec), named, o.host)
	}
	if err != nil {
		return err
	}
	return t.run(ctx)
}

// leave prints what was done, for a caller who does not wait.
func (o *applyOptions) leave(done, text string) error {
	if o.app.Dstack {
		text = fmt.Sprintf("Run %s %s, detaching...", o.name, done)
	}
	_, err := fmt.Fprintln(o.app.Out, text)
	return err
}
