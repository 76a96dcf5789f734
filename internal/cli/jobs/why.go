package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/plain"
)

// why tells why a job waits, or how it ended.
type why struct{ *app.App }

func whyCommand(a *app.App) *cobra.Command {
	o := &aboutJob{
		app: a, use: "why", short: "show why a job waits, or how it ended", jsonAs: "print JSON",
		tell: why{a}.tell,
	}
	return o.command()
}

func (a why) tell(ctx context.Context, c *client.Client, id string, json bool) error {
	w, err := c.Why(ctx, id)
	if err != nil {
		return err
	}
	if json {
		return a.PrintJSON(w)
	}
	list, err := c.Job(ctx, id)
	if err != nil {
		return err
	}
	if len(list.Jobs) == 0 {
		return core.Errorf(core.NotFound, "there is no job %s", id)
	}
	if tasks := arrayTasks(id, list.Jobs); len(tasks) > 1 {
		return a.tellArray(ctx, c, id, tasks)
	}
	j, now := &list.Jobs[0], list.Now
	var b strings.Builder
	fmt.Fprintf(&b, "job %s", id)
	if j.Spec != nil && j.Spec.Name != "" {
		fmt.Fprintf(&b, " (%s)", app.Cell(j.Spec.Name))
	}
	fmt.Fprintf(&b, " %s", w.State.Phrase())
	if w.Reason != "" && !w.State.Final() {
		fmt.Fprintf(&b, ": %s", w.Reason)
	}
	b.WriteByte('\n')
	if w.Why != "" {
		fmt.Fprintf(&b, "  %s\n", app.Cell(w.Why))
	}
	for _, p := range w.Ports {
		fmt.Fprintf(&b, "  port %d is port %d of %s\n", p.Port, p.Host, app.Cell(string(p.Node)))
	}
	if w.State == core.Pending {
		if err := a.waiting(ctx, c, &b, w, j, now); err != nil {
			return err
		}
	}
	_, err = a.Out.Write([]byte(plain.Message(b.String())))
	return err
}

// waiting adds when a job may start, and what it asks for beside what there is.
func (a why) waiting(ctx context.Context, c *client.Client, b *strings.Builder, w *client.Why, j *client.Job,
	now core.Time,
) error {
	if w.Expected != 0 {
		if now == 0 {
			now = core.At(a.Now())
		}
		about, kind := "", "reserved"
		if w.Estimate {
			about, kind = "about ", "an estimate"
		}
		fmt.Fprintf(b, "  expected start: %s%s, in %s%s (%s)\n", about, app.Clock(w.Expected), about,
			app.Span(max(0, w.Expected.Sub(now))), kind)
	} else {
		b.WriteString("  expected start: not known")
		if w.Reason == core.ReasonResources || w.Reason == core.ReasonPriority {
			b.WriteString(", as a job before it has no time limit or is being ended")
		}
		b.WriteString("\n")
	}
	if w.Priority != nil {
		fmt.Fprintf(b, "  priority:       %s\n", priorityText(w.Priority))
	}
	if j.Spec == nil {
		return nil
	}
	fmt.Fprintf(b, "  it asks for:    %s\n", asked(&j.Spec.Shape))
	list, err := c.Nodes(ctx)
	if core.CodeOf(err) == core.Denied { // nodes are private
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "  there is:       %s\n", available(list.Nodes, partitionOf(j)))
	outOfUse(b, list.Nodes, partitionOf(j))
	return nil
}

// mostOut is how many reasons of nodes out of use are told: the rest are in `bireme nodes`.
const mostOut = 5

// outOfUse adds which nodes, or GPUs of them, a job cannot have now, and why: those with one reason on one line.
func outOfUse(b *strings.Builder, nodes []client.Node, partitions []string) {
	var reasons []string
	names := map[string][]string{}
	for i := range nodes {
		n := &nodes[i]
		text := n.Reason
		if len(n.Hardware.Sick) > 0 {
			text = core.SickText(n.Hardware.Sick)
		} else if n.Usable() {
			continue
		}
		if n.Roles&core.Compute == 0 || !inPartitions(n, partitions) {
			continue
		}
		if text == "" {
			text = strings.ToLower(n.State)
		}
		if names[text] == nil {
			reasons = append(reasons, text)
		}
		names[text] = append(names[text], string(n.Name))
	}
	rest := 0
	for i, text := range reasons {
		if i >= mostOut {
			rest += len(names[text])
			continue
		}
		fmt.Fprintf(b, "  out of use:     %s: %s\n", app.Cell(hostlist.Fold(names[text])), app.Cell(text))
	}
	if rest > 0 {
		fmt.Fprintf(b, "  out of use:     %s more\n", app.Plural(rest, "node"))
	}
}

// priorityText words what a priority is made of: 1520 = age 0.5×1000 + qos 1×1000 + run 20.
func priorityText(p *client.Priority) string {
	if p.Fixed || p.Now == 0 {
		why := "set by hand"
		if p.Now == 0 {
			why = "held"
		}
		return fmt.Sprintf("%d, %s", p.Now, why)
	}
	var parts []string
	if p.Base != 0 {
		parts = append(parts, strconv.FormatInt(p.Base, 10))
	}
	for _, f := range p.Factors {
		value := f.Value
		if value < 0.0005 { // a job that has just come: 1.65e-08 tells nobody anything
			value = 0
		}
		parts = append(parts, fmt.Sprintf("%s %.3g×%.6g", f.Name, value, f.Weight))
	}
	for _, x := range []struct {
		name string
		n    int64
	}{{"run", p.Run}, {"site", p.Site}, {"nice", -p.Nice}} {
		if x.n != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", x.name, x.n))
		}
	}
	if len(parts) == 0 {
		return strconv.FormatUint(uint64(p.Now), 10)
	}
	return fmt.Sprintf("%d = %s", p.Now, strings.Join(parts, " + "))
}

func partitionOf(j *client.Job) []string {
	if j.Spec.Partition.IsZero() {
		return nil
	}
	return strings.Split(j.Spec.Partition.String(), ",")
}

// available words what the nodes of the given partitions (nil: all) have, and what of it is free.
func available(nodes []client.Node, partitions []string) string {
	var total, usable, freeCPUs, cpus int32
	var freeMem, mem core.Bytes
	free := map[string]int64{}
	var kinds []string
	for i := range nodes {
		n := &nodes[i]
		if n.Roles&core.Compute == 0 || !inPartitions(n, partitions) {
			continue
		}
		total++
		cpus, mem = max(cpus, n.Hardware.CPUs), max(mem, n.Hardware.Memory)
		if !n.Usable() {
			continue
		}
		usable++
		freeCPUs = max(freeCPUs, n.Hardware.CPUs-n.AllocCPUs)
		freeMem = max(freeMem, n.Hardware.Memory-n.AllocMem)
		for _, g := range n.Hardware.Gres {
			name := g.Name
			if g.Type != "" {
				name += ":" + g.Type
			}
			if _, seen := free[name]; !seen {
				kinds = append(kinds, name)
			}
			left := g.Count
			for _, u := range n.AllocGres {
				if u.Name == g.Name && u.Type == g.Type {
					left -= u.Count
				}
			}
			free[name] = max(free[name], left)
		}
	}
	text := fmt.Sprintf("%s, %d usable; the largest has %s and %s of memory; free on one node: at most %s, %s",
		app.Plural(total, "node"), usable, app.Plural(cpus, "CPU"), app.Size(mem), app.Plural(freeCPUs, "CPU"),
		app.Size(freeMem))
	for _, k := range kinds {
		text += fmt.Sprintf(", %s:%d", k, free[k])
	}
	return text
}

func inPartitions(n *client.Node, want []string) bool {
	if len(want) == 0 || len(n.Partitions) == 0 {
		return true
	}
	for _, w := range want {
		for _, p := range n.Partitions {
			if string(p) == w {
				return true
			}
		}
	}
	return false
}
