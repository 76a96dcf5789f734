package core

import (
	"encoding/json"
	"maps"
)

// KeptOptions are options of a submission that have no place in Spec, Shape and Extra. Those that act have a field;
// the others belong to the front end that keeps them. The stored form, and that of the API, is one object of texts.
type KeptOptions struct {
	Schedule string // crontab schedule by which the job comes again; empty: once
	NoKill   *bool  // it goes on when one of its nodes fails; nil: nobody said
	// KillInvalid ends the job when what it waits for can never happen; nil: nobody said.
	KillInvalid *bool
	Group       string            // name or number of the group it runs with, chosen by an administrator
	Slurm       map[string]string // those of Slurm's commands that only internal/slurm reads, by option name
}

// The names under which options that act are stored.
const (
	keptSchedule    = "cron"
	keptNoKill      = "no-kill"
	keptKillInvalid = "kill-on-invalid-dep"
	keptGroup       = "gid"
)

// Texts gives all options in their stored form.
func (k *KeptOptions) Texts() map[string]string {
	if k == nil {
		return nil
	}
	out := make(map[string]string, len(k.Slurm)+4)
	maps.Copy(out, k.Slurm)
	if k.Schedule != "" {
		out[keptSchedule] = k.Schedule
	}
	if k.Group != "" {
		out[keptGroup] = k.Group
	}
	if v := k.NoKill; v != nil {
		if out[keptNoKill] = ""; !*v {
			out[keptNoKill] = "off"
		}
	}
	if v := k.KillInvalid; v != nil {
		if out[keptKillInvalid] = "no"; *v {
			out[keptKillInvalid] = "yes"
		}
	}
	return out
}

// MarshalJSON writes the stored form.
func (k *KeptOptions) MarshalJSON() ([]byte, error) { return json.Marshal(k.Texts()) }

// UnmarshalJSON reads the stored form.
func (k *KeptOptions) UnmarshalJSON(b []byte) error {
	var texts map[string]string
	if err := json.Unmarshal(b, &texts); err != nil {
		return err
	}
	*k = KeptOptions{Schedule: texts[keptSchedule], Group: texts[keptGroup]}
	if v, ok := texts[keptNoKill]; ok {
		on := v != "off"
		k.NoKill = &on
	}
	if v, ok := texts[keptKillInvalid]; ok {
		on := v == "yes"
		k.KillInvalid = &on
	}
	for _, name := range []string{keptSchedule, keptGroup, keptNoKill, keptKillInvalid} {
		delete(texts, name)
	}
	if len(texts) > 0 {
		k.Slurm = texts
	}
	return nil
}

// Keep returns the options of x to write to.
func (x *Extra) Keep() *KeptOptions {
	if x.Kept == nil {
		x.Kept = &KeptOptions{}
	}
	return x.Kept
}

// SlurmOption is an option that Slurm's front end keeps; empty: it was not given.
func (x *Extra) SlurmOption(name string) string {
	if x.Kept == nil {
		return ""
	}
	return x.Kept.Slurm[name]
}

// Schedule is the crontab schedule by which a job comes again; empty: once.
func (s *Spec) Schedule() string {
	if k := s.More().Kept; k != nil {
		return k.Schedule
	}
	return ""
}

// Recurs reports that a job comes again by the clock: by its line of a crontab, or as its run's rules say.
func (s *Spec) Recurs() bool {
	x := s.Extra
	return x != nil && (x.Kept != nil && x.Kept.Schedule != "" || x.Rules != nil && len(x.Rules.Schedule) > 0)
}

// NoKill reports that a job goes on when one of its nodes fails.
func (s *Spec) NoKill() bool {
	k := s.More().Kept
	return k != nil && k.NoKill != nil && *k.NoKill
}

// KillInvalid reports that a job ends when what it waits for can never happen; unsaid is for those that say nothing.
func (s *Spec) KillInvalid(unsaid bool) bool {
	if k := s.More().Kept; k != nil && k.KillInvalid != nil {
		return *k.KillInvalid
	}
	return unsaid
}
