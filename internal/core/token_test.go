package core

import "testing"

func TestScopesIncludeThoseBelow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scopes []Scope
		has    []Scope
		text   string
	}{
		"a token of an older server": {nil, []Scope{ScopeRead, ScopeSubmit, ScopeAdmin}, "all"},
		"read":                       {[]Scope{ScopeRead}, []Scope{ScopeRead}, "read"},
		"submit":                     {[]Scope{ScopeSubmit}, []Scope{ScopeRead, ScopeSubmit}, "submit"},
		"admin":                      {[]Scope{ScopeAdmin}, []Scope{ScopeRead, ScopeSubmit, ScopeAdmin}, "admin"},
		"project":                    {[]Scope{ScopeRead, ScopeProject}, []Scope{ScopeRead, ScopeProject}, "read,project=p"},
	} {
		k := &Token{Scopes: tc.scopes, Project: "p"}
		has := map[Scope]bool{}
		for _, s := range tc.has {
			has[s] = true
		}
		for _, s := range Scopes() {
			if k.Has(s) != has[s] {
				t.Errorf("%s: has %s: %v", name, s, k.Has(s))
			}
		}
		if k.ScopeText() != tc.text {
			t.Errorf("%s: %q", name, k.ScopeText())
		}
	}
	old, short := &Token{}, &Token{Expires: 5, Scopes: []Scope{ScopeRead}}
	if old.Exceeds(short) != ScopeAdmin || short.Exceeds(old) != "" || !old.Outlives(short) || short.Outlives(old) {
		t.Error("what may do less is taken for what may do more")
	}
	if old.Dead(1<<60) || !short.Dead(5) || short.Dead(4) || (&Token{Revoked: true, Created: 3}).DeadSince() != 3 {
		t.Error("which tokens work is not told")
	}
}

func TestPlainTextIsALine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"job 12": "job 12", "a\nb": `a\nb`, "\x1b[2J": `\x1b[2J`, `a\nb`: `a\\nb`, "\u202eabc": `\u202eabc`,
		"\xff": `\ufffd`, "für": "für",
	} {
		if got := Plain(in, 256); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
