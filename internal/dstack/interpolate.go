package dstack

import (
	"fmt"
	"strings"
)

// interpolate replaces ${{ ns.name }} by vars and $$ by a dollar. Other dollars stay: they are the shell's.
func interpolate(s string, vars map[string]string) (string, error) {
	if !strings.Contains(s, "$$") && !strings.Contains(s, "${{") {
		return s, nil
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '$')
		if at < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:at])
		s = s[at:]
		switch {
		case strings.HasPrefix(s, "$$"):
			b.WriteByte('$')
			s = s[2:]
		case strings.HasPrefix(s, "${{"):
			name, rest, ok := strings.Cut(s[3:], "}}")
			if !ok {
				return "", fmt.Errorf("%q is not closed by }}", clip(s))
			}
			name = strings.TrimSpace(name)
			value, known := vars[name]
			if !known {
				return "", unknownVariable(name)
			}
			b.WriteString(value)
			s = rest
		default:
			b.WriteByte('$')
			s = s[1:]
		}
	}
}

func unknownVariable(name string) error {
	switch ns, key, _ := strings.Cut(name, "."); {
	case ns == "env":
		return fmt.Errorf("${{ %s }} is known in registry_auth where env names %s (a bare name takes your value) or "+
			"-e gives it; commands write $%[2]s", clip(name), clip(key))
	case ns == "secrets":
		return fmt.Errorf("${{ %s }}: secrets are not available yet (planned for 0.5); pass the value by a bare name "+
			"in env or by -e", clip(name))
	case strings.HasPrefix(name, "groups["):
		return fmt.Errorf("${{ %s }}: node groups are planned for 0.5", clip(name))
	}
	return fmt.Errorf("${{ %s }}: unknown variable; available: ${{ run.args }} in commands; write $$ for a dollar sign",
		clip(name))
}

// shellJoin quotes words so that a shell reads them back as they were.
func shellJoin(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return strings.Join(quoted, " ")
}

func shellQuote(w string) string {
	plain := w != "" && strings.IndexFunc(w, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("@%+=:,./-_", r))
	}) < 0
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
}
