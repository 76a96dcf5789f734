package schema

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Number is a number that may be unset or infinite. The zero value is unset.
type Number struct {
	state uint8 // 0: unset, 1: set, 2: infinite
	value float64
	whole int64
	isInt bool
}

// Infinite is the number without bound.
var Infinite = Number{state: 2}

// Int is a number that is set.
func Int[N ~int | ~int32 | ~int64 | ~uint32 | ~uint16](n N) Number {
	return Number{state: 1, whole: int64(n), value: float64(n), isInt: true}
}

// Positive is a number that is set unless it is 0.
func Positive[N ~int | ~int32 | ~int64 | ~uint32 | ~uint16](n N) Number {
	if n <= 0 {
		return Number{}
	}
	return Int(n)
}

// Float is a number with a fraction.
func Float(f float64) Number { return Number{state: 1, value: f, whole: int64(f)} }

// Time is a moment in seconds; there are none before 1970, and 0 is set, as Slurm has it.
func Time(t core.Time) Number {
	if t == 0 {
		return Int(0)
	}
	return Int(t.Unix())
}

// Record holds the values of a record until it is written.
type Record struct {
	of     *Object
	values []any
}

// New begins a record.
func (o *Object) New() *Record { return &Record{of: o, values: make([]any, len(o.fields))} }

// New begins a record of a name.
func New(name string) *Record { return Of(name).New() }

// Set gives a field its value: a string, bool, []string, Number, any integer, float64, *Record or []*Record. The field
// must be one of some version; a name with dots is one of an object within it. It returns the record.
func (r *Record) Set(name string, value any) *Record {
	if head, rest, nested := strings.Cut(name, "."); nested {
		i, ok := r.of.index[head]
		core.Assert(ok, "schema: %s has no field %s", r.of.name, head)
		inner, _ := r.values[i].(*Record)
		if inner == nil {
			inner = New(r.of.name + "_" + head)
			r.values[i] = inner
		}
		inner.Set(rest, value)
		return r
	}
	i, ok := r.of.index[name]
	core.Assert(ok, "schema: %s has no field %s", r.of.name, name)
	if ok {
		r.values[i] = value
	}
	return r
}

// Get is the value that a field was given; nil: none.
func (r *Record) Get(name string) any {
	if i, ok := r.of.index[name]; ok {
		return r.values[i]
	}
	return nil
}

// Omit leaves a field out.
type Omit struct{}

// Either is a value that versions up to Until have in another way.
type Either struct {
	Until    Version
	Old, New any
}
