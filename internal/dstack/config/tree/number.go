package tree

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Whole gives the whole number a value is: one itself, a float without fraction, a boolean, a text of digits.
func (n *Node) Whole() (int64, bool) {
	switch n.Form {
	case Bool:
		if n.Truth {
			return 1, true
		}
		return 0, true
	case Int:
		return n.Int, !n.Huge
	case Real:
		if n.Float == math.Trunc(n.Float) && math.Abs(n.Float) < 1<<62 {
			return int64(n.Float), true
		}
	case Text:
		return Whole(n.Text)
	default: // not a number
	}
	return 0, false
}

// Whole reads digits with a sign, blanks around them, underscores between them and a fraction of zeros.
func Whole(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	body, fraction, point := strings.Cut(s, ".")
	if point && (fraction == "" || strings.Trim(fraction, "0") != "") {
		return 0, false
	}
	digits := strings.TrimLeft(body, "+-")
	if len(body)-len(digits) > 1 {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i]
		between := c == '_' && i > 0 && i+1 < len(digits) && digits[i-1] != '_'
		if !isDigit(c) && !between {
			return 0, false
		}
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(body, "_", ""), 10, 64)
	return v, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// SaysNothing reports whether a value is null, false or empty.
func (n *Node) SaysNothing() bool {
	switch n.Form {
	case Null:
		return true
	case Bool:
		return !n.Truth
	case Text:
		return n.Text == ""
	case List:
		return len(n.Items) == 0
	case Mapping:
		return len(n.Keys) == 0
	default: // not a number
	}
	return false
}

// FormatFloat writes a finite number as Python's repr does.
func FormatFloat(v float64) string {
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
		return mantissa + "e" + exponent
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// WriteObject writes a JSON object of n keys in their order.
func WriteObject(n int, at func(int) (string, any)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, value := at(i)
		for j, v := range []any{name, value} {
			text, err := Marshal(v)
			if err != nil {
				return nil, err
			}
			b.Write(text)
			if j == 0 {
				b.WriteByte(':')
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Marshal is json.Marshal that leaves <, > and & as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
