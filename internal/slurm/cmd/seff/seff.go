// Package seff is the command that tells how much of what a job held it used.
package seff

import (
	"context"
	"fmt"
	"io"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "version", Short: 'v'},
	{Long: "help", Short: 'h'},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	if len(f.Operands) != 1 {
		fmt.Fprintf(w.Err, "Usage: %s [OPTION...] JOB[_TASK]\n", w.Name)
		return slurm.ExitError
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Job(ctx, f.Operands[0])
	if core.CodeOf(err) == core.NotFound || err == nil && len(list.Jobs) == 0 {
		fmt.Fprintf(w.Err, "Job not found.\n")
		return slurm.ExitError
	}
	if err != nil {
		return w.LoadFailed("slurm_load_jobs error", err)
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return w.LoadFailed("slurm_load_jobs error", err)
	}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if j.IsArray() && len(list.Jobs) > 1 { // its tasks follow
			continue
		}
		print(w.Out, j, list, cluster.Name)
	}
	return 0
}

// used is what a job and its steps used of what it held.
type used struct {
	cpu time.Duration
	mem core.Bytes
}

func usedBy(j *client.Job, steps []core.Step) used {
	u := used{j.Usage.User + j.Usage.Sys, j.Usage.MaxRSS}
	for i := range steps {
		if s := &steps[i]; s.Job == j.ID {
			u.cpu += s.Usage.User + s.Usage.Sys
			u.mem = max(u.mem, s.Usage.MaxRSS)
		}
	}
	return u
}

func print(out io.Writer, j *client.Job, list *client.JobList, cluster string) {
	row := report.AcctRow{Job: j, Now: list.Now}
	fmt.Fprintf(out, "Job ID: %d\n", j.ID)
	if j.Array != nil {
		fmt.Fprintf(out, "Array Job ID: %d_%d\n", j.Array.Base, j.Array.Task)
	}
	fmt.Fprintf(out, "Cluster: %s\nUser/Group: %s/%s\n", cluster, j.Spec.User, cmd.GroupName(j.Spec.GID))
	if j.State.Final() {
		fmt.Fprintf(out, "State: %s (exit code %d)\n", j.State, row.Exit().Code)
	} else {
		fmt.Fprintf(out, "State: %s\n", j.State)
	}
	if j.Alloc == nil {
		fmt.Fprintln(out, "Efficiency not available for jobs in the PENDING state.")
		return
	}
	cpus, mem := int64(0), core.Bytes(0)
	for i := range j.Alloc.Nodes {
		cpus += int64(j.Alloc.Nodes[i].CPUs)
		mem += j.Alloc.Nodes[i].Mem
	}
	nodes := int64(len(j.Alloc.Nodes))
	if nodes > 1 {
		fmt.Fprintf(out, "Nodes: %d\nCores per node: %d\n", nodes, cpus/nodes)
	} else {
		fmt.Fprintf(out, "Cores: %d\n", cpus)
	}
	u := usedBy(j, list.Steps)
	wall := int64(j.Elapsed(list.Now).Seconds())
	fmt.Fprintf(out, "CPU Utilized: %s\n", grammar.FormatClock(int64(u.cpu.Seconds())))
	fmt.Fprintf(out, "CPU Efficiency: %.2f%% of %s core-walltime\n",
		percent(u.cpu.Seconds(), float64(wall*cpus)), grammar.FormatClock(wall*cpus))
	fmt.Fprintf(out, "Job Wall-clock time: %s\n", grammar.FormatClock(wall))
	fmt.Fprintf(out, "Memory Utilized: %s\n", size(u.mem))
	fmt.Fprintf(out, "Memory Efficiency: %.2f%% of %s\n", percent(float64(u.mem), float64(mem)), size(mem))
	if !j.State.Final() {
		fmt.Fprintln(out, "WARNING: Efficiency statistics may be misleading for RUNNING jobs.")
	}
}

func percent(part, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return 100 * part / all
}

// size writes bytes in the unit that fits.
func size(n core.Bytes) string {
	value := float64(n) / float64(core.KiB)
	for _, unit := range []string{"KB", "MB", "GB"} {
		if value < 1024 {
			return fmt.Sprintf("%.2f %s", value, unit)
		}
		value /= 1024
	}
	return fmt.Sprintf("%.2f TB", value)
}
