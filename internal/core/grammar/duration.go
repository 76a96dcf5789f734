package grammar

import (
	"math"
	"strings"
)

const wantDuration = "seconds, or a whole number with s, m, h, d or w, such as 90m or 2h"

// ParseDuration reads a dstack duration and returns seconds: 3600, 1h, 90m, 2d, 1w, with a blank before the
// unit if you like. No fractions, no compounds, lower-case units only. A negative number is accepted
// where it has no unit, as dstack does.
func ParseDuration(s string) (seconds int64, err error) {
	t := &text{what: "duration", want: wantDuration, in: s}
	body := strings.TrimSpace(s)
	if rest, negative := strings.CutPrefix(body, "-"); negative {
		n := text{in: rest}
		v, err := n.number(math.MaxInt32)
		if err != nil || !n.end() {
			return 0, t.fail(0, "%q is not a duration", body)
		}
		return -v, nil
	}
	t.pos = strings.Index(s, body)
	v, err := t.number(math.MaxInt32)
	if err != nil {
		return 0, err
	}
	t.blanks()
	unit := int64(1)
	if !t.end() {
		switch t.peek() {
		case 's':
		case 'm':
			unit = 60
		case 'h':
			unit = 3600
		case 'd':
			unit = 86400
		case 'w':
			unit = 7 * 86400
		default:
			return 0, t.unexpected()
		}
		t.pos++
		t.blanks()
	}
	if !t.end() {
		return 0, t.unexpected()
	}
	return v * unit, nil
}
