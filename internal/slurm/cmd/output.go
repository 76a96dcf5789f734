package cmd

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report"
)

// Steps gives the rows of all steps of the jobs in list: batch steps first, then numbered ones. The server sends steps
// with some listings; for others they are asked for job by job.
func Steps(ctx context.Context, c *client.Client, list *client.JobList) ([]report.StepRow, error) {
	byJob := map[core.JobID][]*core.Step{}
	for i := range list.Steps {
		byJob[list.Steps[i].Job] = append(byJob[list.Steps[i].Job], &list.Steps[i])
	}
	var rows []report.StepRow
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if j.Alloc == nil || j.IsArray() {
			continue // it never had nodes
		}
		if j.Spec.Batches() {
			rows = append(rows, report.StepRow{Job: j, Now: list.Now})
		}
		steps := byJob[j.ID]
		if steps == nil && j.Steps > 0 {
			more, err := c.Steps(ctx, strconv.FormatInt(int64(j.ID), 10))
			if err != nil {
				return nil, err
			}
			for k := range more.Steps {
				steps = append(steps, &more.Steps[k])
			}
		}
		slices.SortFunc(steps, func(a, b *core.Step) int { return int(a.ID - b.ID) })
		for _, s := range steps {
			rows = append(rows, report.StepRow{Job: j, Step: s, Now: list.Now})
		}
	}
	return rows, nil
}

// meta heads every JSON answer of Slurm 22.05.
type meta struct {
	Plugin struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"plugin"`
	Slurm struct {
		Version struct {
			Major int `json:"major"`
			Micro int `json:"micro"`
			Minor int `json:"minor"`
		} `json:"version"`
		Release string `json:"release"`
	} `json:"Slurm"`
}

// PrintJSON prints {"meta":…,"errors":[],KEY:records}.
func PrintJSON(out io.Writer, key string, records any) int {
	var m meta
	m.Plugin.Type, m.Plugin.Name = "openapi/v0.0.38", "Slurm OpenAPI v0.0.38"
	m.Slurm.Version.Major, m.Slurm.Version.Minor, m.Slurm.Version.Micro = 22, 5, 8
	m.Slurm.Release = Version
	head, _ := json.MarshalIndent(m, "  ", "  ")
	body, err := json.MarshalIndent(records, "  ", "  ")
	if err != nil {
		return slurm.ExitError
	}
	text := append([]byte("{\n  \"meta\": "), head...)
	text = append(text, ",\n  \"errors\": [\n  ],\n  \""+key+"\": "...)
	text = append(text, body...)
	text = append(text, "\n}\n"...)
	if _, err := out.Write(plain.JSON(text)); err != nil {
		return slurm.ExitError
	}
	return 0
}
