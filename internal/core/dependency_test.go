package core

import "testing"

func TestParseDependency(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"afterok:43":                "afterok:43(unfulfilled)",
		"43":                        "afterany:43(unfulfilled)",
		"43:44":                     "afterany:43(unfulfilled),afterany:44(unfulfilled)",
		"afterany:43:44?after:43+5": "afterany:43(unfulfilled)?afterany:44(unfulfilled)?after:43+5(unfulfilled)",
		"afterok:1_7,singleton":     "afterok:1_7(unfulfilled),singleton(unfulfilled)",
		"AfterNotOK:1,aftercorr:2":  "afternotok:1(unfulfilled),aftercorr:2(unfulfilled)",
		"afterok:1_0:2":             "afterok:1_0(unfulfilled),afterok:2(unfulfilled)",
		"after:1+10:2+0":            "after:1+10(unfulfilled),after:2(unfulfilled)",
	} {
		d, err := ParseDependency(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if got := d.Needs().String(); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{
		"", "sometimes:1", "expand:3", "afterburstbuffer:3", "afterok", "afterok:", "afterok:x", "afterok:1,",
		"afterok:1?afterok:2,3", "afterok:1,2?3", "afterok:0",
		"afterok:1+5", "singleton:1", "afterok:1_", "afterok:99999999999999999999", "afterok:1 ", ",1", "afterok::1",
	} {
		if d, err := ParseDependency(in); err == nil {
			t.Errorf("%q was read as %q", in, d.Needs())
		}
	}
}
