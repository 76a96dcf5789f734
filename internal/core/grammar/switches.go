package grammar

import "strings"

// ParseSwitches reads --switches: N or N@TIME, the most leaf switches and how long to wait for so few, written as a
// time limit. The wait is in seconds, and Unlimited if none is given.
func ParseSwitches(s string) (count int32, wait int64, err error) {
	t := &text{what: "switch count", want: "a count, or a count and a time to wait such as 1@30", in: s}
	n, err := t.number(1 << 20)
	if err != nil {
		return 0, 0, err
	}
	if n == 0 {
		return 0, 0, t.fail(0, "a count must be 1 or more")
	}
	if t.end() {
		return int32(n), Unlimited, nil
	}
	if !t.take('@') {
		return 0, 0, t.unexpected()
	}
	limit := strings.TrimSpace(s[t.pos:])
	sec, err := ParseTimeSpan(limit)
	if err != nil {
		return 0, 0, t.fail(t.pos, "%q is not a time", limit)
	}
	return int32(n), sec, nil
}
