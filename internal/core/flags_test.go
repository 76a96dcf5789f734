package core

import (
	"encoding/json"
	"testing"
)

func TestFlagsInWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"as Slurm prints them": {"MAINT,DAILY", "MAINT,DAILY"},
		"in any case and way":  {"purge, replace-down ,timefloat", "REPLACE_DOWN,PURGE_COMP,TIME_FLOAT"},
		"none":                 {"", ""},
		"mistyped":             {"maint,dialy", `unknown flag "dialy"; did you mean DAILY?`},
		"far off":              {"sometimes", `unknown flag "sometimes"`},
	} {
		got, err := ParseReserveFlags(tc.text)
		text := got.String()
		if err != nil {
			text = err.Error()
		}
		if text != tc.want {
			t.Errorf("%s: %q gives %q, want %q", name, tc.text, text, tc.want)
		}
	}
	for f := ReserveFlag(1); f <= ReserveUserDelete; f <<= 1 {
		if back, err := ParseReserveFlags(f.String()); err != nil || back != f {
			t.Errorf("flag %d prints as %q, which reads as %d, %v", f, f, back, err)
		}
	}
	for f := QOSFlag(1); f <= UsageFactorSafe; f <<= 1 {
		b, err := json.Marshal(f)
		var back QOSFlag
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back != f {
			t.Errorf("flag %d is %s, which reads as %d, %v", f, b, back, err)
		}
	}
}
