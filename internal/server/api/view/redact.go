package view

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// OwnsSecrets reports whether the viewer may read what is private to a job whatever the settings say: its script,
// environment, submit line and crontab. Managers of a project may not: environments hold secrets.
func (v *Visibility) OwnsSecrets(owner core.UserName) bool { return v.Admin || v.isSelf(owner) }

// Show returns a job as the viewer may see it: whole to its owner and to administrators, to others without what is
// private.
func (v *Viewer) Show(j *core.Job) core.Job {
	out := *j
	if !v.OwnsSecrets(j.Spec.User) {
		out.Spec = publicSpec(j.Spec)
	}
	if !v.AllJobs() {
		out.Message = v.Sentence(j.Message, j.ID)
		out.Pushed = v.publicPushed(j.Pushed)
	}
	return out
}

// publicSpec copies a spec without submit line, arguments, environment, script, mail address and crontab.
func publicSpec(s *core.Spec) *core.Spec {
	out := *s
	out.Script, out.Env, out.Args, out.From.Line = core.Hash{}, core.Hash{}, nil, ""
	if s.Extra == nil {
		return &out
	}
	x := *s.Extra
	x.Export, x.MailUser, x.Files = "", "", core.Hash{}
	x.Kept = slurm.PublicOptions(x.Kept)
	if c := x.Container; c != nil {
		box := *c
		box.Entry, box.Mounts = nil, nil
		x.Container = &box
	}
	out.Extra = &x
	return &out
}

// publicPushed takes jobs that the viewer does not see out of how a job was preempted.
func (v *Viewer) publicPushed(p *core.Pushed) *core.Pushed {
	if p == nil {
		return nil
	}
	out := *p
	if _, ok := v.Job(p.For); !ok {
		out.For = 0
	}
	out.Lent = nil
	for _, l := range p.Lent {
		if _, ok := v.Job(l.To); !ok {
			l.To = 0
		}
		out.Lent = append(out.Lent, l)
	}
	return &out
}

// ShowRun returns a run without the name of its configuration's text to those whose it is not.
func (v *Viewer) ShowRun(r *core.Run) core.Run {
	out := *r
	if !v.OwnsSecrets(r.User) {
		out.Config = core.Hash{}
	}
	if out.Service != nil { // what its replicas' jobs are made of is the server's
		svc := out.Service.Clone()
		for i := range svc.Versions {
			svc.Versions[i].Specs, svc.Versions[i].Config = nil, core.Hash{}
			if !v.OwnsSecrets(r.User) {
				svc.Versions[i].Probes = nil
			}
		}
		out.Service = svc
	}
	return out
}
