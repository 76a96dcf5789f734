package report

import (
	"math"
	"strconv"
	"strings"
)

// Units is how sacct prints sizes: 0 with the unit that fits, one of KMGTP always with that one (--units), Raw with
// the unit in which Slurm records them (--noconvert): MiB of requests, bytes of what was measured.
type Units byte

// Raw stands for --noconvert.
const Raw Units = 'B'

// unitLetters are the units, each 1024 of the one before; the first is bytes.
const unitLetters = "BKMGTP"

// ParseUnits reads the value of --units.
func ParseUnits(text string) (Units, bool) {
	t := strings.ToUpper(text)
	if len(t) != 1 || t == "B" || !strings.Contains(unitLetters, t) {
		return 0, false
	}
	return Units(t[0]), true
}

// Text converts a value of a column: a size such as 10M, or a list of TRES, of which mem and gres/gpumem are sizes.
func (u Units) Text(column, text string) string {
	recorded := byte('B')
	switch {
	case u == 0 || text == "":
		return text
	case column == "ReqMem":
		return u.size(text, 'M')
	case strings.HasSuffix(column, "RSS"), strings.HasSuffix(column, "VMSize"):
		return u.size(text, recorded)
	case column == "AllocTRES", column == "ReqTRES":
		recorded = 'M'
	case !strings.HasPrefix(column, "TRESUsage"):
		return text
	}
	items := strings.Split(text, ",")
	for i, item := range items {
		if name, value, _ := strings.Cut(item, "="); name == "mem" || name == "gres/gpumem" {
			items[i] = name + "=" + u.size(value, recorded)
		}
	}
	return strings.Join(items, ",")
}

// size converts one size; a text that is none stays.
func (u Units) size(text string, recorded byte) string {
	number, from := strings.TrimRight(text, unitLetters[1:]), 0
	if number != text {
		from = strings.IndexByte(unitLetters, text[len(number)])
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n == 0 {
		return text
	}
	letter := byte(u)
	if u == Raw {
		letter = recorded
	}
	to := strings.IndexByte(unitLetters, letter)
	n *= math.Pow(1024, float64(from-to))
	suffix := unitLetters[to : to+1]
	if to == 0 {
		suffix = ""
	}
	if n == math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 0, 64) + suffix
	}
	return strconv.FormatFloat(n, 'f', 2, 64) + suffix
}
