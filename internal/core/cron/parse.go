package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// Dialect is whose rules a text follows.
type Dialect uint8

const (
	Crontab Dialect = iota // scrontab and crontab(5)
	Monday                 // dstack: weekdays count from Monday, no @words
)

// Error is a fault in a schedule: which field, at which byte, what is wrong.
type Error struct {
	Text  string
	Field string
	Pos   int
	Msg   string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("invalid schedule %q: %s", e.Text, e.Msg)
	}
	return fmt.Sprintf("invalid schedule %q: %s at position %d: %s", e.Text, e.Field, e.Pos, e.Msg)
}

// Schedule is a parsed text. The zero Schedule is never due.
type Schedule struct {
	minute, hour, day, month, weekday uint64 // bit n: n fits; weekday 0 is Sunday
	lastDay                           bool   // the last day of the month fits too
	anyDay, anyWeekday, anyHour       bool   // the field began with *
	dialect                           Dialect
	text                              string
}

// String returns the text as it was parsed.
func (s Schedule) String() string { return s.text }

// words are the whole schedules Slurm's scrontab knows by name.
var words = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *", "@elevenses": "0 11 * * *",
	"@fika": "0 15 * * *", "@noon": "0 12 * * *", "@teatime": "0 16 * * *",
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// Parse reads a schedule: minute, hour, day of month, month and weekday, each *, a number, a name, a
// range, any of the first and last with /step, or a comma list of them.
func Parse(text string, dialect Dialect) (Schedule, error) {
	s := Schedule{dialect: dialect, text: text}
	line := text
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "@") && dialect == Crontab {
		line = words[strings.ToLower(trimmed)]
		if line == "" {
			return Schedule{}, &Error{
				Text: text, Msg: "unknown word; want @hourly, @daily, @weekly, @monthly, @yearly, @noon, @fika, " +
					"@teatime or @elevenses",
			}
		}
	}
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return Schedule{}, &Error{
			Text: text, Msg: fmt.Sprintf("%d fields; want 5: minute, hour, day of month, month, weekday", len(fields)),
		}
	}
	days := []string{"last"} // kept as day 32
	if dialect != Monday {
		days = nil
	}
	pos := 0
	for i, f := range [...]struct {
		what   string
		lo, hi int
		names  []string
		first  int // number of names[0]
		bits   *uint64
		any    *bool
	}{
		{"minute", 0, 59, nil, 0, &s.minute, new(bool)},
		{"hour", 0, 23, nil, 0, &s.hour, &s.anyHour},
		{"day of month", 1, 31, days, 32, &s.day, &s.anyDay},
		{"month", 1, 12, months, 1, &s.month, new(bool)},
		{"weekday", 0, 7, weekdays, 0, &s.weekday, &s.anyWeekday},
	} {
		pos += strings.Index(line[pos:], fields[i])
		p := parser{text: text, what: f.what, lo: f.lo, hi: f.hi, names: f.names, first: f.first, pos: min(pos, len(text))}
		p.open = dialect == Monday
		if f.what == "weekday" && dialect == Monday {
			p.hi, p.shift = 6, 1 // their 0 is our 1
		}
		bits, err := p.field(fields[i])
		if err != nil {
			return Schedule{}, err
		}
		*f.bits, *f.any = bits, fields[i][0] == '*'
		pos += len(fields[i])
	}
	s.lastDay = s.day&(1<<32) != 0
	s.weekday |= s.weekday >> 7 & 1 // 7 is Sunday too
	return s, nil
}

type parser struct {
	text, what string
	lo, hi     int
	names      []string
	first      int
	shift      int // added to a weekday given as a number
	pos        int
	open       bool // a step without an end goes on to the last value
}

func (p *parser) fail(format string, args ...any) error {
	return &Error{Text: p.text, Field: p.what, Pos: p.pos, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) field(f string) (bits uint64, err error) {
	for _, item := range strings.Split(f, ",") {
		b, err := p.item(item)
		if err != nil {
			return 0, err
		}
		bits |= b
		p.pos += len(item) + 1
	}
	return bits, nil
}

func (p *parser) item(item string) (uint64, error) {
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		n, err := strconv.ParseUint(stepText, 10, 8)
		if err != nil || n == 0 {
			return 0, p.fail("step %q; want 1 or more", stepText)
		}
		step = int(n)
	}
	lo, hi := p.lo, p.hi
	if span == "*" {
		if p.what == "weekday" && p.hi == 7 {
			hi = 6 // 7 is Sunday again; with a step it would count twice
		}
		return p.bits(lo, hi, step), nil
	}
	from, to, ranged := strings.Cut(span, "-")
	lo, err := p.value(from)
	if err != nil {
		return 0, err
	}
	if lo == 32 && (ranged || stepped) {
		return 0, p.fail("%q stands alone", from)
	}
	hi = lo
	switch {
	case ranged:
		if hi, err = p.value(to); err != nil {
			return 0, err
		}
		if hi == 0 && lo > 0 && p.what == "weekday" && p.shift == 0 {
			hi = 7 // fri-sun
		}
		if hi < lo {
			return 0, p.fail("range %q runs backwards", span)
		}
	case stepped && p.open:
		hi = p.hi
	case stepped:
		return 0, p.fail("a step needs a range or *, such as %s-%d/%d", from, p.hi, step)
	}
	return p.bits(lo, hi, step), nil
}

// bits sets every step-th bit of lo..hi, as numbers of this package (weekday 0 is Sunday).
func (p *parser) bits(lo, hi, step int) (b uint64) {
	for v := lo; v <= hi; v += step {
		b |= 1 << (v + p.shift)
	}
	return b
}

// value reads a number or a name, as the dialect counts.
func (p *parser) value(s string) (int, error) {
	for i, name := range p.names {
		if strings.EqualFold(s, name) {
			v := p.first + i - p.shift
			if v < p.lo { // Sunday where weeks begin on Monday
				v += 7
			}
			return v, nil
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || int(n) < p.lo || int(n) > p.hi {
		return 0, p.fail("%q; want %d to %d", s, p.lo, p.hi)
	}
	return int(n), nil
}
