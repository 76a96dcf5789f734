package wire

import "encoding/json"

// Detail is one fault of a request in the form of a validation error (422). Loc leads to it from "body".
type Detail struct {
	Type  string          `json:"type"`
	Loc   []any           `json:"loc"` // strings and indices
	Msg   string          `json:"msg"`
	Input json.RawMessage `json:"input"`
	Ctx   map[string]any  `json:"ctx,omitempty"`
}

// Invalid is the error of a request that does not have the form of its model.
type Invalid []Detail

// Error gives the first fault.
func (e Invalid) Error() string {
	if len(e) == 0 {
		return "invalid request"
	}
	return e[0].Msg
}

// Message is one item of the answer to a request that cannot be done (400), or the whole of a refusal (403, 404).
type Message struct {
	Msg  string  `json:"msg"`
	Code *string `json:"code"`
}
