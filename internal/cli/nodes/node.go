package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// show shows a node and the last of what happened to it.
func (a nodes) show(ctx context.Context, name core.NodeName, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	n, err := c.Node(ctx, name)
	if err != nil {
		return err
	}
	list, err := c.NodeEvents(ctx, name, 20)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(struct {
			*client.Node
			Events []core.Event `json:"events"`
		}{n, list.Events})
	}
	t := app.Table{}
	row := func(key, value string) {
		if value != "" {
			t.Row(key, value)
		}
	}
	row("node", string(n.Name))
	row("state", strings.ToLower(n.State))
	if n.Reason != "" {
		row("reason", fmt.Sprintf("%s [%s at %s]", n.Reason, n.ReasonBy, app.Clock(n.ReasonAt)))
	}
	row("warning", n.Warning)
	row("reservation", n.Reservation)
	row("cpus", fmt.Sprintf("%d of %d in use", n.AllocCPUs, n.Hardware.CPUs))
	row("memory", app.Size(n.AllocMem)+" of "+app.Size(n.Hardware.Memory)+" in use")
	row("gres", nodeGres(n))
	row("load", fmt.Sprintf("%.2f", n.Load))
	var jobs []string
	for _, id := range n.Jobs {
		jobs = append(jobs, fmt.Sprint(id))
	}
	row("jobs", strings.Join(jobs, " "))
	row("features", strings.Join(n.Features, " "))
	row("fleet", n.Fleet)
	row("address", n.Host.Addr)
	row("system", strings.TrimSpace(n.Host.OS+" "+n.Host.Arch))
	row("agent", n.Host.Version)
	row("containment", containment(n))
	if n.Host.Boot != 0 {
		row("booted", app.Clock(n.Host.Boot))
	}
	if n.LastHeard != 0 {
		row("last heard", app.Clock(n.LastHeard))
	}
	if err := t.Write(a.Out); err != nil || len(list.Events) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	past := app.Table{{"WHEN", "WHAT", "BY", "REASON"}}
	for i := range list.Events {
		e := &list.Events[i]
		var d nodeEvent
		what := string(e.Kind)
		if json.Unmarshal(e.Data, &d) == nil && d.State != "" { // what is not of the node's own state is told by its kind
			what = d.State
		}
		if e.Kind == core.NodeJoined {
			what = "joined, " + what
		}
		if d.Gone {
			what = "gone"
		}
		if e.Job != 0 {
			what += fmt.Sprintf(" of job %d", e.Job)
		}
		if d.Faults != "" {
			d.Reason = strings.TrimPrefix(d.Reason+"; found: "+d.Faults, "; ")
		}
		past.Row(app.Clock(e.At), what, string(e.By), d.Reason)
	}
	return past.Write(a.Out)
}

// nodeEvent is what events of nodes say.
type nodeEvent struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
	Faults string `json:"faults"`
	Gone   bool   `json:"gone"`
}
