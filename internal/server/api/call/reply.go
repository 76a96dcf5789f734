package call

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

func WriteJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // our own types: a broken invariant
		panic(err)
	}
	WriteRaw(w, code, append(data, '\n'))
}

func WriteRaw(w http.ResponseWriter, code int, data []byte) {
	h := w.Header()
	h["Content-Type"] = JsonType
	h["Content-Length"] = []string{strconv.Itoa(len(data))}
	w.WriteHeader(code)
	_, _ = w.Write(data) // the caller may have left
}

var JsonType = []string{"application/json"}

// OK is the answer of calls that have nothing to say.
type OK struct{}

// StoreError words a failure of the store for users; the cause is for the log.
func StoreError(err error) error {
	var e *core.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &core.Error{Code: core.Unavailable, Message: "the store does not answer; try again", Err: err}
}

func Number(text string, otherwise int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, core.Errorf(core.Invalid, "%q is not a number", text)
	}
	return n, nil
}

// MaxPage bounds the records in an answer.
const MaxPage = 5_000
