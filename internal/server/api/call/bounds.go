package call

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// Bounds of the values in the body of a submission or a step. Three bytes of JSON that are an object become hundreds
// in memory, those that are a string sixteen: an environment may have more of them than a submission has of anything
// else, and limits.env_vars bounds it by name.
const (
	maxValues  = 1 << 16 // except for strings
	maxStrings = 1 << 20
)

// CheckValues refuses a body with more values than any submission has, before it is decoded.
func CheckValues(data []byte) error {
	if len(data) <= maxValues {
		return nil
	}
	switch strings, others := jsontext.Count(data); {
	case strings > maxStrings:
		return core.Errorf(core.TooLarge, "the request has more than %d strings", maxStrings).Because("request_too_large")
	case others > maxValues:
		return core.Errorf(core.TooLarge, "the request has more than %d values", maxValues).Because("request_too_large")
	}
	return nil
}
