package sqldump

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// value reads one value and appends it to b.
func (s *scanner) value(b []byte, most int) (out []byte, null bool, err error) {
	c, err := s.token()
	if err != nil {
		return b, false, err
	}
	switch {
	case c == '\'' || c == '"':
		b, err = s.quoted(b, c, most)
		return b, false, err
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		s.unread()
		return s.number(b)
	case letter(c):
		s.unread()
		return s.wordValue(b, most)
	}
	return b, false, fmt.Errorf("expected a value, found %q", string(c))
}

// quoted reads the rest of a text in quotes.
func (s *scanner) quoted(b []byte, quote byte, most int) ([]byte, error) {
	for {
		c, err := s.next()
		if err != nil {
			return b, err
		}
		switch c {
		case quote:
			if !s.follows(quote) {
				return b, nil
			}
			if _, err = s.next(); err != nil {
				return b, err
			}
		case '\\':
			if c, err = s.next(); err != nil {
				return b, err
			}
			c = escaped(c)
		}
		if b = append(b, c); len(b) > most {
			return b, fmt.Errorf("a row is longer than %d bytes", most)
		}
	}
}

// escaped is what a letter after a backslash stands for.
func escaped(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'Z':
		return 0x1a
	}
	return c
}

// number reads digits with sign, point and exponent, or 0x and hexadecimal digits.
func (s *scanner) number(b []byte) ([]byte, bool, error) {
	const longest = 1 << 20 // blobs may be written as 0x…
	from := len(b)
	for {
		c, err := s.next()
		if err != nil {
			return b, false, err
		}
		if !wordByte(c) && c != '-' && c != '+' && c != '.' {
			s.unread()
			break
		}
		if b = append(b, c); len(b)-from > longest {
			return b, false, errors.New("a number is too long")
		}
	}
	if text := b[from:]; len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		return s.unhex(b[:from], text[2:])
	}
	return b, false, nil
}

func (s *scanner) unhex(b, digits []byte) ([]byte, bool, error) {
	raw := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(raw, digits); err != nil {
		return b, false, fmt.Errorf("%q is no hexadecimal value", cut(string(digits)))
	}
	return append(b, raw...), false, nil
}

// wordValue reads NULL, and texts behind a word: _binary '…', x'…'.
func (s *scanner) wordValue(b []byte, most int) ([]byte, bool, error) {
	word, err := s.word()
	if err != nil {
		return b, false, err
	}
	switch upper := strings.ToUpper(word); {
	case upper == "NULL":
		return b, true, nil
	case upper == "TRUE":
		return append(b, '1'), false, nil
	case upper == "FALSE":
		return append(b, '0'), false, nil
	case upper == "X" || strings.HasPrefix(word, "_"):
		c, err := s.token()
		if err != nil || c != '\'' && c != '"' {
			return b, false, s.unexpected(c, err, "a text in quotes after "+word)
		}
		from := len(b)
		if b, err = s.quoted(b, c, most); err != nil || upper != "X" {
			return b, false, err
		}
		return s.unhex(b[:from], append([]byte(nil), b[from:]...))
	}
	return b, false, fmt.Errorf("expected a value, found %q", cut(word))
}

// skipQuoted passes over the rest of a text in quotes.
func (s *scanner) skipQuoted(quote byte) error {
	for {
		c, err := s.next()
		switch {
		case err != nil:
			return err
		case c == quote: // a doubled quote begins another text, which is passed over likewise
			return nil
		case c == '\\' && quote != '`':
			if _, err := s.next(); err != nil {
				return err
			}
		}
	}
}

// skipStatement passes over the rest of a statement with what ends it.
func (s *scanner) skipStatement() error {
	first := s.delimiter[0]
	for {
		c, err := s.token()
		if err != nil {
			return err
		}
		switch {
		case c == '\'' || c == '"' || c == '`':
			if err := s.skipQuoted(c); err != nil {
				return err
			}
		case c == first:
			rest := s.delimiter[1:]
			p, _ := s.r.Peek(len(rest))
			if string(p) != rest {
				continue
			}
			for range rest {
				if _, err := s.next(); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// setDelimiter reads what ends statements from now on.
func (s *scanner) setDelimiter() error {
	text := make([]byte, 0, 16)
	if err := s.restOfLine(&text); err != nil {
		return err
	}
	if s.delimiter = strings.TrimSpace(string(text)); s.delimiter == "" {
		return errors.New("DELIMITER names nothing")
	}
	return nil
}
