package table

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// Field is a column that the accounting commands can show of a record R. A negative width is left-justified.
type Field[R any] struct {
	Name  string // for --format, any case
	Title string // "": Name
	Width int
	Value func(r *R) string
}

// Column is a field as --format asks for it.
type Column[R any] struct {
	*Field[R]
	Width int
}

// Table prints records as the accounting commands do: columns under a line of dashes, or fields between bars.
type Table[R any] struct {
	Columns   []Column[R]
	NoHeader  bool
	Parsable  bool   // a bar after each field, also the last
	Parsable2 bool   // bars between fields only
	Delimiter string // "": a bar
}

// ParseFormat reads f1,f2%30,f3%-10; names may be shortened. bad is the first that is no field.
func ParseFormat[R any](fields []Field[R], format string) (cols []Column[R], bad string) {
	for word := range strings.SplitSeq(format, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if strings.EqualFold(word, "ALL") {
			for i := range fields {
				cols = append(cols, Column[R]{&fields[i], fields[i].Width})
			}
			continue
		}
		name, width, sized := strings.Cut(word, "%")
		f := findField(fields, name)
		if f == nil {
			return nil, name
		}
		c := Column[R]{f, f.Width}
		if n, err := strconv.Atoi(width); sized && err == nil {
			c.Width = n
		}
		cols = append(cols, c)
	}
	return cols, ""
}

func findField[R any](fields []Field[R], name string) (found *Field[R]) {
	for i := range fields {
		f := &fields[i]
		switch {
		case strings.EqualFold(f.Name, name):
			return f
		case found == nil && name != "" && len(name) < len(f.Name) && strings.EqualFold(f.Name[:len(name)], name):
			found = f
		}
	}
	return found
}

// Print writes the table.
func (t *Table[R]) Print(out io.Writer, rows []R) {
	if !t.NoHeader {
		t.line(out, func(c *Column[R]) string {
			title := c.Title
			if title == "" {
				title = c.Name
			}
			if w := max(c.Width, -c.Width); !t.Parsable && !t.Parsable2 && len(title) > w {
				title = title[:w] // titles are cut without a mark
			}
			return title
		})
		if !t.Parsable && !t.Parsable2 {
			t.line(out, func(c *Column[R]) string { return strings.Repeat("-", max(c.Width, -c.Width)) })
		}
	}
	for i := range rows {
		t.line(out, func(c *Column[R]) string { return c.Value(&rows[i]) })
	}
}

func (t *Table[R]) line(out io.Writer, value func(c *Column[R]) string) {
	bar := t.Delimiter
	if bar == "" {
		bar = "|"
	}
	var b strings.Builder
	for i := range t.Columns {
		c := &t.Columns[i]
		v := plain.Cell(value(c))
		switch {
		case t.Parsable2 && i == len(t.Columns)-1:
			b.WriteString(v)
		case t.Parsable || t.Parsable2:
			b.WriteString(v + bar)
		default:
			b.WriteString(fitCell(v, c.Width) + " ")
		}
	}
	fmt.Fprintln(out, b.String())
}

// fitCell fits a value into a column: cut with a + at its end when it is too long.
func fitCell(v string, width int) string {
	size := max(width, -width)
	if len(v) > size && size > 0 {
		v = column.Cut(v, size-1) + "+"
	}
	fill := strings.Repeat(" ", max(0, size-len(v)))
	if width < 0 {
		return v + fill
	}
	return fill + v
}

// PrintFieldNames answers --helpformat: the names of all fields, four on a line, each so wide.
func PrintFieldNames[R any](out io.Writer, fields []Field[R], width int) {
	for i := range fields {
		end := " "
		if i%4 == 3 || i == len(fields)-1 {
			end = "\n"
		}
		fmt.Fprintf(out, "%-*s%s", width, fields[i].Name, end)
	}
}
