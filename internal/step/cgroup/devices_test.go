package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDevice(t *testing.T) {
	t.Parallel()
	cases := map[string]deviceRule{
		"c 195:0 rwm": {kind: devChar, major: 195, minor: 0, access: accAll},
		"b 8:* r":     {kind: devBlock, major: 8, minor: wildcard, access: accRead},
		"c 136:* rw":  {kind: devChar, major: 136, minor: wildcard, access: accRead | accWrite},
		"a":           {kind: wildcard, major: wildcard, minor: wildcard, access: accAll},
		"a *:* m":     {kind: wildcard, major: wildcard, minor: wildcard, access: accMknod},
	}
	for text, want := range cases {
		got, err := parseDevice(text)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(deviceRule{})); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "c", "d 1:2 r", "c 1 r", "c 1:x r", "c -1:2 r", "c 1:2 q", "c 1:2 r more"} {
		if _, err := parseDevice(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestAssemble runs the program as the kernel would.
func TestAssemble(t *testing.T) {
	t.Parallel()
	var rules []deviceRule
	for _, text := range []string{"c 1:3 rwm", "b 8:* r", "c *:7 rw"} {
		r, err := parseDevice(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	p := assemble(nil, rules, false)
	cases := []struct {
		kind, access, major, minor uint64
		want                       uint64
	}{
		{devChar, accAll, 1, 3, 1},
		{devChar, accRead, 1, 4, 0},
		{devBlock, accRead, 1, 3, 0},
		{devBlock, accRead, 8, 99, 1},
		{devBlock, accRead | accWrite, 8, 99, 0},
		{devChar, accWrite, 5, 7, 1},
		{devChar, accMknod, 5, 7, 0},
		{devChar, accRead, 195, 0, 0},
	}
	for _, tc := range cases {
		if got := interpret(t, p, [3]uint64{tc.access<<16 | tc.kind, tc.major, tc.minor}); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
	if got := interpret(t, assemble(nil, nil, false), [3]uint64{accRead<<16 | devChar, 1, 3}); got != 0 {
		t.Error("an empty list allows")
	}
	// Denied: a rule that allows it and the rest do not help.
	for _, p := range [][]insn{assemble(rules[:1], nil, true), assemble(rules[:1], rules, true)} {
		for want, minor := range []uint64{3, 4} {
			if got := interpret(t, p, [3]uint64{accRead<<16 | devChar, 1, minor}); got != uint64(want) {
				t.Errorf("c 1:%d: %d", minor, got)
			}
		}
	}
}

func interpret(t *testing.T, p []insn, ctx [3]uint64) uint64 {
	t.Helper()
	var r [11]uint64
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		dst, src := in.reg&15, in.reg>>4
		switch in.op {
		case opLoad32:
			r[dst] = ctx[in.off/4]
		case opMovReg:
			r[dst] = r[src]
		case opMovImm:
			r[dst] = uint64(in.imm)
		case opAndImm:
			r[dst] = uint64(uint32(r[dst]) & uint32(in.imm))
		case opRshImm:
			r[dst] = uint64(uint32(r[dst]) >> in.imm)
		case opJneImm:
			if r[dst] != uint64(in.imm) {
				pc += int(in.off)
			}
		case opExit:
			return r[0]
		default:
			t.Fatalf("operation %#x", in.op)
		}
	}
	t.Fatal("the program has no end")
	return 0
}
