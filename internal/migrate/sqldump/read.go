package sqldump

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of what a dump may hold; a text beyond them is no dump of ours.
const (
	maxName    = 256      // bytes of a name of a table or column
	maxColumns = 1 << 10  // of a table
	maxTables  = 1 << 14  // of a dump
	maxRow     = 16 << 20 // bytes of the values of one row
)

// Table is a table of the dump with its columns.
type Table struct {
	Name    string
	Columns []string
	index   map[string]int
}

// Row is one row of a table. It is used again for the next one.
type Row struct {
	Table  *Table
	values []value
	cols   []int // position in Table.Columns of each value; nil: in the table's order
	Line   int64 // where the row begins, counted from 1
	Offset int64 // the same in bytes, counted from 0
}

type value struct {
	null bool
	text []byte
}

// Handler takes what a dump holds.
type Handler struct {
	// Wants reports whether the rows of a table are to be read; those of others are passed over.
	Wants func(table string) bool
	// Row takes a row; its error ends the reading, with the row's place in front.
	Row func(*Row) error
	// Progress, if set, learns now and then how many bytes were read.
	Progress func(bytes int64)
}

// Error is what is wrong with a dump, and where.
type Error struct {
	Line   int64
	Offset int64
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, byte %d: %v", e.Line, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Read reads a dump to its end: plain text, or packed by gzip or bzip2.
func Read(r io.Reader, h Handler) error {
	plain, err := unpack(r)
	if err != nil {
		return err
	}
	d := &dump{scan: newScanner(plain), h: h, tables: map[string]*Table{}}
	err = d.statements()
	if d.scan.ioErr != nil {
		err = d.scan.ioErr
	}
	if err == nil {
		err = d.complete()
	}
	var placed *Error
	if err != nil && !errors.As(err, &placed) {
		err = &Error{d.scan.line, d.scan.offset, err}
	}
	return err
}

// dump is the reading of one.
type dump struct {
	scan   *scanner
	h      Handler
	tables map[string]*Table
	row    Row
	buf    []byte // of the values of row
	ends   []int  // of each value in buf; negative: NULL
	nulls  []bool
}

// complete checks that a dump which says when it began also says that it is whole.
func (d *dump) complete() error {
	s := d.scan
	switch {
	case s.offset == 0:
		return errors.New("the file is empty")
	case s.began && !s.completed:
		return errors.New("the dump was cut off: it does not end with \"-- Dump completed\"")
	case len(d.tables) == 0:
		return errors.New("there is no CREATE TABLE: this is no dump of a database, or one made with --no-create-info")
	}
	return nil
}

func (d *dump) statements() error {
	s := d.scan
	for {
		word, err := s.statement()
		if err != nil {
			return err
		}
		if d.h.Progress != nil {
			d.h.Progress(s.offset)
		}
		switch strings.ToUpper(word) {
		case "":
			return nil
		case "CREATE":
			err = d.create()
		case "INSERT", "REPLACE":
			err = d.insert()
		case "DELIMITER":
			err = s.setDelimiter()
		default:
			err = s.skipStatement()
		}
		if err != nil {
			return err
		}
	}
}

// create reads the columns of a table; other things that are created are passed over.
func (d *dump) create() error {
	s := d.scan
	word, err := s.word()
	if err != nil {
		return err
	}
	if !strings.EqualFold(word, "TABLE") {
		return s.skipStatement()
	}
	name, err := s.tableName("IF", "NOT", "EXISTS")
	if err != nil {
		return err
	}
	if c, err := s.token(); err != nil || c != '(' {
		return s.unexpected(c, err, "( after CREATE TABLE "+name)
	}
	t := &Table{Name: name, index: map[string]int{}}
	for {
		column, more, err := s.columnDefinition()
		if err != nil {
			return err
		}
		if column != "" {
			if _, twice := t.index[column]; twice {
				return fmt.Errorf("table %s has two columns %q", name, column)
			}
			t.index[column] = len(t.Columns)
			t.Columns = append(t.Columns, column)
		}
		if len(t.Columns) > maxColumns {
			return fmt.Errorf("table %s has more than %d columns", name, maxColumns)
		}
		if !more {
			break
		}
	}
	if d.tables[name] = t; len(d.tables) > maxTables {
		return fmt.Errorf("there are more than %d tables", maxTables)
	}
	return s.skipStatement()
}

// insert reads the rows of a table.
func (d *dump) insert() error {
	s := d.scan
	name, err := s.tableName("LOW_PRIORITY", "DELAYED", "IGNORE", "INTO")
	if err != nil {
		return err
	}
	if d.h.Wants != nil && !d.h.Wants(name) {
		return s.skipStatement()
	}
	t := d.tables[name]
	if t == nil {
		return fmt.Errorf("rows of table %s come without its CREATE TABLE before them", name)
	}
	cols, err := d.columnList(t)
	if err != nil {
		return err
	}
	want := len(t.Columns)
	if cols != nil {
		want = len(cols)
	}
	d.row.Table, d.row.cols = t, cols
	for {
		if err := d.oneRow(want); err != nil {
			return err
		}
		if err := d.h.Row(&d.row); err != nil {
			return &Error{d.row.Line, d.row.Offset, fmt.Errorf("table %s: %w", t.Name, err)}
		}
		c, err := s.token()
		switch {
		case err != nil:
			return err
		case c == ',':
		case c == ';':
			return nil
		default: // ON DUPLICATE KEY UPDATE and the like
			s.unread()
			return s.skipStatement()
		}
	}
}

// columnList reads the names between a table and VALUES, where there are some.
func (d *dump) columnList(t *Table) (cols []int, err error) {
	s := d.scan
	c, err := s.token()
	if err != nil {
		return nil, err
	}
	if c == '(' {
		for {
			name, err := s.name()
			if err != nil {
				return nil, err
			}
			i, ok := t.index[name]
			if !ok {
				return nil, fmt.Errorf("table %s has no column %q", t.Name, name)
			}
			cols = append(cols, i)
			if c, err = s.token(); err != nil || c != ',' && c != ')' {
				return nil, s.unexpected(c, err, ", or ) between names of columns")
			}
			if c == ')' {
				break
			}
			if len(cols) > maxColumns {
				return nil, fmt.Errorf("more than %d columns are named", maxColumns)
			}
		}
	} else {
		s.unread()
	}
	word, err := s.word()
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(word, "VALUES") && !strings.EqualFold(word, "VALUE") {
		return nil, fmt.Errorf("expected VALUES for table %s, found %q", t.Name, word)
	}
	return cols, nil
}

// oneRow reads "(…)" into d.row.
func (d *dump) oneRow(want int) error {
	s := d.scan
	c, err := s.token()
	if err != nil || c != '(' {
		return s.unexpected(c, err, "( before the values of a row")
	}
	d.row.Line, d.row.Offset = s.line, s.offset-1
	d.buf, d.ends, d.nulls = d.buf[:0], d.ends[:0], d.nulls[:0]
	for {
		var null bool
		if d.buf, null, err = s.value(d.buf, maxRow); err != nil {
			return err
		}
		d.ends, d.nulls = append(d.ends, len(d.buf)), append(d.nulls, null)
		if len(d.ends) > want {
			return d.countFault(want)
		}
		if c, err = s.token(); err != nil || c != ',' && c != ')' {
			return s.unexpected(c, err, ", or ) after a value")
		}
		if c == ')' {
			break
		}
	}
	if len(d.ends) != want {
		return d.countFault(want)
	}
	d.row.values = d.row.values[:0]
	from := 0
	for i, end := range d.ends {
		d.row.values = append(d.row.values, value{d.nulls[i], d.buf[from:end]})
		from = end
	}
	return nil
}

func (d *dump) countFault(want int) error {
	return fmt.Errorf("a row of table %s has not the %d values of its columns", d.row.Table.Name, want)
}
