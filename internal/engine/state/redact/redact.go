// Package redact leaves out of records what is somebody's secret and what nothing is decided by, for recordings.
package redact

import (
	"crypto/sha256"
	"encoding/hex"

	"bireme.dev/bireme/internal/core"
)

// Spec leaves out what a job was called with: submit line, arguments, --export, mail address, commands of a
// container, and kept options that nothing is decided by, such as the text of a crontab.
func Spec(s *core.Spec) *core.Spec {
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

// Jobs leaves the same out of jobs.
func Jobs(jobs []*core.Job) []*core.Job {
	var out []*core.Job
	for _, j := range jobs {
		x := *j
		x.Spec = Spec(j.Spec)
		out = append(out, &x)
	}
	return out
}

// Fleet replaces what is sealed by its digest.
func Fleet(f *core.Fleet) *core.Fleet {
	if f == nil {
		return nil
	}
	x := *f
	x.Env.Sealed = Digest(f.Env.Sealed)
	x.Keys = nil
	for _, k := range f.Keys {
		k.Sealed = Digest(k.Sealed)
		x.Keys = append(x.Keys, k)
	}
	return &x
}

// Digest stands for a sealed text, which is only compared.
func Digest(sealed string) string {
	if sealed == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(sealed))
	return hex.EncodeToString(sum[:8])
}

// Credential is a credential with a digest of what it holds.
func Credential(c *core.Credential) *core.Credential {
	if c == nil {
		return nil
	}
	x := *c
	x.Sealed = Digest(c.Sealed)
	return &x
}

// Credentials is Credential of each.
func Credentials(list []*core.Credential) (out []*core.Credential) {
	for _, c := range list {
		out = append(out, Credential(c))
	}
	return out
}
