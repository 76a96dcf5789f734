package sacctmgr

import "strings"

// line is one of a flat file: Kind - 'name':Key=Value:…
type line struct {
	kind, name string
	set        []item
	text       string
}

// splitFlat splits at colons outside of quotes.
func splitFlat(text string) (parts []string) {
	quoted, from := false, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ':' && !quoted:
			parts = append(parts, text[from:i])
			from = i + 1
		case text[i] == '\'' || text[i] == '"':
			quoted = !quoted
		}
	}
	return parts
}

// parseFlat reads a line; ok is false for one that is none.
func parseFlat(text string) (l line, ok bool) {
	parts := splitFlat(text)
	kind, name, ok := strings.Cut(parts[0], " - ")
	if !ok {
		return l, false
	}
	l = line{text: text, kind: strings.ToLower(strings.TrimSpace(kind)), name: strings.Trim(strings.TrimSpace(name), `'"`)}
	for _, p := range parts[1:] {
		it := parseItem(p)
		if key, _ := match(associationKeys, it.key); key == "qos" { // the difference to what is inherited
			for _, q := range list(it.value) {
				one := item{key: it.key, op: '=', value: q, raw: p}
				if q[0] == '+' || q[0] == '-' {
					one.op, one.value = q[0], q[1:]
				}
				l.set = append(l.set, one)
			}
			continue
		}
		l.set = append(l.set, it)
	}
	return l, l.name != ""
}
