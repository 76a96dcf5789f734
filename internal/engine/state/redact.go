package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/redact"
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
		x.Ended = redact.Jobs(in.Ended)
		return &x
	case *Requeue:
		if in.Ended == nil {
			return in
		}
		x := *in
		x.Ended = redact.Jobs([]*core.Job{in.Ended})[0]
		return &x
	case *PutFleet:
		x := *in
		x.Fleet = redact.Fleet(in.Fleet)
		return &x
	case *PutCredential:
		x := *in
		x.Credential = redact.Credential(in.Credential)
		return &x
	case *ResealCredential:
		x := *in
		x.Old, x.New = redact.Digest(in.Old), redact.Digest(in.New)
		return &x
	case *ResealFleet:
		x := *in
		x.Texts = make(map[string]string, len(in.Texts))
		for old, text := range in.Texts {
			x.Texts[redact.Digest(old)] = redact.Digest(text)
		}
		return &x
	}
	return in
}

func redactSubmit(in *Submit) *Submit {
	x := *in
	x.Script, x.Env, x.Files, x.Config = nil, nil, nil, nil
	x.Spec = redact.Spec(in.Spec)
	x.Components = nil
	for _, c := range in.Components {
		x.Components = append(x.Components, redact.Spec(c))
	}
	x.Ended = redact.Jobs(in.Ended)
	return &x
}

// RecordLoad makes the line of a state that is built.
func RecordLoad(cfg Config, img *Image) *Record {
	x := *img
	x.Jobs = redact.Jobs(img.Jobs)
	x.Fleets = nil
	for _, f := range img.Fleets {
		x.Fleets = append(x.Fleets, redact.Fleet(f))
	}
	x.Credentials = redact.Credentials(img.Credentials)
	return &Record{Load: &Loaded{Config: cfg, Image: &x}}
}
