package screen

import (
	"encoding/json"
	"fmt"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Runs is the table of runs, those on several nodes with a row for each below them.
func Runs(runs []*wire.Run, verbose bool, now time.Time) app.Table {
	head := []string{"NAME", "BACKEND", "GPU", "PRICE", "STATUS", "SUBMITTED"}
	if verbose {
		head = []string{"NAME", "BACKEND", "RESOURCES", "INSTANCE TYPE", "PRICE", "STATUS", "SUBMITTED", "ERROR"}
	}
	t := app.Table{head}
	for _, r := range runs {
		name := nameOf(r)
		if len(r.Jobs) <= 1 {
			t.Row(runRow(name, r, r.LatestJobSubmission, status(r), verbose, now)...)
			continue
		}
		t.Row(runRow(name, r, nil, status(r), verbose, now)...)
		for i := range r.Jobs {
			j := &r.Jobs[i]
			var last *wire.JobSubmission
			text := r.Status
			if n := len(j.Submissions); n > 0 {
				last = &j.Submissions[n-1]
				text = last.StatusMessage
			}
			t.Row(runRow(fmt.Sprintf("   replica=0 job=%d", i), r, last, text, verbose, now)...)
		}
	}
	return t
}

// nameOf is the run's name, which is in its description.
func nameOf(r *wire.Run) string {
	var spec struct {
		RunName *string `json:"run_name"`
	}
	if json.Unmarshal(r.RunSpec, &spec) == nil && spec.RunName != nil {
		return *spec.RunName
	}
	return r.ID
}

// status is what a run is at: of one that has ended, how its last job did.
func status(r *wire.Run) string {
	if last := r.LatestJobSubmission; last != nil && len(r.Jobs) <= 1 {
		switch r.Status {
		case wire.RunDone, wire.RunFailed, wire.RunTerminated:
			return orText(last.StatusMessage, last.Status)
		}
	}
	return orText(r.StatusMessage, r.Status)
}

func runRow(name string, r *wire.Run, last *wire.JobSubmission, status string, verbose bool, now time.Time) []string {
	backend, price, gpu, resources, kind := "", "-", "-", "-", ""
	if last != nil && last.JobProvisioningData != nil {
		p := last.JobProvisioningData
		backend, price, kind = Backend(p.Backend, p.Region), Price(p.Price), p.InstanceType.Name
		of := &p.InstanceType.Resources
		if d := last.JobRuntimeData; d != nil && d.Offer != nil {
			of = &d.Offer.Instance.Resources
			if d.Offer.TotalBlocks > 1 {
				kind += fmt.Sprintf(" (%d/%d)", d.Offer.Blocks, d.Offer.TotalBlocks)
			}
		}
		gpu, resources = orText(GPUs(of.GPUs), "-"), Machine(of)
	}
	submitted := Ago(r.SubmittedAt, now)
	if !verbose {
		return []string{name, orText(backend, " "), gpu, price, status, submitted}
	}
	fault := " "
	if r.Error != nil {
		fault = *r.Error
	}
	return []string{name, orText(backend, " "), resources, orText(kind, " "), price, status, submitted, fault}
}

// Fleets is the table of fleets, each with its instances below it.
func Fleets(list []*wire.Fleet, verbose bool, now time.Time) app.Table {
	head := []string{"NAME", "NODES", "GPU", "SPOT", "BACKEND", "PRICE", "STATUS", "CREATED"}
	if verbose {
		head = []string{"NAME", "NODES", "RESOURCES", "SPOT", "BACKEND", "PRICE", "STATUS", "CREATED", "ERROR"}
	}
	t := app.Table{head}
	for _, f := range list {
		row := []string{f.Name, fmt.Sprint(len(f.Instances)), " ", " ", "ssh", " ", f.Status, Ago(f.CreatedAt, now)}
		if verbose {
			row = append(row, orBlank(f.StatusMessage))
		}
		t.Row(row...)
		for i := range f.Instances {
			x := &f.Instances[i]
			has := " "
			if x.InstanceType != nil {
				has = orText(GPUs(x.InstanceType.Resources.GPUs), " ")
				if verbose {
					has = Machine(&x.InstanceType.Resources)
				}
			}
			row := []string{
				fmt.Sprintf("   instance=%d", x.InstanceNum), " ", has, " ", Backend(x.Backend, x.Region), " ",
				instanceStatus(x), Ago(x.Created, now),
			}
			if verbose {
				row = append(row, orBlank(x.TerminationReasonMessage))
			}
			t.Row(row...)
		}
	}
	return t
}

func orBlank(p *string) string {
	if p == nil || *p == "" {
		return " "
	}
	return *p
}

func instanceStatus(x *wire.Instance) string {
	text := x.Status
	if x.TotalBlocks > 1 && (x.Status == wire.InstanceIdle || x.Status == wire.InstanceBusy) {
		text = fmt.Sprintf("%d/%d busy", x.BusyBlocks, x.TotalBlocks)
	}
	switch {
	case x.Unreachable:
		text += " (unreachable)"
	case x.HealthStatus == wire.HealthWarning, x.HealthStatus == wire.HealthFailure:
		text += " (" + x.HealthStatus + ")"
	}
	return text
}
