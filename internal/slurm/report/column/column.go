package column

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"bireme.dev/bireme/internal/core/plain"
)

// Field is a thing a listing can show of a record R.
type Field[R any] struct {
	Letter byte   // for %-formats; 0: none
	Name   string // for --Format, any case; "": none
	Title  string
	Full   bool // it needs the whole record, not the short one
	Value  func(r *R) string
	// Compare orders records by this field; nil: by Value as text.
	Compare func(a, b *R) int
}

// Column is a field as a format asks for it. A column without a field is text as it stands.
type Column[R any] struct {
	Field *Field[R]
	Width int // 0: as wide as the value
	Right bool
	Auto  bool   // as wide as the widest value (sinfo's %#)
	Text  string // literal text that follows the column, or stands alone
}

// ParseFormat reads a format of %[[.]width]letter fields with text between them. bad lists the letters that are no
// field; they stay in the output as they were typed.
func ParseFormat[R any](fields []Field[R], format string) (cols []Column[R], bad []string) {
	literal := func(text string) {
		if len(cols) == 0 {
			cols = append(cols, Column[R]{})
		}
		cols[len(cols)-1].Text += text
	}
	for i := 0; i < len(format); {
		if format[i] != '%' {
			next := strings.IndexByte(format[i:], '%')
			if next < 0 {
				next = len(format) - i
			}
			literal(format[i : i+next])
			i += next
			continue
		}
		start := i
		i++
		var c Column[R]
		for ; i < len(format) && (format[i] == '.' || format[i] == '#'); i++ {
			c.Right = c.Right || format[i] == '.'
			c.Auto = c.Auto || format[i] == '#'
		}
		digits := i
		for i < len(format) && '0' <= format[i] && format[i] <= '9' {
			i++
		}
		c.Width, _ = strconv.Atoi(format[digits:i])
		if i == len(format) { // a lone % at the end is dropped
			break
		}
		if c.Field = byLetter(fields, format[i]); c.Field == nil {
			bad = append(bad, format[i:i+1])
			literal(format[start : i+1])
			i++
			continue
		}
		i++
		cols = append(cols, c)
	}
	return cols, bad
}

func byLetter[R any](fields []Field[R], c byte) *Field[R] {
	for i := range fields {
		if fields[i].Letter == c {
			return &fields[i]
		}
	}
	return nil
}

// ParseLongFormat reads --Format: name[:[.][width][text]][,…]. Without a colon a column is 20 wide; with one but no
// width it is as wide as its value. The text is printed after it, blanks too. bad are the names that are no field; as
// in Slurm the others are printed nonetheless.
func ParseLongFormat[R any](fields []Field[R], format string) (cols []Column[R], bad []string) {
	for _, word := range strings.Split(format, ",") {
		name, spec, sized := strings.Cut(word, ":")
		if name = strings.TrimSpace(name); name == "" && spec == "" {
			continue
		}
		c := Column[R]{Width: 20}
		if sized {
			c.Width = 0
		}
		if rest, ok := strings.CutPrefix(spec, "."); ok {
			c.Right, spec = true, rest
		}
		digits := len(spec)
		for i := range len(spec) {
			if spec[i] < '0' || spec[i] > '9' {
				digits = i
				break
			}
		}
		if digits > 0 {
			c.Width, _ = strconv.Atoi(spec[:digits])
		}
		c.Text = spec[digits:]
		for i := range fields {
			if f := &fields[i]; f.Name != "" && strings.EqualFold(f.Name, name) {
				c.Field = f
				break
			}
		}
		if c.Field == nil {
			bad = append(bad, name)
			continue
		}
		cols = append(cols, c)
	}
	return cols, bad
}

// NeedsFull reports whether some column wants the whole record.
func NeedsFull[R any](cols []Column[R]) bool {
	for _, c := range cols {
		if c.Field != nil && c.Field.Full {
			return true
		}
	}
	return false
}

// SortKeys reads --sort: letters of fields with commas between them, each with - before it for descending order.
// Unknown ones are passed over, as Slurm does. full reports whether some key wants the whole record.
func SortKeys[R any](fields []Field[R], order string) (keys []func(a, b *R) int, full bool) {
	for word := range strings.SplitSeq(order, ",") {
		word = strings.TrimSpace(word)
		descending := strings.HasPrefix(word, "-")
		if word = strings.TrimLeft(word, "+-#"); len(word) != 1 {
			continue
		}
		f := byLetter(fields, word[0])
		if f == nil {
			continue
		}
		full = full || f.Full
		compare := f.Compare
		if compare == nil {
			compare = func(a, b *R) int { return strings.Compare(f.Value(a), f.Value(b)) }
		}
		if descending {
			ascending := compare
			compare = func(a, b *R) int { return ascending(b, a) }
		}
		keys = append(keys, compare)
	}
	return keys, full
}

// BadSortKey is the first letter of --sort that is no field, or "". As in Slurm each letter is a key by itself.
func BadSortKey[R any](fields []Field[R], order string) string {
	for _, letter := range order {
		if !strings.ContainsRune(", +-#", letter) && (letter > 'z' || byLetter(fields, byte(letter)) == nil) {
			return string(letter)
		}
	}
	return ""
}

// Fit sets the widths of columns that are as wide as their widest value.
func Fit[R any](cols []Column[R], rows []R) {
	for i := range cols {
		c := &cols[i]
		if !c.Auto || c.Field == nil {
			continue
		}
		c.Width = max(c.Width, len(c.Field.Title))
		for k := range rows {
			c.Width = max(c.Width, len(c.Field.Value(&rows[k])))
		}
	}
}

// AppendHeader appends the line of titles.
func AppendHeader[R any](dst []byte, cols []Column[R]) []byte {
	for i := range cols {
		if cols[i].Field != nil {
			dst = cols[i].pad(dst, cols[i].Field.Title)
		}
		dst = append(dst, cols[i].Text...)
	}
	return append(dst, '\n')
}

// AppendRow appends the line of one record.
func AppendRow[R any](dst []byte, cols []Column[R], r *R) []byte {
	for i := range cols {
		if cols[i].Field != nil {
			dst = cols[i].pad(dst, cols[i].Field.Value(r))
		}
		dst = append(dst, cols[i].Text...)
	}
	return append(dst, '\n')
}

// pad puts a value into its column: cut when it is too long, as Slurm does.
func (c *Column[R]) pad(dst []byte, v string) []byte {
	v = plain.Cell(v)
	if c.Width == 0 {
		return append(dst, v...)
	}
	if len(v) > c.Width {
		v = Cut(v, c.Width)
	}
	const blanks = "                                                                "
	fill := func() {
		for n := c.Width - len(v); n > 0; n -= len(blanks) {
			dst = append(dst, blanks[:min(n, len(blanks))]...)
		}
	}
	if c.Right {
		fill()
	}
	dst = append(dst, v...)
	if !c.Right {
		fill()
	}
	return dst
}

// Cut is the beginning of a text in at most so many bytes, without a part of a character at its end.
func Cut(v string, most int) string {
	for most > 0 && !utf8.RuneStart(v[most]) {
		most--
	}
	return v[:most]
}

// SortBy orders rows by the letters of fields, each with - before it for the other way round. Unknown letters are
// passed over.
func SortBy[R any](fields []Field[R], spec string, rows []R) {
	type key struct {
		field *Field[R]
		down  bool
	}
	var keys []key
	for _, word := range strings.Split(spec, ",") {
		word = strings.TrimSpace(word)
		letter := strings.TrimLeft(word, "+-#")
		for i := range fields {
			if len(letter) == 1 && fields[i].Letter == letter[0] {
				keys = append(keys, key{&fields[i], strings.HasPrefix(word, "-")})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b R) int {
		for _, k := range keys {
			n := 0
			if k.field.Compare != nil {
				n = k.field.Compare(&a, &b)
			} else {
				n = strings.Compare(k.field.Value(&a), k.field.Value(&b))
			}
			if k.down {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
}
