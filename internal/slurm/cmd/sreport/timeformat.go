package sreport

import (
	"fmt"
	"strings"
)

// timeFormat is how amounts of time are written: in a unit, as a part of all, or both.
type timeFormat struct {
	unit    float64 // seconds; 0: percent alone
	name    string
	percent bool
}

var (
	minutes     = timeFormat{60, "Minutes", false}
	timeFormats = []struct {
		word  string
		least int
		as    timeFormat
	}{
		{"SecPer", 6, timeFormat{1, "Seconds", true}},
		{"MinPer", 6, timeFormat{60, "Minutes", true}},
		{"HourPer", 6, timeFormat{3600, "Hours", true}},
		{"Seconds", 1, timeFormat{1, "Seconds", false}},
		{"Minutes", 1, minutes},
		{"Hours", 1, timeFormat{3600, "Hours", false}},
		{"Percent", 1, timeFormat{0, "", true}},
	}
)

func parseTime(word string) (timeFormat, bool) {
	for _, f := range timeFormats {
		if match(word, f.word, f.least) {
			return f.as, true
		}
	}
	return timeFormat{}, false
}

// text writes an amount of seconds, of all there were.
func (t timeFormat) text(seconds, all int64) string {
	part := 0.0
	if all > 0 {
		part = 100 * float64(seconds) / float64(all)
	}
	switch {
	case t.unit == 0:
		return fmt.Sprintf("%.2f%%", part)
	case t.percent:
		return fmt.Sprintf("%.0f(%.2f%%)", float64(seconds)/t.unit, part)
	}
	return fmt.Sprintf("%.0f", float64(seconds)/t.unit)
}

// width is that of a column of amounts, wider where there are parts as well.
func (t timeFormat) width(plain, both int) int {
	if t.unit != 0 && t.percent {
		return both
	}
	return plain
}

// units tells, in the head of a report, what amounts are in.
func (t timeFormat) units(what string) string {
	switch {
	case t.unit == 0:
		return "Percentage of Total"
	case t.percent:
		return strings.TrimSpace(what+" "+t.name) + "/Percentage of Total"
	}
	return strings.TrimSpace(what + " " + t.name)
}
