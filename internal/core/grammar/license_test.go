package grammar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLicenses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		list []License
		any  bool
	}{
		"matlab":            {[]License{{"matlab", 1}}, false},
		"matlab:2,ansys":    {[]License{{"matlab", 2}, {"ansys", 1}}, false},
		"matlab:2,matlab:3": {[]License{{"matlab", 5}}, false},
		"matlab:2|ansys:1":  {[]License{{"matlab", 2}, {"ansys", 1}}, true},
		"matlab@lmgr:4":     {[]License{{"matlab@lmgr", 4}}, false},
	} {
		list, any, err := ParseLicenses(in)
		if err != nil || any != want.any || !cmp.Equal(list, want.list) {
			t.Errorf("%q: %v %v %v", in, list, any, err)
		}
	}
	for _, in := range []string{"", "a,", "a:", "a:x", "a:0", "a:2x", "a,b|c", "a@", "@s", "a:99999999999", "2a"} {
		if list, _, err := ParseLicenses(in); err == nil {
			t.Errorf("%q: %v", in, list)
		}
	}
}
