package core

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeptOptionsAreStoredAsBefore: options that got fields of their own are read from and written to the object of
// texts that older versions store and send.
func TestKeptOptionsAreStoredAsBefore(t *testing.T) {
	t.Parallel()
	on, off := true, false
	for text, want := range map[string]KeptOptions{
		`{"cron":"@daily","scrontab":"x","scrontab-place":"1"}`: {
			Schedule: "@daily", Slurm: map[string]string{"scrontab": "x", "scrontab-place": "1"},
		},
		`{"kill-on-invalid-dep":"yes","no-kill":""}`:   {NoKill: &on, KillInvalid: &on},
		`{"kill-on-invalid-dep":"no","no-kill":"off"}`: {NoKill: &off, KillInvalid: &off},
		`{"gid":"staff","gpu-bind":"single:1"}`:        {Group: "staff", Slurm: map[string]string{"gpu-bind": "single:1"}},
	} {
		var x Extra
		if err := json.Unmarshal([]byte(`{"options":`+text+`}`), &x); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, x.Kept); diff != "" {
			t.Errorf("%s is read as (+):\n%s", text, diff)
		}
		b, err := json.Marshal(&x)
		if err != nil || string(b) != `{"options":`+text+`}` {
			t.Errorf("%s is written as %s, %v", text, b, err)
		}
	}
}
