package jobs

import (
	"context"
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/client"
)

// submit submits a run and stays with it, unless the user wants to leave at once.
func (o *applyOptions) submit(ctx context.Context, c *client.Client, sub *client.Submit) error {
	t := &attachment{
		app: o.app, client: c, project: o.project, name: o.name, host: o.app.Terminal, hold: countsIdle(&sub.Spec),
	}
	if !o.detach { // a port in use is told of before anything is begun
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
	if o.detach {
		_, err := fmt.Fprintf(o.app.Out, "run %s, job %d\n", sub.Run, made.ID)
		return err
	}
	o.app.Note("run %s, job %d", sub.Run, made.ID)
	t.job = strconv.FormatInt(int64(made.ID), 10)
	return t.run(ctx)
}
