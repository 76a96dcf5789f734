package slurmtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// RecordedKeys holds the first record of a JSON document against that of a recording: every key of the recording is
// there, with a value of the same kind. What a recording has as null or an empty list may be either.
func RecordedKeys(t testing.TB, recording, list, got string) {
	t.Helper()
	want, _ := Golden(t, recording)
	first := func(text string) map[string]any {
		var doc map[string]json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text))
		if err := dec.Decode(&doc); err == nil {
			var records []map[string]any
			if err := json.Unmarshal(doc[list], &records); err == nil && len(records) > 0 {
				return records[0]
			}
		}
		// a recording that was cut short
		at := strings.Index(text, `"`+list+`": [`)
		if at < 0 {
			t.Fatalf("%s: there are no %s", recording, list)
		}
		var record map[string]any
		if err := json.NewDecoder(strings.NewReader(text[at+len(list)+5:])).Decode(&record); err != nil {
			t.Fatalf("%s: %v", recording, err)
		}
		return record
	}
	sameKeys(t, "", first(want), first(got))
}

func sameKeys(t testing.TB, path string, want, got map[string]any) {
	t.Helper()
	for key, w := range want {
		g, ok := got[key]
		if !ok {
			t.Errorf("%s.%s is missing", path, key)
			continue
		}
		inner, isObject := w.(map[string]any)
		if other, same := g.(map[string]any); isObject && same {
			sameKeys(t, path+"."+key, inner, other)
			continue
		}
		if w != nil && g != nil && fmt.Sprintf("%T", w) != fmt.Sprintf("%T", g) {
			t.Errorf("%s.%s is %v, recorded %v", path, key, g, w)
		}
	}
}
