package state

import (
	"crypto/sha256"
	"encoding/hex"

	"bireme.dev/bireme/internal/core"
)

// Recordings hold nothing that is somebody's secret: scripts, environments, files, configurations and submit lines are
// left out, since nothing is decided by them, and of what is sealed there is a digest, since it is only compared.

// redacted is in as a recording has it; what it changes it copies first.
func redacted(in Input) Input {
	switch in := in.(type) {
	case *Submit:
		return redactSubmit(in)
	case *Try:
		x := *in
		x.Submit = *redactSubmit(&in.Submit)
		return &x
	case *UpdateJob:
		if len(in.Ended) == 0 {
			return in
		}
		x := *in
		x.Ended = redactJobs(in.Ended)
		return &x
	case *PutFleet:
		x := *in
		x.Fleet = redactFleet(in.Fleet)
		return &x
	case *ResealFleet:
		x := *in
		x.Texts = make(map[string]string, len(in.Texts))
		for old, text := range in.Texts {
			x.Texts[digest(old)] = digest(text)
		}
		return &x
	}
	return in
}

func redactSubmit(in *Submit) *Submit {
	x := *in
	x.Script, x.Env, x.Files, x.Config = nil, nil, nil, nil
	x.Spec = redactSpec(in.Spec)
	x.Components = nil
	for _, c := range in.Components {
		x.Components = append(x.Components, redactSpec(c))
	}
	x.Ended = redactJobs(in.Ended)
	return &x
}

// redactSpec leaves out what a job was called with: submit line, arguments, --export, mail address, commands of a
// container, and kept options that nothing is decided by, such as the text of a crontab.
func redactSpec(s *core.Spec) *core.Spec {
	if s == nil {
		return nil
	}
	x := *s
	x.From.Line, x.Args = "", nil
	if s.Extra == nil {
		return &x
	}
	extra := *s.Extra
	extra.Export, extra.MailUser, extra.MailTypes = "", "", ""
	if k := extra.Kept; k != nil {
		acting := *k
		acting.Slurm, acting.Group = nil, ""
		extra.Kept = &acting
	}
	if c := extra.Container; c != nil {
		box := *c
		box.Entry = nil
		extra.Container = &box
	}
	x.Extra = &extra
	return &x
}

func redactJobs(jobs []*core.Job) []*core.Job {
	var out []*core.Job
	for _, j := range jobs {
		x := *j
		x.Spec = redactSpec(j.Spec)
		out = append(out, &x)
	}
	return out
}

func redactFleet(f *core.Fleet) *core.Fleet {
	if f == nil {
		return nil
	}
	x := *f
	x.Env.Sealed = digest(f.Env.Sealed)
	x.Keys = nil
	for _, k := range f.Keys {
		k.Sealed = digest(k.Sealed)
		x.Keys = append(x.Keys, k)
	}
	return &x
}

func digest(sealed string) string {
	if sealed == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(sealed))
	return hex.EncodeToString(sum[:8])
}

// RecordLoad makes the line of a state that is built.
func RecordLoad(cfg Config, img *Image) *Record {
	x := *img
	x.Jobs = redactJobs(img.Jobs)
	x.Fleets = nil
	for _, f := range img.Fleets {
		x.Fleets = append(x.Fleets, redactFleet(f))
	}
	return &Record{Load: &Loaded{Config: cfg, Image: &x}}
}
