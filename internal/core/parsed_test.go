package core

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// A text that is parsed where it comes in is stored and sent as before it had a type: byte for byte, faults included.
func TestParsedTextsKeepTheirForm(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{}`,
		`{"constraint":"fast\u0026ib"}`,
		`{"constraint":"[a|b]","prefer":"a*2"}`,
		`{"constraint":"a\u0026\u0026b","dependency":"sometimes:1","licenses":"a,b|c","prefer":"!x","switches":"few"}`,
		`{"dependency":"afterok:1:2?after:3+4","licenses":"matlab:2,ansys","switches":"2@1:00:00"}`,
	} {
		var x Extra
		if err := json.Unmarshal([]byte(doc), &x); err != nil {
			t.Errorf("%s: %v", doc, err)
		} else if got, _ := json.Marshal(&x); string(got) != doc {
			t.Errorf("%s came back as %s", doc, got)
		}
	}
	var x Extra
	if err := json.Unmarshal([]byte(`{"constraint":"","licenses":null}`), &x); err != nil || !x.Constraint.IsZero() ||
		!x.Licenses.IsZero() {
		t.Errorf("empty texts: %v, %q, %q", err, x.Constraint, x.Licenses)
	}
}

// What does not parse is never granted.
func TestFaultyTextsFailClosed(t *testing.T) {
	t.Parallel()
	var x Extra
	doc := `{"constraint":"a&&b","dependency":"sometimes:1","licenses":"a,b|c","prefer":"!x","switches":"few"}`
	if err := json.Unmarshal([]byte(doc), &x); err != nil {
		t.Fatal(err)
	}
	for what, fault := range map[string]error{
		"constraint": x.Constraint.Fault(), "prefer": x.Prefer.Fault(), "dependency": x.Dependency.Fault(),
		"licenses": x.Licenses.Fault(), "switches": x.Switches.Fault(),
	} {
		if fault == nil {
			t.Errorf("%s: no fault", what)
		}
	}
	if n := (&Node{Features: []string{"a", "b"}}); x.Constraint.IsMetBy(n) || x.Constraint.Expr() != nil ||
		x.Constraint.Features() != nil {
		t.Errorf("constraint %q lets %v in", x.Constraint, n.Features)
	}
	if x.Dependency.Needs() != nil || x.Switches.Count() != 0 {
		t.Errorf("dependency %v, switches %d", x.Dependency.Needs(), x.Switches.Count())
	}
	if r := x.Licenses.Request(); r == nil || r.Any || len(r.List) != 1 || r.List[0] != (License{"a,b|c", 1}) {
		t.Errorf("licenses: %+v", r)
	}
}

func TestConstraintFeatures(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a": {"a"}, "a&b,c": {"a", "b", "c"}, "a|b": nil, "(a)": nil, " a": nil, "[a]": nil, "a*2": nil,
	} {
		c, err := ParseConstraint(text)
		if err != nil {
			t.Fatal(err)
		}
		got := c.Features()
		if len(got) != len(want) {
			t.Errorf("%q: %q, want %q", text, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	}
}

func TestConstraintIsMetBy(t *testing.T) {
	t.Parallel()
	n := &Node{Features: []string{"a", "b"}}
	for text, want := range map[string]bool{
		"": true, "a": true, "a&b": true, "a&c": false, "c|b": true, "[c|b]": true, "[c|d]": false, "c*2": true,
	} {
		if c, _ := ParseConstraint(text); c.IsMetBy(n) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestSwitchLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]switchLimit{
		"1": {1, Forever}, "2@1:00:00": {2, 3600}, "3@0": {3, 0}, "1@UNLIMITED": {1, Forever},
	} {
		if l, err := ParseSwitchLimit(text); err != nil || l.Count() != want.count || l.Wait() != want.wait {
			t.Errorf("%q: %d, %d, %v", text, l.Count(), l.Wait(), err)
		}
	}
}

func TestLicensesAreBounded(t *testing.T) {
	t.Parallel()
	text := make([]byte, maxLicenseText+1)
	for i := range text {
		text[i] = "a,"[i%2]
	}
	if _, err := ParseLicenses(string(text)); err == nil {
		t.Error("a request of 64 KiB was parsed")
	}
}

// Jobs that name no partition get the default one at each submission.
func TestOnePartitionCostsNothing(t *testing.T) {
	name := PartitionName("main")
	var l PartitionList
	if n := testing.AllocsPerRun(100, func() { l = ListPartitions(name) }); n != 0 || l.First() != name {
		t.Errorf("a list of %q: %v allocations", l, n)
	}
}

// A list of partitions is stored and sent as it was written, and is split once.
func TestPartitionList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]PartitionName{
		"": {""}, "main": {"main"}, "a,b": {"a", "b"}, "a,,b": {"a", "", "b"}, ",": {"", ""},
	} {
		l := ParsePartitions(text)
		got := slices.Collect(l.All())
		if !slices.Equal(got, want) || l.Len() != len(want) || l.First() != want[0] || l.IsZero() != (text == "") {
			t.Errorf("%q: %q, %d, %q", text, got, l.Len(), l.First())
		}
		if !ListPartitions(want...).Equal(l) || l.Has("b") != slices.Contains(want, "b") {
			t.Errorf("%q: made of %q: %q", text, want, ListPartitions(want...))
		}
		doc, _ := json.Marshal(&Spec{Partition: l})
		var was struct {
			Partition string `json:"partition"`
		}
		var is Spec
		if json.Unmarshal(doc, &was) != nil || json.Unmarshal(doc, &is) != nil || was.Partition != text ||
			!is.Partition.Equal(l) || text == "" && bytes.Contains(doc, []byte("partition")) {
			t.Errorf("%q came back as %q, %q in %s", text, was.Partition, is.Partition, doc)
		}
	}
}
