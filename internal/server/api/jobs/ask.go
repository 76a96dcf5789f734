package jobs

import (
	"net/http"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/jobsubmit"
)

// ask has the site's plug-ins decide on a submission: they may change it, refuse it, and say something to its
// submitter. What only administrators may ask for they may set; so what the caller asks for is checked before.
func (a *Submissions) ask(r *http.Request, who *call.Caller, s *submission, in *state.Submit) error {
	snap, err := a.Snapshot()
	if err != nil {
		return err
	}
	parts := []*core.Spec{&s.Spec}
	for i := range s.Components {
		parts = append(parts, &s.Components[i])
	}
	var told []string
	for i, spec := range parts {
		if err := checkOwn(who, spec); err != nil {
			return err
		}
		job := &jobsubmit.Submission{
			Spec: spec, User: who.UserRecord.UnixName, Account: string(who.UserRecord.Default), By: who.UID, Now: snap,
		}
		if s.Spec.User != who.User {
			job.User, job.Account = string(s.Spec.User), ""
		}
		owner := [...]any{spec.User, spec.UID, spec.GID, spec.Kind, spec.Runtime, spec.Run}
		if i == 0 {
			job.Script, job.Env = s.script, s.env
		}
		lines, err := a.Plugins.Submit(r.Context(), job)
		if len(parts) > 1 { // as Slurm: by component
			for k := range lines {
				lines[k] = strconv.Itoa(i) + ": " + lines[k]
			}
		}
		if told = append(told, lines...); err != nil {
			return err
		}
		core.Assert(owner == [...]any{spec.User, spec.UID, spec.GID, spec.Kind, spec.Runtime, spec.Run},
			"a plug-in has changed whose job it is")
		if i == 0 {
			s.script, s.env = job.Script, job.Env
		}
	}
	s.told, in.Site = strings.Join(told, "\n"), true
	return a.checkSizes(s)
}

// checkOwn refuses what only an administrator may ask for.
func checkOwn(who *call.Caller, spec *core.Spec) error {
	if who.Admin {
		return nil
	}
	if spec.Nice < 0 {
		spec.Nice = 0
	}
	return speccheck.Ordinary(spec)
}

// askChange has the site's plug-ins decide on a change of a job.
func (a *Control) askChange(r *http.Request, who *call.Caller, j *core.Job, in *client.Update) error {
	if !a.Submissions.Plugins.Active() {
		return nil
	}
	return a.Submissions.Plugins.Modify(r.Context(), &jobsubmit.Change{
		Job: j, Update: in, By: who.UID, Now: a.Engine.Snapshot(),
	})
}
