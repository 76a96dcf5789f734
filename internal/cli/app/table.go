package app

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
)

// Table is rows of cells; the first is the heading.
type Table [][]string

func (t *Table) Row(cells ...string) { *t = append(*t, cells) }

// write lays the columns out, two blanks apart, with no blanks at the ends of lines. An empty cell shows as a dash.
func (t Table) Write(w io.Writer) error {
	var width []int
	for _, r := range t {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(Cell(c)))
		}
	}
	var b strings.Builder
	for _, r := range t {
		var line strings.Builder
		for i, c := range r {
			c = Cell(c)
			line.WriteString(c)
			line.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Cell makes text safe for a terminal: names and reasons are other people's words.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return plain.Cell(s)
}

// Span words a length of time in its two largest units: 45s, 3m20s, 5h10m, 2d4h.
func Span(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
}

// Size words bytes in the largest unit that leaves a number of at least one: 512M, 1.5G.
func Size(b core.Bytes) string {
	units := []string{"B", "K", "M", "G", "T", "P"}
	v, u := float64(b), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d%s", int64(v), units[u])
	}
	return fmt.Sprintf("%.1f%s", v, units[u])
}

// Gres words generic resources as Slurm does: gpu:a100:2.
func Gres(list []core.Gres) string {
	out := make([]string, len(list))
	for i, g := range list {
		out[i] = fmt.Sprintf("%s:%d", g.Name, g.Count)
		if g.Type != "" {
			out[i] = fmt.Sprintf("%s:%s:%d", g.Name, g.Type, g.Count)
		}
	}
	return strings.Join(out, ",")
}

// Clock words a moment in the user's own time zone.
func Clock(t core.Time) string {
	if t == 0 {
		return ""
	}
	return t.Go().Local().Format("2006-01-02 15:04:05")
}

// Plural words a count.
func Plural[N int | int32 | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
