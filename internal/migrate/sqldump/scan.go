package sqldump

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// unpack finds out how a stream is packed by its first bytes.
func unpack(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, _ := b.Peek(6)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return z, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(b), nil
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return nil, errors.New("the dump is packed by xz: give it through `xz -dc FILE |` and - for the file")
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, errors.New("the dump is packed by zstd: give it through `zstd -dc FILE |` and - for the file")
	}
	return b, nil
}

// scanner cuts the text into what statements are made of.
type scanner struct {
	r         *bufio.Reader
	line      int64
	offset    int64
	last      byte // what next gave
	pushed    bool // next gives it again
	delimiter string
	ioErr     error
	began     bool // a comment of the dump program says that a dump begins
	completed bool // and that it ends
}

func newScanner(r io.Reader) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 1<<18), line: 1, delimiter: ";"}
}

// errEnd is the end of the text in the midst of something.
var errEnd = errors.New("the text ends in the midst of a statement: the dump was cut off")

func (s *scanner) next() (byte, error) {
	c, err := s.last, error(nil)
	if s.pushed {
		s.pushed = false
	} else {
		c, err = s.r.ReadByte()
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.ioErr = err
			return 0, err
		}
		return 0, errEnd
	}
	s.offset++
	if s.last = c; c == '\n' {
		s.line++
	}
	return c, nil
}

// unread gives the last character back; it follows a next.
func (s *scanner) unread() {
	s.pushed = true
	s.offset--
	if s.last == '\n' {
		s.line--
	}
}

// follows reports whether the next character is this one.
func (s *scanner) follows(c byte) bool {
	if s.pushed {
		return s.last == c
	}
	p, _ := s.r.Peek(1)
	return len(p) == 1 && p[0] == c
}

func (s *scanner) unexpected(c byte, err error, want string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("expected %s, found %q", want, string(c))
}

// token passes over spaces and comments and returns the next character.
func (s *scanner) token() (byte, error) {
	for {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '#':
			err = s.restOfLine(nil)
		case '-':
			if !s.follows('-') {
				return c, nil
			}
			err = s.comment()
		case '/':
			if !s.follows('*') {
				return c, nil
			}
			err = s.block()
		default:
			return c, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// comment reads "-- …" and notes what a dump program says of the dump.
func (s *scanner) comment() error {
	text := make([]byte, 0, 64)
	if err := s.restOfLine(&text); err != nil {
		return err
	}
	t := strings.TrimSpace(strings.TrimPrefix(string(text), "-"))
	switch {
	case strings.HasPrefix(t, "MySQL dump"), strings.HasPrefix(t, "MariaDB dump"):
		s.began = true
	case strings.HasPrefix(t, "Dump completed"):
		s.completed = true
	}
	return nil
}

// restOfLine reads to the end of the line, or of the text; text gets the first bytes of it.
func (s *scanner) restOfLine(text *[]byte) error {
	for {
		c, err := s.next()
		switch {
		case errors.Is(err, errEnd), err == nil && c == '\n':
			return nil
		case err != nil:
			return err
		case text != nil && len(*text) < cap(*text):
			*text = append(*text, c)
		}
	}
}

// block passes over a comment between /* and */, also one that some versions run.
func (s *scanner) block() error {
	var before byte
	if _, err := s.next(); err != nil {
		return err
	}
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		if before == '*' && c == '/' {
			return nil
		}
		before = c
	}
}

// statement passes over what is between statements and returns the first word of the next; empty: the text has ended.
func (s *scanner) statement() (string, error) {
	for {
		c, err := s.token()
		switch {
		case errors.Is(err, errEnd):
			return "", s.atEnd()
		case err != nil:
			return "", err
		case c == ';':
			continue
		case !letter(c):
			return "", fmt.Errorf("expected a statement of SQL, found %q: this is no dump of a database", string(c))
		}
		s.unread()
		return s.word()
	}
}

// atEnd is nil where the text ends between two statements: block comments that are cut end the text too.
func (s *scanner) atEnd() error {
	if s.ioErr != nil {
		return s.ioErr
	}
	return nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

func wordByte(c byte) bool { return letter(c) || c >= '0' && c <= '9' || c == '$' || c >= 0x80 }

// word reads letters, digits and the like.
func (s *scanner) word() (string, error) {
	c, err := s.token()
	if err != nil {
		return "", err
	}
	var b []byte
	for ; wordByte(c); c, err = s.next() {
		if err != nil {
			break
		}
		if b = append(b, c); len(b) > maxName {
			return "", fmt.Errorf("a word is longer than %d bytes", maxName)
		}
	}
	if err != nil && !errors.Is(err, errEnd) {
		return "", err
	}
	if err == nil {
		s.unread()
	}
	if len(b) == 0 {
		return "", fmt.Errorf("expected a word, found %q", string(c))
	}
	return string(b), nil
}

// name reads a name of a table or column, in backquotes, double quotes or bare.
func (s *scanner) name() (string, error) {
	c, err := s.token()
	if err != nil {
		return "", err
	}
	if c != '`' && c != '"' {
		s.unread()
		return s.word()
	}
	quote := c
	var b []byte
	for {
		if c, err = s.next(); err != nil {
			return "", err
		}
		if c == quote {
			if !s.follows(quote) {
				return string(b), nil
			}
			if _, err = s.next(); err != nil {
				return "", err
			}
		}
		if b = append(b, c); len(b) > maxName {
			return "", fmt.Errorf("a name is longer than %d bytes", maxName)
		}
	}
}

// tableName reads a table's name after words that may stand before it, and without the database before the point.
func (s *scanner) tableName(before ...string) (string, error) {
	for {
		c, err := s.token()
		if err != nil {
			return "", err
		}
		s.unread()
		quoted := c == '`' || c == '"'
		name, err := s.name()
		if err != nil {
			return "", err
		}
		if !quoted && containsFold(before, name) {
			continue
		}
		if s.follows('.') {
			if _, err := s.next(); err != nil {
				return "", err
			}
			return s.name()
		}
		return name, nil
	}
}

func containsFold(list []string, word string) bool {
	for _, x := range list {
		if strings.EqualFold(x, word) {
			return true
		}
	}
	return false
}

// columnDefinition reads one entry of CREATE TABLE: a column's name, or nothing for keys; more: another follows.
func (s *scanner) columnDefinition() (column string, more bool, err error) {
	c, err := s.token()
	if err != nil {
		return "", false, err
	}
	s.unread()
	if c == '`' || c == '"' {
		if column, err = s.name(); err != nil {
			return "", false, err
		}
	} else if letter(c) {
		word, err := s.word()
		if err != nil {
			return "", false, err
		}
		if !containsFold(notColumns, word) {
			column = word
		}
	}
	for depth := 0; ; {
		c, err := s.token()
		if err != nil {
			return "", false, err
		}
		switch c {
		case '\'', '"', '`':
			err = s.skipQuoted(c)
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return column, false, nil
			}
		case ',':
			if depth == 0 {
				return column, true, nil
			}
		case ';':
			return "", false, errors.New("CREATE TABLE ends before its )")
		}
		if err != nil {
			return "", false, err
		}
	}
}

// notColumns begin the entries of CREATE TABLE that are none.
var notColumns = []string{
	"PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "FULLTEXT", "SPATIAL", "CHECK",
	"PERIOD",
}
