package grammar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// say writes a constraint with all its parentheses.
func (c *Constraint) say() string {
	var parts []string
	if c.All != nil {
		parts = append(parts, c.All.say())
	}
	if len(c.Either) > 0 {
		parts = append(parts, "either "+sayAll(c.Either, " | "))
	}
	for _, n := range c.Counts {
		parts = append(parts, fmt.Sprintf("%d %s", n.Count, n.Of.say()))
	}
	return strings.Join(parts, "; ")
}

func (f *Features) say() string {
	if f.Name != "" {
		return f.Name
	}
	op := "&"
	if f.Any {
		op = "|"
	}
	return "(" + sayAll(f.Of, op) + ")"
}

func sayAll(list []*Features, op string) string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = f.say()
	}
	return strings.Join(out, op)
}

func TestConstraint(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"fast":                      "fast",
		"fast&ib":                   "(fast&ib)",
		"fast,ib&gen-2.1":           "(fast&ib&gen-2.1)",
		"a|b":                       "(a|b)",
		"a&b|c":                     "((a&b)|c)",
		"a|b&c":                     "((a|b)&c)",
		"a|(b&c)":                   "(a|(b&c))",
		"((a|b)&(c|d))|e":           "(((a|b)&(c|d))|e)",
		"graphics*4":                "4 graphics",
		"graphics*4&ib":             "ib; 4 graphics",
		"(a|b)*2":                   "2 (a|b)",
		"[a|b]":                     "either a | b",
		"[r1|(r2&ib)|r3]&fast":      "fast; either r1 | (r2&ib) | r3",
		"fast,[r1|r2]":              "fast; either r1 | r2",
		"[rack1*2&rack2*4]":         "2 rack1; 4 rack2",
		"[(a|b)*1&c*2]":             "1 (a|b); 2 c",
		"[(knl&flat)*4&haswell*1]":  "4 (knl&flat); 1 haswell",
		" a & b ":                   "(a&b)",
		"[a|b]&c*2":                 "either a | b; 2 c",
		"c*2&[a|b]":                 "either a | b; 2 c",
		"[a]":                       "either a",
		"[a*3]":                     "3 a",
		"[ (a|b)*1 & c*2 ] & (d|e)": "(d|e); 1 (a|b); 2 c",
	} {
		c, err := ParseConstraint(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if got := c.say(); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestConstraintErrors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":              "0 must not be empty",
		"a&":            "2 unexpected end",
		"&a":            "0 unexpected '&'",
		"a&&b":          "2 unexpected '&'",
		"a b":           "2 unexpected 'b'",
		"!a":            "0 requiring the absence of a feature is not supported",
		"(a":            "2 unexpected end",
		"a)":            "1 unexpected ')'",
		"()":            "1 unexpected ')'",
		"[a|b":          "4 unexpected end",
		"[]":            "1 unexpected ']'",
		"a*":            "2 unexpected end",
		"a*0":           "2 a count must be 1 or more",
		"a*x":           "2 unexpected 'x'",
		"a*99999999":    "2 number above 1048576",
		"a*2&b*4":       "5 counts of several features must be in brackets",
		"a*2&[b*2&c*3]": "4 counts of several features must be in brackets",
		"a*2|b":         "4 a count or brackets cannot be one of several alternatives",
		"b|a*2":         "2 a count or brackets cannot be one of several alternatives",
		"x&[a|b]|c":     "8 a count or brackets cannot be one of several alternatives",
		"[a|b]&[c|d]":   "6 only one pair of brackets is allowed",
		"[a|b&c]":       "4 brackets must contain either alternatives joined by | or counts joined by &",
		"[a*2|b*3]":     "1 an alternative in brackets cannot have a count",
		"[a*2&b]":       "5 each term joined by & in brackets needs a count",
		"[a&b]":         "1 each term joined by & in brackets needs a count",
		"[a|b]*2":       "5 a count must follow a feature or parentheses, not brackets",
		"(a*2|b)":       "2 a count is not allowed inside parentheses",
		"([a|b])":       "1 brackets are not allowed inside parentheses",
		"a\"b":          "1 unexpected '\"'",
		strings.Repeat("(", 40) + "a" + strings.Repeat(")", 40): "32 parentheses nested more than 32 deep",
	} {
		c, err := ParseConstraint(in)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q was read as %s", in, c.say())
		} else if got := fmt.Sprint(e.Pos, " ", e.Msg); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestFeaturesHas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		expr, have string
		want       bool
	}{
		{"a&b|c", "c", true},
		{"a&b|c", "a", false},
		{"a|b&c", "a", false},
		{"a|b&c", "b c", true},
		{"a|(b&c)", "a", true},
		{"a", "", false},
		{"A", "a", false},
		{"(a|b)&(c|d)", "b d", true},
		{"(a|b)&(c|d)", "a b", false},
	} {
		c, err := ParseConstraint(tc.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.All.Has(strings.Fields(tc.have)); got != tc.want {
			t.Errorf("%s on a node with %q: %v", tc.expr, tc.have, got)
		}
	}
}

func FuzzParseConstraint(f *testing.F) {
	for _, s := range []string{"a&b|c", "[a*2&(b|c)*4]&d", "[a|b],c", "((a))*3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ParseConstraint(in)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(in) {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		if len(c.Names()) == 0 || len(c.Counts) > maxFeatureCounts {
			t.Fatalf("%q was read as %s", in, c.say())
		}
	})
}
