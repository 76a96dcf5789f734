package x11

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// cookieName is the one kind of proof that is passed on.
const cookieName = "MIT-MAGIC-COOKIE-1"

// Families of addresses in a file of cookies.
const (
	familyLocal = 256
	familyWild  = 65535
)

// entry is a line of such a file: numbers of two bytes, most significant first, and texts with their length before
// them.
type entry struct {
	family uint16
	addr   string
	number string
	name   string
	data   []byte
}

func (e *entry) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, e.family)
	for _, text := range []string{e.addr, e.number, e.name, string(e.data)} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
		b = append(b, text...)
	}
	return b
}

// maxAuthority bounds the file.
const maxAuthority = 1 << 20

func parseAuthority(b []byte) ([]entry, error) {
	var list []entry
	for len(b) > 0 {
		var texts [4]string
		if len(b) < 2 {
			return nil, errAuthority
		}
		e := entry{family: binary.BigEndian.Uint16(b)}
		b = b[2:]
		for i := range texts {
			if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
				return nil, errAuthority
			}
			n := int(binary.BigEndian.Uint16(b))
			texts[i], b = string(b[2:2+n]), b[2+n:]
		}
		e.addr, e.number, e.name, e.data = texts[0], texts[1], texts[2], []byte(texts[3])
		list = append(list, e)
	}
	return list, nil
}

var errAuthority = errors.New("the file of X11 cookies cannot be read")

// cookie finds the display's, nil if it has none: then it lets in whom it lets in.
func cookie(d display, host string) ([]byte, error) {
	path := os.Getenv("XAUTHORITY")
	if path == "" {
		path = filepath.Join(os.Getenv("HOME"), ".Xauthority")
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // many displays have none
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAuthority))
	if err != nil {
		return nil, err
	}
	list, err := parseAuthority(b)
	if err != nil {
		return nil, err
	}
	return pick(list, d, host), nil
}

// pick prefers an entry of this machine, where a display of it is meant, to those of others with the same number.
func pick(list []entry, d display, host string) []byte {
	number := strconv.Itoa(d.number)
	local := d.host == "" || d.host == "localhost" || d.host == "127.0.0.1" || d.host == host
	best, rank := []byte(nil), 0
	for _, e := range list {
		if e.name != cookieName || e.number != "" && e.number != number {
			continue
		}
		r := 1
		switch {
		case local && e.family == familyLocal && e.addr == host:
			r = 4
		case e.family == familyWild:
			r = 3
		case local && e.family == familyLocal:
			r = 2
		}
		if r > rank {
			best, rank = e.data, r
		}
	}
	return best
}
