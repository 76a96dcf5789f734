package report

import (
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// timeFormat is how this process prints moments; nil: in Slurm's standard form.
var timeFormat func(t time.Time) string

// SetTimeFormat takes the value of SLURM_TIME_FORMAT. It is called once, before anything is printed: "standard" and ""
// are YYYY-MM-DDTHH:MM:SS, anything with a % is a format of strftime. Of "relative" Slurm prints the clock for today.
func SetTimeFormat(format string) {
	switch {
	case strings.Contains(format, "%"):
		timeFormat = func(t time.Time) string { return strftime(format, t) }
	case format == "relative":
		timeFormat = func(t time.Time) string { return relative(t, time.Now()) }
	}
}

// TimeText is a moment as Slurm prints it, or what stands for none.
func TimeText(t core.Time, none string) string {
	switch {
	case t == 0:
		return none
	case timeFormat != nil:
		return timeFormat(t.Go())
	}
	return t.Go().Format(standardTime)
}

const standardTime = "2006-01-02T15:04:05"

// relative prints the clock of today, and the day beside it of yesterday, tomorrow and the days of a week around it.
func relative(t, now time.Time) string {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, time.UTC) }
	switch days := int(day(t).Sub(day(now)) / (24 * time.Hour)); {
	case days == 0:
		return t.Format("15:04:05")
	case days == -1:
		return t.Format("Ystday 15:04")
	case days == 1:
		return t.Format("Tomorr 15:04")
	case days > -7 && days < 7:
		return t.Format("Mon 15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

// layouts are the conversions of strftime that have a layout of Go's.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
	'T': "15:04:05", 'R': "15:04", 'F': "2006-01-02", 'D': "01/02/06", 'b': "Jan", 'h': "Jan", 'B': "January",
	'a': "Mon", 'A': "Monday", 'j': "002", 'Z': "MST", 'z': "-0700", 'r': "03:04:05 PM",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime prints a moment by a format of C's function. What it does not know stays as it is.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout, ok := layouts[format[i]]; {
		case ok:
			b.WriteString(t.Format(layout))
		case format[i] == 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case format[i] == 'u', format[i] == 'w':
			day := int(t.Weekday())
			if format[i] == 'u' && day == 0 {
				day = 7
			}
			b.WriteString(strconv.Itoa(day))
		case format[i] == '%', format[i] == 'n', format[i] == 't':
			b.WriteByte(map[byte]byte{'%': '%', 'n': '\n', 't': '\t'}[format[i]])
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}
