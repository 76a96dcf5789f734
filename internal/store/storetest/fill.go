package storetest

import (
	"encoding"
	"fmt"
	"reflect"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
)

// filled makes a T with no field zero: a field that is added to a record and not stored fails the suite.
func filled[T any]() *T {
	v := new(T)
	n := 0
	fill(reflect.ValueOf(v).Elem(), &n)
	return v
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n%3 + 1)) // states and roles: any of these is one
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 1.0/3)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[core.TRES]() {
			v.Set(reflect.ValueOf(core.TRESOf(core.Amount{Name: "cpu", Count: int64(*n)},
				core.Amount{Name: "gres/gpu:a100", Count: 2})))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[taskset.Set]() {
			v.Set(reflect.ValueOf(taskset.Of(1, 5)))
			return
		}
		if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok { // it keeps what does not parse
			if err := u.UnmarshalText(fmt.Appendf(nil, "text %d", *n)); err != nil {
				panic(fmt.Sprintf("storetest: cannot fill a %s: %v", v.Type(), err))
			}
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(fmt.Sprintf("storetest: cannot fill a %s", v.Type()))
	}
}
