package schema

import (
	"iter"
	"strings"
)

// Write writes a record as a version has it.
func (r *Record) Write(w Writer, v Version) {
	w.BeginObject()
	r.writeFields(w, v)
	w.EndObject()
}

func (r *Record) writeFields(w Writer, v Version) {
	for i := range r.of.fields {
		f := &r.of.fields[i]
		form := f.form(v)
		if form.kind == absent {
			continue
		}
		value := r.values[i]
		if e, ok := value.(Either); ok {
			if value = e.New; v <= e.Until {
				value = e.Old
			}
		}
		if _, omitted := value.(Omit); omitted {
			continue
		}
		w.Key(f.name)
		writeValue(w, v, form, value)
	}
}

// writeEmpty writes a record in which nothing is set.
func (o *Object) writeEmpty(w Writer, v Version) {
	(&Record{of: o, values: make([]any, len(o.fields))}).Write(w, v)
}

// None stands for an object that is not there: {} in its place.
type None struct{}

func writeValue(w Writer, v Version, f *form, value any) {
	switch f.kind {
	case text:
		w.String(textOf(value))
	case textOrNull:
		if s := textOf(value); s != "" {
			w.String(s)
			return
		}
		w.Null()
	case boolean:
		b, _ := value.(bool)
		w.Bool(b)
	case integer, integerOrNull:
		writeInteger(w, f.kind, numberOf(value))
	case double:
		w.Float(numberOf(value).value)
	case optional:
		writeOptional(w, f, numberOf(value))
	case list:
		writeList(w, v, f.elem, value)
	case object:
		switch x := value.(type) {
		case *Record:
			x.Write(w, v)
		case None:
			w.BeginObject()
			w.EndObject()
		default:
			Of(f.name).writeEmpty(w, v)
		}
	case free:
		w.BeginObject()
		w.EndObject()
	case absent:
	}
}

// writeInteger writes a plain number. What has no bound is the greatest number of 32 bits, as Slurm's INFINITE.
func writeInteger(w Writer, k kind, n Number) {
	switch {
	case n.state == 2:
		w.Int(infinite)
	case n.state == 0 && k == integerOrNull:
		w.Null()
	default:
		w.Int(n.whole)
	}
}

const infinite = 0xffffffff

func writeOptional(w Writer, f *form, n Number) {
	w.BeginObject()
	w.Key("set")
	w.Bool(n.state != 0)
	w.Key("infinite")
	w.Bool(n.state == 2)
	w.Key("number")
	if f.format == "double" {
		w.Float(n.value)
	} else {
		w.Int(n.whole)
	}
	w.EndObject()
}

func writeList(w Writer, v Version, elem *form, value any) {
	w.BeginArray()
	switch x := value.(type) {
	case []*Record:
		for _, r := range x {
			r.Write(w, v)
		}
	case iter.Seq[*Record]: // made while it is written: a listing may be long
		for r := range x {
			r.Write(w, v)
		}
	case []string:
		for _, s := range x {
			w.String(s)
		}
	case string:
		if x != "" {
			for _, s := range strings.Split(x, ",") {
				w.String(s)
			}
		}
	case []Number:
		for _, n := range x {
			writeValue(w, v, elem, n)
		}
	}
	w.EndArray()
}

// textOf is a value as text: lists are joined by commas.
func textOf(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case []string:
		return strings.Join(x, ",")
	}
	return ""
}

func numberOf(value any) Number {
	switch x := value.(type) {
	case Number:
		return x
	case int:
		return Int(x)
	case int32:
		return Int(x)
	case int64:
		return Int(x)
	case uint32:
		return Int(x)
	case uint16:
		return Int(x)
	case float64:
		return Float(x)
	}
	return Number{}
}
