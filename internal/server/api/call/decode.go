package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// MaxBody bounds bodies of calls other than submissions.
const MaxBody = 8 << 20

var Bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is the largest buffer that goes back to the pool.
const maxKept = 256 << 10

// announced bounds the memory that a body gets before its bytes have come: the buffer grows with those beyond it.
const announced = 64 << 10

// ReadBody reads at most limit bytes into a pooled buffer; give it back with putBody.
func ReadBody(r *http.Request, limit int64) (*bytes.Buffer, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if t, ok := r.Body.(*TimedBody); ok {
		size := r.ContentLength
		if size < 0 {
			size = limit
		}
		if err := t.Writer.Held.reserve(size); err != nil {
			return nil, err
		}
		AwaitBody(t.Writer.ResponseWriter, r, limit)
	}
	b := Bodies.Get().(*bytes.Buffer)
	b.Reset()
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, announced)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		PutBody(b)
		return nil, &core.Error{Code: core.Invalid, Message: "the request ended early", Err: err}
	case n > limit:
		PutBody(b)
		return nil, tooLarge(limit)
	}
	return b, nil
}

func PutBody(b *bytes.Buffer) {
	if b.Cap() <= maxKept {
		Bodies.Put(b)
	}
}

func tooLarge(limit int64) error {
	return core.Errorf(core.TooLarge, "the request exceeds the limit of %d bytes", limit).Because("request_too_large")
}

// Decode reads a JSON body into v.
func Decode(r *http.Request, v any) error {
	b, err := ReadBody(r, MaxBody)
	if err != nil {
		return err
	}
	defer PutBody(b)
	if jsontext.HasNUL(b.Bytes()) {
		return ErrNUL()
	}
	return Unmarshal(b.Bytes(), v)
}

// ErrNUL refuses a text that holds a NUL character: it cannot be given to a program, and a job's prolog that could
// not be told its name would count as failed, and its node as broken.
func ErrNUL() error {
	return core.Errorf(core.Invalid, "the request contains a NUL byte").Because("bad_json")
}

// Unmarshal reads JSON and words its faults with line and column.
func Unmarshal(data []byte, v any) error {
	err := Strictly(data, v)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	e := core.Errorf(core.Invalid, "the request is not the JSON expected here").Because("bad_json")
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		e.Message = "the request has no body; JSON is expected"
	case errors.As(err, &syntax):
		e.Faults = []core.Fault{{Path: position(data, syntax.Offset), Message: syntax.Error()}}
	case errors.As(err, &kind):
		path := position(data, kind.Offset)
		if kind.Field != "" {
			path += ": " + kind.Field
		}
		e.Faults = []core.Fault{{Path: path, Message: fmt.Sprintf("unexpected JSON %s", kind.Value)}}
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Faults = []core.Fault{{Path: position(data, int64(len(data))), Message: "unexpected end of JSON input"}}
	default:
		e.Faults = []core.Fault{{Path: "line 1", Message: err.Error()}}
		if f := unknownKey(err, data, v); f != nil {
			e.Faults[0] = *f
		}
	}
	if len(e.Faults) > 0 {
		e.Message += ": " + e.Faults[0].Path + ": " + e.Faults[0].Message
	}
	return e
}

func position(data []byte, offset int64) string {
	before := data[:max(0, min(offset, int64(len(data))))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Sprintf("line %d, column %d", line, max(1, column))
}
