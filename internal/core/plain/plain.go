// Package plain keeps what terminals act on out of text that one user wrote and another reads: control characters (C0,
// DEL and C1), marks that reorder what is shown (Unicode's bidirectional overrides and isolates), line and paragraph
// separators, and bytes that are no UTF-8. Everything else, in any script, stays as it is.
package plain

import (
	"strings"
	"unicode/utf8"
)

// acts reports whether a terminal may act on a rune instead of showing it.
func acts(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional overrides, embeddings and isolates
		return true
	case r == 0x2028, r == 0x2029:
		return true
	}
	return false
}

// asciiRun is how many bytes at the beginning of a text are surely shown as they are, in words of eight.
func asciiRun(text string) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		s := text[i : i+8]
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		del := w ^ 0x7f*ones
		// The high bit of a byte is set where it is no ASCII, is below a blank, or is DEL.
		if (w|(w-0x20*ones)&^w|(del-ones)&^del)&high != 0 {
			break
		}
	}
	return i
}

// first finds the first byte of what is not plain, or -1. Most text is ASCII.
func first(text string, lines bool) int {
	for i := asciiRun(text); i < len(text); {
		c := text[i]
		if c >= 0x20 && c < 0x7f || lines && (c == '\n' || c == '\t') {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 || acts(r) {
			return i
		}
		i += n
	}
	return -1
}

// Is reports whether a text holds nothing but what is shown.
func Is(text string) bool { return first(text, false) < 0 }

// Cell makes a text fit to stand on one line: white space becomes a blank, and what is not plain a question mark.
func Cell(text string) string { return clean(text, false) }

// Message is Cell for texts of several lines: line ends and tabs stay.
func Message(text string) string { return clean(text, true) }

func clean(text string, lines bool) string {
	at := first(text, lines)
	if at < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:at])
	for rest := text[at:]; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r == utf8.RuneError && n == 1 || acts(r):
			b.WriteByte('?')
		default:
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String()
}

// JSON escapes in encoded JSON what encoding/json leaves as it is and a terminal may act on: DEL, C1 and the marks of
// direction. It means the same text.
func JSON(data []byte) []byte {
	const hex = "0123456789abcdef"
	at := -1
	for i := 0; i < len(data) && at < 0; i++ {
		if data[i] >= 0x7f {
			at = i
		}
	}
	if at < 0 {
		return data
	}
	out := append(make([]byte, 0, len(data)+16), data[:at]...)
	for rest := data[at:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r >= 0x7f && acts(r) {
			out = append(out, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}
