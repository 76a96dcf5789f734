package pmix

import "fmt"

// maxDepth is how deep arrays may lie in each other.
const maxDepth = 8

// skip passes over one value of a type.
func (r *reader) skip(t uint16, depth int) {
	switch t {
	case typeUndef:
	case typeBool, typeByte, typeInt8, typeUint8, typePersist, typePointer, typeScope, typeRange, typeCommand,
		typeProcState, typeAlloc, typeJobState, typeLinkState:
		r.byte()
	case typeInt16, typeUint16, typeDataType, typeIOF, typeLoctype:
		r.uint16()
	case typeInt32, typeUint32, typeStatus, typeRank, typeDirectives:
		r.uint32()
	case typeInt64, typeUint64, typeTime, typeDevtype:
		r.uint64()
	case typeTimeval:
		r.uint64()
		r.uint64()
	case typeInt, typeUint, typeSize:
		r.tagged()
	case typePID:
		r.described()
	case typeString, typeFloat, typeDouble, typeNspace:
		r.string()
	case typeBytes, typeCompressed, typeRegex, typeCompBytes:
		r.blob()
	case typeProc:
		r.string()
		r.uint32()
	case typeEnvar:
		r.string()
		r.string()
		r.byte()
	default:
		r.skipNested(t, depth)
	}
}

// skipNested passes over a value that holds others.
func (r *reader) skipNested(t uint16, depth int) {
	if depth >= maxDepth {
		r.fail(fmt.Errorf("values lie in more than %d others", maxDepth))
		return
	}
	switch t {
	case typeValue:
		r.skip(r.uint16(), depth+1)
	case typeKval:
		r.string()
		r.skip(r.uint16(), depth+1)
	case typeInfo:
		r.string()
		r.uint32()
		r.skip(r.uint16(), depth+1)
	case typeArray:
		of, n := r.uint16(), r.tagged()
		for ; n > 0 && of != typeUndef && r.err == nil; n-- {
			before := len(r.b)
			if r.skip(of, depth+1); len(r.b) == before {
				r.fail(fmt.Errorf("an array of nothing"))
			}
		}
	default:
		r.fail(fmt.Errorf("values of type %d are not known", t))
	}
}

// info is one directive of a call, as far as they matter here: a flag, a number, or neither.
type info struct {
	key    string
	is     bool
	number int64
}

// infos reads the directives of a call.
func (r *reader) infos() []info {
	r.items(1)
	n := r.tagged()
	if n == 0 || r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	r.items(int(n))
	var list []info
	for ; n > 0 && r.err == nil; n-- {
		x := info{key: r.string()}
		r.uint32()
		switch t := r.uint16(); t {
		case typeBool:
			x.is = r.byte() != 0
		case typeUndef:
			x.is = true
		case typeInt32, typeInt:
			if t == typeInt && !r.flex {
				r.uint16()
			}
			x.number = int64(r.int32())
		case typeUint32:
			x.number = int64(r.uint32())
		default:
			r.skip(t, 0)
		}
		list = append(list, x)
	}
	return list
}

// keysOf are the keys of packed pairs. vague is true where there may be more: a value is of a type that is not
// known, or there are too many.
func keysOf(d dialect, packed []byte) (keys map[string]bool, vague bool) {
	r := &reader{dialect: d, b: packed}
	keys = map[string]bool{}
	for len(r.b) > 0 {
		if len(keys) >= maxKeys {
			return keys, true
		}
		r.items(1)
		key := r.string()
		if r.err == nil && len(key) <= maxKey { // nobody can ask for a longer one
			keys[key] = true
		}
		r.skip(r.uint16(), 0)
	}
	return keys, r.err != nil
}
