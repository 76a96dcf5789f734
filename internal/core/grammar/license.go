package grammar

import "strings"

// License is a count of one license.
type License struct {
	Name  string // with its server, if one was named: "matlab@lmgr"
	Count int64
}

const wantLicenses = "name[@server][:count], joined by ',' (all of them) or '|' (one of them), such as matlab:2,ansys"

// ParseLicenses reads --licenses. A missing count is 1; counts of one name are added up, unless any is set: then one of
// the list is enough.
func ParseLicenses(s string) (list []License, any bool, err error) {
	t := &text{what: "license", want: wantLicenses, in: s}
	sep := ","
	if any = strings.Contains(s, "|"); any {
		if strings.Contains(s, ",") {
			return nil, false, t.fail(strings.IndexAny(s, ",|"), "',' and '|' cannot be mixed")
		}
		sep = "|"
	}
	pos := 0
next:
	for item := range strings.SplitSeq(s, sep) {
		name, count, counted := cutAny(item, ":=")
		bare, server, remote := strings.Cut(name, "@")
		err := t.word(bare, pos)
		if err == nil && remote {
			err = t.word(server, pos+len(bare)+1)
		}
		if err != nil {
			return nil, false, err
		}
		l := License{Name: name, Count: 1}
		if counted {
			c := &text{what: t.what, want: t.want, in: s, pos: pos + len(name) + 1}
			if l.Count, err = c.number(1 << 31); err != nil {
				return nil, false, err
			}
			if c.pos != pos+len(item) || l.Count == 0 {
				return nil, false, c.fail(pos+len(name)+1, "%q is not a count", count)
			}
		}
		pos += len(item) + 1
		for i := range list {
			if list[i].Name == l.Name && !any {
				list[i].Count += l.Count
				continue next
			}
		}
		list = append(list, l)
	}
	return list, any, nil
}
