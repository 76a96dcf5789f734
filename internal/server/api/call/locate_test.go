package call

import (
	"strings"
	"testing"
)

// TestUnknownKeysAreFoundWhereTheyAre: the place of a key that is not known is its own, not that of the first text that
// is spelt alike.
func TestUnknownKeysAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	type inner struct {
		Name string `json:"name"`
		Tag  string `json:"tag"`
	}
	type embedded struct {
		Plain string `json:"plain"`
	}
	type outer struct {
		embedded
		Tag   string           `json:"tag"`
		One   inner            `json:"one"`
		Many  []*inner         `json:"many"`
		ByKey map[string]inner `json:"by_key"`
		Any   any              `json:"any"`
	}
	for text, want := range map[string]string{
		"{\"tag\": \"nmae\",\n \"one\": {\"nmae\": 1}}":                         "line 2, column 10: nmae",
		"{\"many\": [{\"tag\": \"x\"},\n {\"plain\": \"y\"}], \"plain\": \"\"}": "line 2, column 3: plain",
		"{\"any\": {\"x\": 1},\n\n \"x\": 1}":                                   "line 3, column 2: x",
		"{\"by_key\": {\"x\": {\"name\": \"\"},\n \"y\": {\"x\": 2}}}":          "line 2, column 8: x",
		"{\"ONE\": {\"Tag\": \"nme\"}, \"nme\": 1}":                             "line 1, column 25: nme",
	} {
		err := Unmarshal([]byte(text), new(outer))
		if err == nil || !strings.Contains(err.Error(), want+": there is no such key") {
			t.Errorf("%q gave %v, want %q", text, err, want)
		}
	}
}
