package plain

import (
	"io"
	"unicode/utf8"
)

// Writer passes text on to W with what is not plain as question marks; line ends and tabs stay. A rune may be cut
// between two writes.
type Writer struct {
	W    io.Writer
	part []byte // the beginning of a rune whose rest has not come
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	size := len(p)
	if len(w.part) > 0 {
		p = append(w.part, p...)
		w.part = nil
	}
	if n := cut(p); n > 0 {
		w.part = append([]byte(nil), p[len(p)-n:]...)
		p = p[:len(p)-n]
	}
	if dirty(p) {
		p = []byte(Message(string(p)))
	}
	if len(p) == 0 {
		return size, nil
	}
	if _, err := w.W.Write(p); err != nil {
		return 0, err
	}
	return size, nil
}

// dirty reports whether there is anything but printable ASCII, line ends and tabs.
func dirty(p []byte) bool {
	for _, c := range p {
		if (c < 0x20 || c >= 0x7f) && c != '\n' && c != '\t' {
			return true
		}
	}
	return false
}

// cut is how many bytes at the end are the beginning of a rune.
func cut(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		c := p[len(p)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
