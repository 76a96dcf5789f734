package jsontext

import "bytes"

// HasNUL reports whether a string of the JSON text data holds a NUL character. Only its escape can: a NUL byte is not
// allowed in JSON.
func HasNUL(data []byte) bool {
	escape := []byte(`\u0000`)
	for {
		at := bytes.Index(data, escape)
		if at < 0 {
			return false
		}
		before := len(data[:at]) - len(bytes.TrimRight(data[:at], `\`))
		if before%2 == 0 { // otherwise the backslash is itself escaped
			return true
		}
		data = data[at+len(escape):]
	}
}

// Count bounds what data decodes to before it is decoded: strings is the number of its strings, keys included, others
// the number of its other values, except members of objects, whose keys are strings. White space before a string may
// count it in both. The text need not be valid.
func Count(data []byte) (strings, others int) {
	inside := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			if inside = !inside; inside {
				strings++
			}
		case !inside && (c == '{' || c == '[' || c == ',' && !(i+1 < len(data) && data[i+1] == '"')):
			others++
		}
	}
	return strings, others
}
