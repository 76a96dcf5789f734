package conf

import (
	"encoding/json"
	"testing"
)

// Recordings have settings by the names that fields had when they were made.
func TestRecordedNames(t *testing.T) {
	t.Parallel()
	var c Config
	if err := json.Unmarshal([]byte(`{"EnforceAccounts":true}`), &c); err != nil || !c.EnforceProjects {
		t.Errorf("%v, %v", c.EnforceProjects, err)
	}
	b, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(b, &names); err != nil || string(names["EnforceAccounts"]) != "true" {
		t.Errorf("%v in %s", err, b)
	}
}
