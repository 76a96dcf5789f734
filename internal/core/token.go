package core

import (
	"slices"
	"strings"
)

// Scope is a right that a token carries. Those of a token are the most its bearer may do; what the token's user may not
// do, the token may not either.
type Scope string

// The scopes. ScopeAdmin includes ScopeSubmit, which includes ScopeRead.
const (
	ScopeRead    Scope = "read"    // look at what the user may see
	ScopeSubmit  Scope = "submit"  // submit and steer the user's own jobs, steps and runs
	ScopeAdmin   Scope = "admin"   // the rights the user has as an administrator, or as a manager of projects
	ScopeProject Scope = "project" // limits the others to the jobs and runs of one project
)

// Scopes lists them all.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeSubmit, ScopeAdmin, ScopeProject} }

// Bounds of the text in a token, which stays in memory for the token's life.
const (
	MaxTokenName = 64
	MaxTokenNote = 256
)

// Has reports whether the token gives a right. One without scopes gives all.
func (t *Token) Has(s Scope) bool {
	if len(t.Scopes) == 0 {
		return s != ScopeProject
	}
	if slices.Contains(t.Scopes, s) {
		return true
	}
	switch s {
	case ScopeRead:
		return slices.Contains(t.Scopes, ScopeSubmit) || slices.Contains(t.Scopes, ScopeAdmin)
	case ScopeSubmit:
		return slices.Contains(t.Scopes, ScopeAdmin)
	default:
		return false
	}
}

// Exceeds names the first right of t that o has not, or "".
func (t *Token) Exceeds(o *Token) Scope {
	for _, s := range []Scope{ScopeAdmin, ScopeSubmit, ScopeRead} {
		if t.Has(s) && !o.Has(s) {
			return s
		}
	}
	if o.Project != "" && t.Project != o.Project {
		return ScopeProject
	}
	return ""
}

// Outlives reports whether t is good for longer than o.
func (t *Token) Outlives(o *Token) bool {
	return o.Expires != 0 && (t.Expires == 0 || t.Expires > o.Expires)
}

// DeadSince is when the token ceased to work, or will: when it was revoked or expires; 0: never. Tokens revoked by old
// servers do not tell when, and count from when they were made.
func (t *Token) DeadSince() Time {
	end := t.Expires
	if t.Revoked {
		at := max(t.Ended, t.Created)
		if end == 0 || at < end {
			end = at
		}
	}
	return end
}

// Dead reports whether the token works no more.
func (t *Token) Dead(now Time) bool {
	end := t.DeadSince()
	return t.Revoked || end != 0 && end <= now
}

// ScopeText is the token's scopes for people.
func (t *Token) ScopeText() string {
	if len(t.Scopes) == 0 {
		return "all"
	}
	words := make([]string, len(t.Scopes))
	for i, s := range t.Scopes {
		if words[i] = string(s); s == ScopeProject {
			words[i] += "=" + string(t.Project)
		}
	}
	return strings.Join(words, ",")
}
