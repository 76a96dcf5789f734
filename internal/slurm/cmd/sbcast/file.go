package sbcast

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A file on its way is a header, blocks and a sum: each a length of four bytes and so many bytes; a block of none is
// the last, and what follows it is the sum of all that is in the file.

// header is what is known of the file.
type header struct {
	Size   int64  `json:"size"`
	Mode   uint32 `json:"mode"`
	Time   int64  `json:"time"` // of its last change, nanoseconds
	Packed bool   `json:"packed,omitempty"`
}

// maxPiece bounds what is believed of a length.
const maxPiece = 2 * blockMost

func putPiece(w io.Writer, b []byte) error {
	if err := binary.Write(w, binary.BigEndian, uint32(len(b))); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

func getPiece(r io.Reader) ([]byte, error) {
	var n uint32
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return nil, err
	}
	if n > maxPiece {
		return nil, fmt.Errorf("a piece of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// write sends the file.
func (s *sender) write(w io.Writer) error {
	head, err := json.Marshal(s.head)
	if err == nil {
		err = putPiece(w, head)
	}
	if err != nil {
		return err
	}
	sum := sha256.New()
	in := io.TeeReader(io.NewSectionReader(s.file, 0, s.head.Size), sum)
	buf := make([]byte, s.block)
	var packed bytes.Buffer
	pack, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is a good one
	for {
		n, err := io.ReadFull(in, buf)
		if n > 0 {
			block := buf[:n]
			if s.head.Packed {
				packed.Reset()
				pack.Reset(&packed)
				_, _ = pack.Write(block) // into memory
				_ = pack.Close()
				block = packed.Bytes()
			}
			if err := putPiece(w, block); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := putPiece(w, nil); err != nil {
		return err
	}
	return putPiece(w, sum.Sum(nil))
}

// take writes what comes to its place and hands every piece on. The file is there whole or not at all.
func take(r io.Reader, o *order, pass func(piece []byte)) (err error) {
	text, err := getPiece(r)
	if err != nil {
		return fmt.Errorf("the file does not come: %w", err)
	}
	pass(text)
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	dest := o.Dest
	if info, serr := os.Stat(dest); serr == nil && info.IsDir() {
		return fmt.Errorf("%s: %w", dest, syscall.EISDIR)
	} else if serr == nil && !o.Force && !o.made(info) {
		return fmt.Errorf("%s: %w", dest, syscall.EEXIST)
	}
	f, err := os.CreateTemp(filepath.Dir(dest), ".sbcast-*")
	if err != nil {
		return fmt.Errorf("%s: %w", dest, err)
	}
	defer func() {
		_ = f.Close()
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	sum := sha256.New()
	out := io.MultiWriter(f, sum)
	for {
		piece, err := getPiece(r)
		if err != nil {
			return fmt.Errorf("the file breaks off: %w", err)
		}
		pass(piece)
		if len(piece) == 0 {
			break
		}
		var from io.Reader = bytes.NewReader(piece)
		if h.Packed {
			from = flate.NewReader(from)
		}
		if _, err := io.Copy(out, from); err != nil {
			return fmt.Errorf("Can't write `%s`: %w", dest, err)
		}
	}
	want, err := getPiece(r)
	if err != nil {
		return fmt.Errorf("the file breaks off: %w", err)
	}
	pass(want)
	if !bytes.Equal(want, sum.Sum(nil)) {
		return fmt.Errorf("`%s` came otherwise than it was sent", dest)
	}
	return finish(f, &h, o, want)
}

// made reports whether a file that is there may have come with this broadcast, to a node that shares its folder with
// us: it is no older.
func (o *order) made(info os.FileInfo) bool { return o.Began != 0 && changed(info) >= o.Began }

// put gives a whole file its name, without replacing one that is there. One that is the same and came while we were at
// it is another node's, which shares our folder.
func (o *order) put(temp string, sum []byte) error {
	err := os.Link(temp, o.Dest)
	if err == nil || !errors.Is(err, os.ErrExist) {
		return errors.Join(err, os.Remove(temp))
	}
	_ = os.Remove(temp)
	f, err := os.Open(o.Dest)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Dest, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is := sha256.New()
	if _, err := io.Copy(is, f); err != nil {
		return err
	}
	if !o.made(info) || !bytes.Equal(is.Sum(nil), sum) {
		return fmt.Errorf("%s: %w", o.Dest, syscall.EEXIST)
	}
	return nil
}

// finish gives a file that is complete its rights and its name.
func finish(f *os.File, h *header, o *order, sum []byte) error {
	mode := os.FileMode(h.Mode)
	if !o.Preserve {
		mode &= 0o755 | 0o600
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if o.Preserve {
		when := time.Unix(0, h.Time)
		if err := os.Chtimes(f.Name(), when, when); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if !o.Force {
		return o.put(f.Name(), sum)
	}
	return os.Rename(f.Name(), o.Dest)
}
