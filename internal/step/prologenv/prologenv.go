// Package prologenv reads what a task prolog writes and changes the environment of its task accordingly.
package prologenv

import "strings"

// Follow does what a task prolog wrote: export NAME=value, unset NAME, print text. Other lines mean nothing. The last
// word on a name counts, so the environment is gone through once: a prolog of the user's own writes as many lines as it
// likes. It returns the new environment and the text to print.
func Follow(env []string, out []byte) (changed []string, prints string) {
	type change struct {
		value   string // NAME=value
		set     bool
		cleared bool // was unset at some point: what was there before goes
	}
	changes := map[string]*change{}
	var order []*change
	about := func(name string) *change {
		c := changes[name]
		if c == nil {
			c = &change{}
			changes[name] = c
			order = append(order, c)
		}
		return c
	}
	var text strings.Builder
	for line := range strings.Lines(string(out)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch word {
		case "export":
			if name, _, ok := strings.Cut(rest, "="); ok && name != "" && !strings.ContainsAny(name, " \t") {
				c := about(name)
				c.value, c.set = rest, true
			}
		case "unset":
			c := about(rest)
			c.set, c.cleared = false, true
		case "print":
			text.WriteString(rest + "\n")
		}
	}
	if len(order) == 0 {
		return env, text.String()
	}
	changed = make([]string, 0, len(env)+len(order))
	for _, e := range env {
		c := changes[e[:max(0, strings.IndexByte(e, '='))]]
		switch {
		case c == nil || !c.set && !c.cleared: // not spoken of, or replaced where it stood first
			changed = append(changed, e)
		case c.set && !c.cleared:
			changed = append(changed, c.value)
			c.set = false
		}
	}
	for _, c := range order {
		if c.set {
			changed = append(changed, c.value)
		}
	}
	return changed, text.String()
}
