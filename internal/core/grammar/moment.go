package grammar

import (
	"math"
	"strings"
	"time"
)

const wantMoment = "now[+N unit], HH:MM[:SS][AM|PM], MMDD[YY], MM/DD[/YY], YYYY-MM-DD[THH:MM[:SS]], " +
	"today, tomorrow, midnight, noon, elevenses, fika or teatime"

// Sense says which way an incomplete moment leans.
type Sense uint8

const (
	Upcoming Sense = iota // a time of day that is over means tomorrow, a day and month that are over next year
	Recent                // they mean today and this year, as sacct -S wants
)

// ParseMoment reads a moment as --begin and --deadline do (Upcoming) or as sacct -S and -E do (Recent),
// relative to now and in its time zone. Parts may be strung together in any order (tomorrow18:00);
// the last of a kind wins. A date without a time is its first second. The Pos of an *Error is what Slurm
// prints as (pos=N).
func ParseMoment(s string, now time.Time, sense Sense) (time.Time, error) {
	m := moment{text: text{what: "time", want: wantMoment, in: s}, now: now}
	m.blanks()
	if m.takeFold("now") {
		return m.relative()
	}
	for m.blanks(); !m.end(); m.blanks() {
		if err := m.part(); err != nil {
			return time.Time{}, err
		}
	}
	if !m.hasDate && !m.hasClock {
		return time.Time{}, m.unexpected()
	}
	return m.resolve(sense), nil
}

type moment struct {
	text
	now               time.Time
	hasDate, hasYear  bool
	year, month, day  int
	hasClock          bool
	hour, minute, sec int
}

func (m *moment) date(t time.Time) {
	m.hasDate, m.hasYear = true, true
	m.year, m.day = t.Year(), t.Day()
	m.month = int(t.Month())
}

func (m *moment) clock(hour, minute, sec int) {
	m.hasClock = true
	m.hour, m.minute, m.sec = hour, minute, sec
}

// relative reads what follows "now": nothing, or a signed count of some unit.
func (m *moment) relative() (time.Time, error) {
	m.blanks()
	if m.end() {
		return m.now, nil
	}
	start, sign := m.pos, int64(1)
	switch {
	case m.take('+'):
	case m.take('-'):
		sign = -1
	default:
		return time.Time{}, m.unexpected()
	}
	m.blanks()
	if m.digitCount() == 0 {
		return time.Time{}, m.fail(start, "expected a number after the sign")
	}
	n, err := m.number(math.MaxInt32)
	if err != nil {
		return time.Time{}, err
	}
	m.blanks()
	unit, err := m.unit()
	if err != nil {
		return time.Time{}, err
	}
	m.blanks()
	if !m.end() {
		return time.Time{}, m.unexpected()
	}
	if n > math.MaxInt64/int64(unit) {
		return time.Time{}, m.fail(start, "more than 292 years away")
	}
	return m.now.Add(time.Duration(sign * n * int64(unit))), nil
}

// unit reads a unit's name or any beginning of it; none means seconds.
func (m *moment) unit() (time.Duration, error) {
	start := m.pos
	for !m.end() && isLetter(m.peek()) {
		m.pos++
	}
	word := strings.ToLower(m.in[start:m.pos])
	if word == "" {
		return time.Second, nil
	}
	for _, u := range [...]struct {
		name string
		d    time.Duration
	}{
		{"seconds", time.Second},
		{"minutes", time.Minute},
		{"hours", time.Hour},
		{"days", 24 * time.Hour},
		{"weeks", 7 * 24 * time.Hour},
	} {
		if strings.HasPrefix(u.name, word) {
			return u.d, nil
		}
		if one := strings.TrimSuffix(u.name, "s"); strings.HasPrefix(word, one) {
			return 0, m.fail(start+len(one), "unexpected %q", word[len(one)])
		}
	}
	return 0, m.fail(start, "unknown unit %q", word)
}

// part reads one word, date or time of day.
func (m *moment) part() error {
	switch {
	case m.takeFold("today"):
		m.date(m.now)
	case m.takeFold("tomorrow"):
		m.date(time.Date(m.now.Year(), m.now.Month(), m.now.Day()+1, 0, 0, 0, 0, m.now.Location()))
	case m.takeFold("midnight"):
		m.clock(0, 0, 0)
	case m.takeFold("noon"):
		m.clock(12, 0, 0)
	case m.takeFold("elevenses"):
		m.clock(11, 0, 0)
	case m.takeFold("fika"):
		m.clock(15, 0, 0)
	case m.takeFold("teatime"):
		m.clock(16, 0, 0)
	default:
		return m.figures()
	}
	return nil
}

// figures reads what begins with digits; what follows them tells what they are.
func (m *moment) figures() error {
	n := m.digitCount()
	var next byte
	if m.pos+n < len(m.in) {
		next = m.in[m.pos+n]
	}
	switch {
	case n == 0:
		return m.unexpected()
	case n == 4 && next == '-':
		return m.isoDate()
	case n <= 2 && next == ':':
		return m.timeOfDay()
	case n <= 2 && (next == '/' || next == '.'):
		return m.slashDate(next)
	case n == 4 || n == 6:
		return m.packedDate(n)
	}
	if n <= 2 && next != 0 {
		m.pos += n
		return m.unexpected()
	}
	return m.fail(m.pos, "%q is neither a time nor a date", m.in[m.pos:m.pos+n])
}

// field reads a number of exactly width digits (1 to 2 when width is 0) from lo to hi.
func (m *moment) field(width, lo, hi int, what string) (int, error) {
	start, n := m.pos, m.digitCount()
	if width == 0 {
		n = min(n, 2)
	} else if n < width {
		m.pos += n
		return 0, m.unexpected()
	} else {
		n = width
	}
	if n == 0 {
		return 0, m.unexpected()
	}
	v := 0
	for range n {
		v = v*10 + int(m.in[m.pos]-'0')
		m.pos++
	}
	if v < lo || v > hi {
		return 0, m.fail(start, "the %s must be %d to %d", what, lo, hi)
	}
	return v, nil
}

func (m *moment) timeOfDay() error {
	hour, err := m.field(0, 0, 23, "hour")
	if err != nil {
		return err
	}
	if !m.take(':') {
		return m.unexpected()
	}
	minute, err := m.field(2, 0, 59, "minute")
	if err != nil {
		return err
	}
	sec := 0
	if m.take(':') {
		if sec, err = m.field(2, 0, 59, "second"); err != nil {
			return err
		}
	}
	m.blanks()
	start := m.pos
	am, pm := m.takeFold("am"), false
	if !am {
		pm = m.takeFold("pm")
	}
	if am || pm {
		if hour < 1 || hour > 12 {
			return m.fail(start, "AM and PM need an hour from 1 to 12")
		}
		hour %= 12
		if pm {
			hour += 12
		}
	}
	m.clock(hour, minute, sec)
	return nil
}

func (m *moment) isoDate() error {
	year, err := m.field(4, 1970, 9999, "year")
	if err != nil {
		return err
	}
	start := m.pos + 1
	month, day, err := m.monthDay('-', 2)
	if err != nil {
		return err
	}
	if err := m.setDate(start, year, month, day); err != nil {
		return err
	}
	m.hasYear = true
	if !m.end() && m.peek()|0x20 == 't' && !m.startsWord() {
		m.pos++
		if !m.end() {
			return m.timeOfDay()
		}
	}
	return nil
}

// startsWord tells a T before a time from the first letter of teatime, today and tomorrow.
func (m *moment) startsWord() bool {
	return m.pos+1 < len(m.in) && isLetter(m.in[m.pos+1])
}

// monthDay reads sep MM sep DD (the first sep is optional: it may be taken already).
func (m *moment) monthDay(sep byte, width int) (month, day int, err error) {
	m.take(sep)
	if month, err = m.field(width, 1, 12, "month"); err != nil {
		return 0, 0, err
	}
	if !m.take(sep) {
		return 0, 0, m.unexpected()
	}
	day, err = m.field(width, 1, 31, "day")
	return month, day, err
}

func (m *moment) slashDate(sep byte) error {
	start := m.pos
	month, day, err := m.monthDay(sep, 0)
	if err != nil {
		return err
	}
	year := 0
	if m.take(sep) {
		if year, err = m.field(2, 0, 99, "year"); err != nil {
			return err
		}
		year += 2000
	}
	if err := m.setDate(start, year, month, day); err != nil {
		return err
	}
	if m.take('-') {
		return m.timeOfDay()
	}
	return nil
}

// packedDate reads MMDD and MMDDYY.
func (m *moment) packedDate(n int) error {
	start := m.pos
	month, err := m.field(2, 1, 12, "month")
	if err != nil {
		return err
	}
	day, err := m.field(2, 1, 31, "day")
	if err != nil {
		return err
	}
	year := 0
	if n == 6 {
		if year, err = m.field(2, 0, 99, "year"); err != nil {
			return err
		}
		year += 2000
	}
	return m.setDate(start, year, month, day)
}

// setDate keeps the date; year 0 is one that was not given.
func (m *moment) setDate(start, year, month, day int) error {
	inYear := year
	if year == 0 {
		inYear = 2000 // a leap year: 29 February may be meant for the next one
	}
	if last := time.Date(inYear, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day(); day > last {
		return m.fail(start, "month %d has %d days", month, last)
	}
	m.hasDate, m.hasYear = true, year != 0
	m.year, m.month, m.day = year, month, day
	return nil
}

func (m *moment) resolve(sense Sense) time.Time {
	at := func(year, month, day int) time.Time {
		return time.Date(year, time.Month(month), day, m.hour, m.minute, m.sec, 0, m.now.Location())
	}
	y, mon, d := m.now.Date()
	switch {
	case !m.hasDate:
		t := at(y, int(mon), d)
		if sense == Upcoming && t.Before(m.now) {
			t = at(y, int(mon), d+1)
		}
		return t
	case !m.hasYear:
		// Only 29 February needs more than two tries: there are up to eight years between two.
		for {
			t := at(y, m.month, m.day)
			exists := t.Day() == m.day
			switch {
			case sense == Recent && exists:
				return t
			case sense == Recent:
				y--
			case exists && !t.Before(m.now):
				return t
			default:
				y++
			}
		}
	}
	return at(m.year, m.month, m.day)
}
