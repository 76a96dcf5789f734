package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// metrics shows what a job uses.
type metrics struct {
	*app.App
	watch         bool
	replica, node int // -1: all nodes
}

func metricsCommand(a *app.App) *cobra.Command {
	m := &metrics{App: a, node: -1}
	o := &aboutJob{
		app: a, use: "metrics", short: "show what a job uses of its CPUs, memory and GPUs",
		jsonAs: "print JSON: every sample", tell: m.tellAgain,
		more: func(c *cobra.Command) {
			f := c.Flags()
			f.BoolVarP(&m.watch, "watch", "w", false, "print again every ten seconds, until interrupted")
			f.IntVar(&m.replica, "replica", 0, "of the replica `N`; a task has one, 0")
			f.IntVar(&m.node, "job", -1, "only of the `N`th of its nodes, from 0 on")
		},
	}
	return o.command()
}

// tellAgain prints until the user has seen enough.
func (a *metrics) tellAgain(ctx context.Context, c *client.Client, id string, json bool) error {
	if err := checkReplica(a.replica); err != nil {
		return err
	}
	for {
		if a.watch && !json {
			fmt.Fprint(a.Out, "\x1b[H\x1b[2J")
		}
		if err := a.tell(ctx, c, id, json); err != nil || !a.watch || json {
			return err
		}
		if err := app.Wait(ctx, 10*time.Second); err != nil {
			return err
		}
	}
}

// ofNode keeps the samples of one node.
func (a *metrics) ofNode(ctx context.Context, c *client.Client, id string, m *client.Metrics) error {
	j, err := oneJob(ctx, c, id)
	if err != nil {
		return err
	}
	if j.Alloc == nil || a.node >= len(j.Alloc.Nodes) {
		return app.Usagef("--job %d: job %s has no such node", a.node, id)
	}
	name := j.Alloc.Nodes[a.node].Node
	m.Samples = slices.DeleteFunc(m.Samples, func(s core.Sample) bool { return s.Node != name })
	return nil
}

func (a *metrics) tell(ctx context.Context, c *client.Client, id string, json bool) error {
	m, err := c.Metrics(ctx, id)
	if err != nil {
		return err
	}
	if a.node >= 0 {
		if err := a.ofNode(ctx, c, id, m); err != nil {
			return err
		}
	}
	if json {
		return a.PrintJSON(m)
	}
	if len(m.Samples) == 0 {
		return core.Errorf(core.NotFound,
			"job %s has no samples yet; its nodes take the first one after the interval gpu.sample", id)
	}
	return metricsTable(m).Write(a.Out)
}

// series is one number of a job over time.
type series struct {
	node, what string
	all        core.Bytes // of memory; 0: a percentage
	values     []float64
}

// metricsTable shows each number of each node: now, on average, at most, and its course.
func metricsTable(m *client.Metrics) app.Table {
	var list []*series
	find := func(node core.NodeName, what string, all core.Bytes) *series {
		for _, s := range list {
			if s.node == string(node) && s.what == what {
				return s
			}
		}
		s := &series{node: string(node), what: what, all: all}
		list = append(list, s)
		return s
	}
	before := map[core.NodeName]*core.Sample{}
	for i := range m.Samples {
		x := &m.Samples[i]
		cpu, mem := find(x.Node, "cpu", 0), find(x.Node, "memory", -1)
		if b := before[x.Node]; b != nil && x.At > b.At {
			cpu.values = append(cpu.values, max(0, float64(x.CPU-b.CPU)/float64(x.At.Sub(b.At))*100))
		}
		mem.values = append(mem.values, float64(x.Mem))
		for _, g := range x.GPUs {
			name := fmt.Sprintf("gpu %d", g.Index)
			all := core.Bytes(-1)
			for _, d := range m.GPUs {
				if d.Node == x.Node && d.Index == g.Index && d.Memory > 0 {
					all = d.Memory
				}
			}
			util, used := find(x.Node, name, 0), find(x.Node, name+" memory", all)
			util.values, used.values = append(util.values, g.Util), append(used.values, float64(g.Mem))
		}
		before[x.Node] = x
	}
	t := app.Table{{"NODE", "WHAT", "NOW", "MEAN", "MOST", "OF", "COURSE"}}
	for _, s := range list {
		if len(s.values) == 0 {
			continue
		}
		sum, most := 0.0, 0.0
		for _, v := range s.values {
			sum, most = sum+v, max(most, v)
		}
		of, top := "", most
		if s.all > 0 {
			of, top = app.Size(s.all), float64(s.all)
		} else if s.all == 0 {
			top = max(100, most)
		}
		t.Row(s.node, s.what, s.text(s.values[len(s.values)-1]), s.text(sum/float64(len(s.values))), s.text(most), of,
			course(s.values, top))
	}
	return t
}

func (s *series) text(v float64) string {
	if s.all == 0 {
		return fmt.Sprintf("%.0f%%", v)
	}
	return app.Size(core.Bytes(v))
}

// courseWidth is how many of the last values are drawn.
const courseWidth = 40

// course draws values as a line of blocks.
func course(values []float64, top float64) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values[max(0, len(values)-courseWidth):] {
		at := 0
		if top > 0 {
			at = min(len(blocks)-1, int(v/top*float64(len(blocks))))
		}
		b.WriteRune(blocks[max(0, at)])
	}
	return b.String()
}
