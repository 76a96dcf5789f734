package slurmsite

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
)

// Compared is a job with both start times.
type Compared struct {
	Job      string    `json:"job"`
	User     string    `json:"user"`
	State    string    `json:"state"` // as Slurm has it
	Submit   core.Time `json:"submit"`
	Slurm    core.Time `json:"slurm_start,omitempty"`  // of one that waits: as Slurm expects; 0: it does not say
	Bireme   core.Time `json:"bireme_start,omitempty"` // 0: it does not start, see note
	Expected bool      `json:"expected,omitempty"`     // it waits: both are plans
	Note     string    `json:"note,omitempty"`
}

func (s *site) shadowCommand() *cobra.Command {
	var since time.Duration
	c := &cobra.Command{
		Use: "shadow", Short: "when Bireme would have started the jobs that a running Slurm has", Args: cobra.NoArgs,
		Long: `Ask a running Slurm for its nodes, partitions, queue and jobs since a time (scontrol show, squeue,
sacct), and run the same jobs through Bireme's scheduler on nodes of the same kind, on a virtual clock:
what ran at the beginning keeps its nodes, what came later comes at its time, with Slurm's priority, and
runs as long as it did. Jobs that wait are planned with their whole time limit. Both start times of each
job are printed; ~ marks those that are plans. Nothing is started, and Slurm is only asked.

Not modelled: limits of QOS and associations, reservations, preemption, het components together. Held
jobs and those that wait for others are left out.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return app.Usagef("migrate: --since is a time above 0, such as 24h")
			}
			return s.compare(cmd.Context(), since)
		},
	}
	c.Flags().DurationVar(&since, "since", 24*time.Hour, "how far to look back")
	return c
}

func (s *site) compare(ctx context.Context, since time.Duration) error {
	begin := core.At(s.app.Now().Add(-since))
	l, err := s.look(ctx, begin)
	if err != nil {
		return err
	}
	in, records := l.shadow(begin)
	if err := in.Run(l.now + core.Time(400*24*time.Hour/time.Microsecond)); err != nil {
		return err
	}
	rows := make([]Compared, len(records))
	for i := range in.Jobs {
		j := &in.Jobs[i]
		k, err := strconv.Atoi(j.Spec.Name)
		if err != nil || k >= len(records) {
			continue
		}
		r := &records[k]
		row := Compared{Job: r.id, User: r.user, State: r.state, Submit: r.submit, Slurm: r.start}
		row.Expected = r.state == "PENDING"
		start, refused := j.Start()
		switch {
		case j.Nodes != "":
			row.Bireme, row.Note = r.start, "ran already"
		case refused != nil:
			row.Note = "refused: " + refused.Error()
		case start == 0:
			row.Note = "it does not start on these nodes"
		default:
			row.Bireme = start
		}
		rows[k] = row
	}
	return s.showCompared(rows)
}

// Comparison sums up the jobs that started in both.
type Comparison struct {
	Jobs         []Compared `json:"jobs"`
	Started      int        `json:"started"`       // in both, and not before the beginning
	SlurmWait    float64    `json:"slurm_wait_s"`  // mean seconds from submission to start
	BiremeWait   float64    `json:"bireme_wait_s"` // the same
	BiremeBefore int        `json:"bireme_before"` // started earlier by Bireme, by more than a second
	SlurmBefore  int        `json:"slurm_before"`
}

func (s *site) showCompared(rows []Compared) error {
	out := Comparison{Jobs: rows}
	for i := range rows {
		r := &rows[i]
		if r.Expected || r.Note != "" || r.Slurm == 0 || r.Bireme == 0 {
			continue
		}
		out.Started++
		out.SlurmWait += float64(r.Slurm-r.Submit) / 1e6
		out.BiremeWait += float64(r.Bireme-r.Submit) / 1e6
		switch {
		case r.Bireme < r.Slurm-1e6:
			out.BiremeBefore++
		case r.Slurm < r.Bireme-1e6:
			out.SlurmBefore++
		}
	}
	if out.Started > 0 {
		out.SlurmWait /= float64(out.Started)
		out.BiremeWait /= float64(out.Started)
	}
	if s.json {
		return s.app.PrintJSON(out)
	}
	t := app.Table{{"JOB", "USER", "STATE", "SUBMIT", "SLURM", "BIREME", "DIFFERENCE", "NOTE"}}
	for i := range rows {
		r := &rows[i]
		t.Row(r.Job, r.User, r.State, moment(r.Submit, false), moment(r.Slurm, r.Expected), moment(r.Bireme, r.Expected),
			difference(r), orDash(r.Note))
	}
	if err := t.Write(s.app.Out); err != nil {
		return err
	}
	s.app.Note("%d jobs started in both: mean wait %.0f s with Slurm, %.0f s with Bireme; earlier with Bireme %d, "+
		"with Slurm %d",
		out.Started, out.SlurmWait, out.BiremeWait, out.BiremeBefore, out.SlurmBefore)
	return nil
}

func moment(t core.Time, expected bool) string {
	if t == 0 {
		return "-"
	}
	text := t.Go().Local().Format("2006-01-02T15:04:05")
	if expected {
		return "~" + text
	}
	return text
}

func difference(r *Compared) string {
	if r.Slurm == 0 || r.Bireme == 0 {
		return "-"
	}
	return fmt.Sprintf("%+ds", int64(r.Bireme-r.Slurm)/1e6)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
