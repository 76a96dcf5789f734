package sqldump

import (
	"fmt"
	"strconv"
	"strings"
)

// find returns a column's value; nil: the table has no such column, or the row does not give it.
func (r *Row) find(column string) *value {
	i, ok := r.Table.index[column]
	if !ok {
		return nil
	}
	if r.cols == nil {
		return &r.values[i]
	}
	for k, c := range r.cols {
		if c == i {
			return &r.values[k]
		}
	}
	return nil
}

// Has reports whether the table has a column.
func (r *Row) Has(column string) bool {
	_, ok := r.Table.index[column]
	return ok
}

// Null reports whether a column is NULL or not there.
func (r *Row) Null(column string) bool {
	v := r.find(column)
	return v == nil || v.null
}

// Text is a column's text; empty if it is NULL or not there. Bytes that are no UTF-8 become U+FFFD.
func (r *Row) Text(column string) string {
	v := r.find(column)
	if v == nil || v.null {
		return ""
	}
	return strings.ToValidUTF8(string(v.text), "\uFFFD")
}

// Int is a column's whole number; otherwise is its value where it is NULL or not there.
func (r *Row) Int(column string, otherwise int64) (int64, error) {
	v := r.find(column)
	if v == nil || v.null {
		return otherwise, nil
	}
	text := string(v.text)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if u, uerr := strconv.ParseUint(text, 10, 64); uerr == nil { // unsigned columns hold marks near 2^64
			return int64(u), nil
		}
		return 0, fmt.Errorf("column %s: %q is no whole number", column, cut(text))
	}
	return n, nil
}

// Float is as Int for numbers with a fraction.
func (r *Row) Float(column string, otherwise float64) (float64, error) {
	v := r.find(column)
	if v == nil || v.null {
		return otherwise, nil
	}
	f, err := strconv.ParseFloat(string(v.text), 64)
	if err != nil {
		return 0, fmt.Errorf("column %s: %q is no number", column, cut(string(v.text)))
	}
	return f, nil
}

func cut(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
