package admin

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
)

// lifeFlags say how long a token is good.
type lifeFlags struct {
	length  time.Duration
	expires string
	set     func(name string) bool
}

func (l *lifeFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.DurationVar(&l.length, "ttl", 0, "how long it is good, such as 24h; without it the server's default")
	f.StringVar(&l.expires, "expires", "", "the same as a `TIME`: 30d, 12h, 2027-01-31, 2027-01-31T12:00:00, never")
	l.set = f.Changed
}

// ttl is what was said, in seconds from now on; 0: nothing.
func (l *lifeFlags) ttl(now time.Time) (core.Seconds, error) {
	if l.set("ttl") && l.set("expires") {
		return 0, app.Usagef("--ttl and --expires cannot be used together")
	}
	if l.length < 0 || l.length%time.Second != 0 {
		return 0, app.Usagef("--ttl %s: expected whole seconds, 0 or more", l.length)
	}
	if !l.set("expires") {
		return core.Seconds(l.length / time.Second), nil
	}
	if l.expires == "never" {
		return core.Forever, nil
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04:05", time.RFC3339} {
		at, err := time.ParseInLocation(layout, l.expires, time.Local)
		if err != nil {
			continue
		}
		left := core.Seconds(at.Sub(now) / time.Second)
		if left <= 0 {
			return 0, app.Usagef("--expires %s: must be in the future", l.expires)
		}
		return left, nil
	}
	s, err := lengthOf("expires", l.expires)
	if err != nil || s > 0 {
		return s, err
	}
	return 0, app.Usagef("--expires %s: must be in the future", l.expires)
}

// Bounds of the days of a duration.
const (
	dayBits = 15
	maxDays = 1<<dayBits - 1
)

// lengthOf reads an option's duration in whole seconds: 90d, 36h, 1h30m.
func lengthOf(option, text string) (core.Seconds, error) {
	if text == "" {
		return 0, nil
	}
	var sum time.Duration
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "", text
	}
	if found {
		n, err := strconv.ParseUint(days, 10, dayBits)
		if errors.Is(err, strconv.ErrRange) {
			return 0, app.Usagef("--%s %q: too long; the maximum is %dd", option, text, maxDays)
		}
		if err != nil {
			return 0, app.Usagef("--%s %q: expected a duration such as 12h or 30d", option, text)
		}
		sum = time.Duration(n) * 24 * time.Hour
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d%time.Second != 0 {
			return 0, app.Usagef("--%s %q: expected a duration such as 12h or 30d", option, text)
		}
		sum += d
	}
	return core.Seconds(sum / time.Second), nil
}

// parseScopes reads --scope; naming a project adds the scope of that name.
func parseScopes(words []string, project bool) ([]core.Scope, error) {
	if len(words) == 0 { // the server takes no scopes for all of them
		return nil, app.Usagef("--scope %q: expected read, submit, admin or project", "")
	}
	var out []core.Scope
	for _, w := range words {
		s := core.Scope(strings.ToLower(strings.TrimSpace(w)))
		if !slices.Contains(core.Scopes(), s) {
			return nil, app.Usagef("--scope %q: expected read, submit, admin or project", w)
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	has := slices.Contains(out, core.ScopeProject)
	switch {
	case has && !project:
		return nil, app.Usagef("--scope project: also needs --project PROJECT")
	case project && !has:
		out = append(out, core.ScopeProject)
	}
	if project && slices.Contains(out, core.ScopeAdmin) {
		return nil, app.Usagef("--scope admin: not allowed for a token that is limited to one project (--project)")
	}
	if len(out) == 1 && project {
		return nil, app.Usagef("--scope project: only limits other scopes; add read or submit")
	}
	return out, nil
}
