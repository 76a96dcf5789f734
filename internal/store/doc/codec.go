package doc

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// Codec turns values of T into documents and back. It is safe for concurrent use.
type Codec[T any] struct {
	fields *fields
}

// New computes the codec of the struct T, leaving out the fields with the json names in skip: those that are columns.
// It panics on a T it cannot handle and on a name in skip that T has not, so that mistakes show at start.
func New[T any](skip ...string) *Codec[T] {
	t := reflect.TypeFor[T]()
	left := map[string]bool{}
	for _, s := range skip {
		left[s] = true
	}
	f := compileFields(t, left)
	for s, unused := range left {
		if unused {
			panic(fmt.Sprintf("doc: %s has no field %q", t, s))
		}
	}
	return &Codec[T]{fields: f}
}

// Append adds v's document to dst.
func (c *Codec[T]) Append(dst []byte, version int, v *T) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, int64(version), 10)
	return append(c.fields.appendMembers(dst, unsafe.Pointer(v), true), '}')
}

// Decode fills v from a document and returns its version. Members that T has not are passed over.
func (c *Codec[T]) Decode(d *Decoder, text []byte, v *T) (version int, err error) {
	d.reset(text)
	c.fields.decode(d, unsafe.Pointer(v), &version)
	d.r.End()
	if err := d.r.Err(); err != nil {
		return 0, fmt.Errorf("document %.120q: %w", text, err)
	}
	return version, nil
}

// value is how one type is written and read. The pointers go to a value of that type.
type value struct {
	zero func(p unsafe.Pointer) bool
	enc  func(dst []byte, p unsafe.Pointer) []byte
	dec  func(d *Decoder, p unsafe.Pointer)
}

type field struct {
	name string
	key  string // `"name":`
	off  uintptr
	value
}

type fields struct{ list []field }

func compileFields(t reflect.Type, skip map[string]bool) *fields {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("doc: %s is not a struct", t))
	}
	var fs fields
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" || !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		if skip[name] {
			skip[name] = false
			continue
		}
		if sf.Anonymous || name == "v" {
			panic(fmt.Sprintf("doc: field %s of %s cannot be stored", sf.Name, t))
		}
		fs.list = append(fs.list, field{name: name, key: `"` + name + `":`, off: sf.Offset, value: compile(sf.Type)})
	}
	return &fs
}

var (
	textType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonType = reflect.TypeFor[json.Marshaler]()
	hashType = reflect.TypeFor[core.Hash]()
)

func compile(t reflect.Type) value {
	switch {
	case t == hashType:
		return hashValue
	case parsedTypes[t].dec != nil:
		return parsedTypes[t]
	case t.Implements(jsonType), t.Implements(textType), reflect.PointerTo(t).Implements(jsonType),
		reflect.PointerTo(t).Implements(textType):
		return slow(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolValue
	case reflect.String:
		return stringValue
	case reflect.Int32:
		return signed[int32]()
	case reflect.Int64:
		return signed[int64]()
	case reflect.Int:
		return signed[int]()
	case reflect.Uint8:
		return unsigned[uint8]()
	case reflect.Uint16:
		return unsigned[uint16]()
	case reflect.Uint32:
		return unsigned[uint32]()
	case reflect.Uint64:
		return unsigned[uint64]()
	case reflect.Struct:
		return structValue(compileFields(t, nil))
	case reflect.Pointer:
		return pointerValue(t.Elem())
	case reflect.Slice:
		return sliceValue(t)
	default:
		return slow(t)
	}
}

func (fs *fields) appendMembers(dst []byte, p unsafe.Pointer, comma bool) []byte {
	for i := range fs.list {
		f := &fs.list[i]
		at := unsafe.Add(p, f.off)
		if f.zero(at) {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(dst, f.key...)
		dst = f.enc(dst, at)
	}
	return dst
}

// decode reads an object. Members usually come in the order they were written in, so the search for each starts behind
// the one before.
func (fs *fields) decode(d *Decoder, p unsafe.Pointer, version *int) {
	next := 0
	for key := range d.r.Members() {
		f := (*field)(nil)
		for n := range fs.list {
			i := next + n
			if i >= len(fs.list) {
				i -= len(fs.list)
			}
			if fs.list[i].name == string(key) {
				f, next = &fs.list[i], i+1
				break
			}
		}
		switch {
		case f != nil:
			f.dec(d, unsafe.Add(p, f.off))
		case version != nil && string(key) == "v":
			*version = int(d.r.Int())
		default:
			d.r.Skip()
		}
	}
}

func structValue(fs *fields) value {
	return value{
		zero: func(p unsafe.Pointer) bool {
			for i := range fs.list {
				if !fs.list[i].zero(unsafe.Add(p, fs.list[i].off)) {
					return false
				}
			}
			return true
		},
		enc: func(dst []byte, p unsafe.Pointer) []byte {
			return append(fs.appendMembers(append(dst, '{'), p, false), '}')
		},
		dec: func(d *Decoder, p unsafe.Pointer) { fs.decode(d, p, nil) },
	}
}

// pointerValue writes what is pointed to, also when that is zero: a pointer to zero is not nil.
func pointerValue(elem reflect.Type) value {
	v := compile(elem)
	return value{
		zero: func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil },
		enc:  func(dst []byte, p unsafe.Pointer) []byte { return v.enc(dst, *(*unsafe.Pointer)(p)) },
		dec: func(d *Decoder, p unsafe.Pointer) {
			if d.r.Null() {
				return
			}
			to := reflect.New(elem).UnsafePointer()
			v.dec(d, to)
			*(*unsafe.Pointer)(p) = to
		},
	}
}

// sliceHeader is how the runtime lays a slice out.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

func sliceValue(t reflect.Type) value {
	elem, size := compile(t.Elem()), t.Elem().Size()
	return value{
		zero: func(p unsafe.Pointer) bool { return (*sliceHeader)(p).len == 0 },
		enc: func(dst []byte, p unsafe.Pointer) []byte {
			h := (*sliceHeader)(p)
			dst = append(dst, '[')
			for i := range h.len {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = elem.enc(dst, unsafe.Add(h.data, uintptr(i)*size))
			}
			return append(dst, ']')
		},
		dec: func(d *Decoder, p unsafe.Pointer) {
			if d.r.Null() {
				return
			}
			n := d.r.CountElements()
			if d.r.Err() != nil || n == 0 {
				d.r.Skip()
				return
			}
			s := reflect.MakeSlice(t, n, n)
			data, i := s.UnsafePointer(), 0
			for range d.r.Elements() {
				if i == n {
					d.r.Fail("a list of %d elements has more", n)
					return
				}
				elem.dec(d, unsafe.Add(data, uintptr(i)*size))
				i++
			}
			*(*sliceHeader)(p) = sliceHeader{data, n, n}
		},
	}
}

// slow is any type by encoding/json.
func slow(t reflect.Type) value {
	return value{
		zero: func(p unsafe.Pointer) bool {
			v := reflect.NewAt(t, p).Elem()
			if k := v.Kind(); k == reflect.Map || k == reflect.Slice {
				return v.Len() == 0
			}
			return v.IsZero()
		},
		enc: func(dst []byte, p unsafe.Pointer) []byte {
			b, err := json.Marshal(reflect.NewAt(t, p).Interface())
			if err != nil {
				// Only a marshaller of ours can fail, on a value it made itself.
				panic(fmt.Sprintf("doc: cannot write a %s: %v", t, err))
			}
			return append(dst, b...)
		},
		dec: func(d *Decoder, p unsafe.Pointer) {
			from := d.r.Offset()
			d.r.Skip()
			if d.r.Err() == nil {
				if err := json.Unmarshal(d.r.Raw(from), reflect.NewAt(t, p).Interface()); err != nil {
					d.r.Fail("%w", err)
				}
			}
		},
	}
}

var boolValue = value{
	zero: func(p unsafe.Pointer) bool { return !*(*bool)(p) },
	enc:  func(dst []byte, p unsafe.Pointer) []byte { return strconv.AppendBool(dst, *(*bool)(p)) },
	dec:  func(d *Decoder, p unsafe.Pointer) { *(*bool)(p) = d.r.Bool() },
}

var stringValue = value{
	zero: func(p unsafe.Pointer) bool { return *(*string)(p) == "" },
	enc:  func(dst []byte, p unsafe.Pointer) []byte { return jsontext.AppendString(dst, *(*string)(p)) },
	dec:  func(d *Decoder, p unsafe.Pointer) { *(*string)(p) = d.Intern(d.r.Text()) },
}

var hashValue = value{
	zero: func(p unsafe.Pointer) bool { return (*core.Hash)(p).IsZero() },
	enc: func(dst []byte, p unsafe.Pointer) []byte {
		return append(hex.AppendEncode(append(dst, '"'), (*core.Hash)(p)[:]), '"')
	},
	dec: func(d *Decoder, p unsafe.Pointer) {
		if b := d.r.Text(); d.r.Err() == nil {
			if err := (*core.Hash)(p).UnmarshalText(b); err != nil {
				d.r.Fail("%w", err)
			}
		}
	},
}

// parsedTypes are the types of core that are stored as the text they were parsed from.
var parsedTypes = map[reflect.Type]value{
	reflect.TypeFor[core.PartitionList](): parsedValue[core.PartitionList](),
	reflect.TypeFor[core.Constraint]():    parsedValue[core.Constraint](),
	reflect.TypeFor[core.Licenses]():      parsedValue[core.Licenses](),
	reflect.TypeFor[core.SwitchLimit]():   parsedValue[core.SwitchLimit](),
	reflect.TypeFor[core.Dependency]():    parsedValue[core.Dependency](),
}

// parsedValue parses equal texts once per Decoder: the jobs of a user ask for the same things.
func parsedValue[T interface {
	IsZero() bool
	String() string
}, P interface {
	*T
	encoding.TextUnmarshaler
}]() value {
	t := reflect.TypeFor[T]()
	return value{
		zero: func(p unsafe.Pointer) bool { return (*(*T)(p)).IsZero() },
		enc:  func(dst []byte, p unsafe.Pointer) []byte { return jsontext.AppendString(dst, (*(*T)(p)).String()) },
		dec: func(d *Decoder, p unsafe.Pointer) {
			b := d.r.Text()
			if v, ok := d.parsed[parsedKey{t, string(b)}]; ok {
				*(*T)(p) = v.(T)
				return
			}
			if err := P(p).UnmarshalText(b); err != nil {
				d.r.Fail("%w", err)
				return
			}
			if len(b) <= internLen && len(d.parsed) < internMax {
				d.parsed[parsedKey{t, string(b)}] = *(*T)(p)
			}
		},
	}
}

func signed[T int | int32 | int64]() value {
	return value{
		zero: func(p unsafe.Pointer) bool { return *(*T)(p) == 0 },
		enc:  func(dst []byte, p unsafe.Pointer) []byte { return strconv.AppendInt(dst, int64(*(*T)(p)), 10) },
		dec: func(d *Decoder, p unsafe.Pointer) {
			n := d.r.Int()
			if int64(T(n)) != n {
				d.r.Fail("%d is too big", n)
			}
			*(*T)(p) = T(n)
		},
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64]() value {
	return value{
		zero: func(p unsafe.Pointer) bool { return *(*T)(p) == 0 },
		enc:  func(dst []byte, p unsafe.Pointer) []byte { return strconv.AppendUint(dst, uint64(*(*T)(p)), 10) },
		dec: func(d *Decoder, p unsafe.Pointer) {
			n := d.r.Uint()
			if uint64(T(n)) != n {
				d.r.Fail("%d is too big", n)
			}
			*(*T)(p) = T(n)
		},
	}
}
