package api

import "bireme.dev/bireme/internal/core"

// maxValues bounds the values in the body of a submission or a step: three bytes of JSON become hundreds in memory.
const maxValues = 1 << 16

// checkValues refuses a body with more values than any submission has, before it is decoded.
func checkValues(data []byte) error {
	if len(data) <= maxValues {
		return nil
	}
	values, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == ',' || c == '{' || c == '['):
			if values++; values > maxValues {
				return core.Errorf(core.TooLarge, "the request has more than %d values", maxValues).Because("request_too_large")
			}
		}
	}
	return nil
}

// specTooLarge words the refusal of a job's description.
func specTooLarge(size int) error {
	return core.Errorf(core.TooLarge, "the job's description has %d bytes; the limit is %d", size, maxSpec).Because("request_too_large")
}
