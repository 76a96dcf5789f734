package pmix

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// dialect is how integers are packed: releases from 4.0 on send seven bits a byte, earlier ones whole words.
type dialect struct{ flex bool }

// dialectOf is the dialect of a packing module that a client names.
func dialectOf(module string) (dialect, error) {
	switch module {
	case "v41", "v4":
		return dialect{flex: true}, nil
	case "v3", "v21":
		return dialect{}, nil
	}
	return dialect{}, fmt.Errorf("its packing %q is not known: v21, v3, v4 and v41 are", module)
}

// Types of values, as the standard numbers them.
const (
	typeUndef      = 0
	typeBool       = 1
	typeByte       = 2
	typeString     = 3
	typeSize       = 4
	typePID        = 5
	typeInt        = 6
	typeInt8       = 7
	typeInt16      = 8
	typeInt32      = 9
	typeInt64      = 10
	typeUint       = 11
	typeUint8      = 12
	typeUint16     = 13
	typeUint32     = 14
	typeUint64     = 15
	typeFloat      = 16
	typeDouble     = 17
	typeTimeval    = 18
	typeTime       = 19
	typeStatus     = 20
	typeValue      = 21
	typeProc       = 22
	typeInfo       = 24
	typeBytes      = 27
	typeKval       = 28
	typePersist    = 30
	typePointer    = 31
	typeScope      = 32
	typeRange      = 33
	typeCommand    = 34
	typeDirectives = 35
	typeDataType   = 36
	typeProcState  = 37
	typeArray      = 39
	typeRank       = 40
	typeCompressed = 42
	typeAlloc      = 43
	typeIOF        = 45
	typeEnvar      = 46
	typeRegex      = 49
	typeJobState   = 50
	typeLinkState  = 51
	typeDevtype    = 57
	typeLoctype    = 58
	typeCompBytes  = 59
	typeNspace     = 60
)

// writer packs values.
type writer struct {
	dialect
	b []byte
}

// one begins an item of a message: the number of values comes before them.
func (w *writer) one() *writer { w.int32(1); return w }

func (w *writer) byte(v byte) { w.b = append(w.b, v) }

func (w *writer) bool(v bool) {
	if v {
		w.byte(1)
	} else {
		w.byte(0)
	}
}

func (w *writer) flexUint(v uint64) {
	for i := 0; i < 8; i++ {
		if v < 0x80 {
			w.byte(byte(v))
			return
		}
		w.byte(byte(v)&0x7f | 0x80)
		v >>= 7
	}
	w.byte(byte(v)) // the ninth has eight bits
}

func (w *writer) uint16(v uint16) {
	if w.flex {
		w.flexUint(uint64(v))
		return
	}
	w.b = binary.BigEndian.AppendUint16(w.b, v)
}

func (w *writer) uint32(v uint32) {
	if w.flex {
		w.flexUint(uint64(v))
		return
	}
	w.b = binary.BigEndian.AppendUint32(w.b, v)
}

func (w *writer) int32(v int32) {
	if w.flex {
		w.flexUint(uint64(int64(v)<<1 ^ int64(v)>>63))
		return
	}
	w.b = binary.BigEndian.AppendUint32(w.b, uint32(v))
}

func (w *writer) size(v int) {
	if w.flex {
		w.flexUint(uint64(v))
		return
	}
	w.uint16(typeUint64)
	w.b = binary.BigEndian.AppendUint64(w.b, uint64(v))
}

func (w *writer) string(s string) {
	w.int32(int32(len(s) + 1))
	w.b = append(append(w.b, s...), 0)
}

func (w *writer) blob(b []byte) {
	w.size(len(b))
	w.b = append(w.b, b...)
}

func (w *writer) proc(nspace string, rank uint32) {
	w.string(nspace)
	w.uint32(rank)
}

// errShort is a message that ends too early.
var errShort = errors.New("a message ends before its time")

// reader unpacks values. Its first fault stays, and everything read after it is zero.
type reader struct {
	dialect
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.b = err, nil
	}
}

// next is the next n bytes.
func (r *reader) next(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// one reads the number of values of an item, which must be n.
func (r *reader) items(n int) {
	if got := r.int32(); r.err == nil && int(got) != n {
		r.fail(fmt.Errorf("%d values where %d belong", got, n))
	}
}

func (r *reader) byte() byte {
	b := r.next(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) flexUint() uint64 {
	var v uint64
	for i := range 9 {
		b := r.byte()
		if i == 8 {
			return v | uint64(b)<<56
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			break
		}
	}
	return v
}

// word is a whole number of n bytes.
func (r *reader) word(n uint64) uint64 {
	var v uint64
	for _, b := range r.next(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (r *reader) uint16() uint16 {
	if r.flex {
		return uint16(r.flexUint())
	}
	return uint16(r.word(2))
}

func (r *reader) uint32() uint32 {
	if r.flex {
		return uint32(r.flexUint())
	}
	return uint32(r.word(4))
}

func (r *reader) uint64() uint64 {
	if r.flex {
		return r.flexUint()
	}
	return r.word(8)
}

func (r *reader) int32() int32 {
	if r.flex {
		v := r.flexUint()
		return int32(int64(v>>1) ^ -int64(v&1))
	}
	return int32(r.word(4))
}

// tagged is an integer whose size its sender chose: it says so before it, where integers have fixed sizes.
func (r *reader) tagged() uint64 {
	if r.flex {
		return r.flexUint()
	}
	return r.described()
}

func (r *reader) described() uint64 {
	switch t := r.uint16(); t {
	case typeInt8, typeUint8:
		return uint64(r.byte())
	case typeInt16, typeUint16:
		return uint64(r.uint16())
	case typeInt32, typeUint32:
		return uint64(r.uint32())
	case typeInt64, typeUint64:
		return r.uint64()
	default:
		r.fail(fmt.Errorf("type %d is no integer", t))
		return 0
	}
}

func (r *reader) string() string {
	n := r.int32()
	if n < 0 {
		r.fail(fmt.Errorf("a string of %d bytes", n))
	}
	b := r.next(uint64(max(0, n)))
	if len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return string(b)
}

func (r *reader) blob() []byte { return r.next(r.tagged()) }
