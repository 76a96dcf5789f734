package display

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/slurm/cmd"
)

func TestCheck(t *testing.T) {
	for env, want := range map[string]string{
		"": "No DISPLAY variable set", "DISPLAY=": "Error parsing", "DISPLAY=here": "Error parsing",
		"DISPLAY=:x": "Error parsing",
		"DISPLAY=:0": "", "DISPLAY=:0.1": "", "DISPLAY=localhost:10.0": "", "DISPLAY=[::1]:10.0": "",
		"DISPLAY=/tmp/launch/org.x:0": "",
	} {
		w := &cmd.World{Environ: []string{env}}
		err := Check(w, "all")
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", env, err)
		}
		if err := Check(w, ""); err != nil {
			t.Errorf("%s, without the option: %v", env, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for which, want := range map[string]string{"all": "0,1,2", "first": "0", "batch": "0", "last": "2"} {
		if got := numbers(which, 3); got != want {
			t.Errorf("%s: %s", which, got)
		}
	}
}
