package arch

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRulesBite feeds each check a source that breaks it, so that a check which
// has stopped seeing anything fails here.
func TestRulesBite(t *testing.T) {
	t.Parallel()
	const own = `"` + modulePath + "/"
	tests := map[string]struct {
		file, src string
		want      string // part of the only complaint; empty for none
	}{
		"arrow": {
			"internal/core/a.go", "package core; import _ " + own + `internal/store"`,
			"may not enter internal/store",
		},
		"arrow of a subroom": {
			"internal/store/sqlite/a.go", "package sqlite; import _ " + own + `internal/engine"`,
			"may not enter internal/engine",
		},
		"arrow allowed": {"internal/store/sqlite/a.go", "package sqlite; import _ " + own +
			`internal/core/hostlist"`, ""},
		"arrow within":    {"internal/store/sqlite/a.go", "package sqlite; import _ " + own + `internal/store"`, ""},
		"agent to cgroup": {"internal/agent/a.go", "package agent; import _ " + own + `internal/step/cgroup"`, ""},
		"agent to step": {
			"internal/agent/a.go", "package agent; import _ " + own + `internal/step"`,
			"may not enter internal/step",
		},
		"engine from sim": {
			"internal/sim/a.go", "package sim; import _ " + own + `internal/engine"`,
			"may not enter internal/engine",
		},
		"main is free": {"cmd/biremed/a.go", "package main; import _ " + own + `internal/engine"`, ""},
		"no room":      {"internal/shed/a.go", "package shed", "belongs to no room"},
		"test may look": {"internal/core/a_test.go", "package core; import _ \"os\"; import _ " + own +
			`internal/store"`, ""},
		"test package": {"internal/store/storetest/a.go", `package storetest; import _ "testing"`, ""},
		"test package linked": {
			"cmd/biremed/a.go", "package main; import _ " + own + `internal/store/storetest"`,
			"never links",
		},
		"testing linked": {"internal/agent/a.go", `package agent; import _ "testing"`, "never links"},

		"pure os":        {"internal/policy/a.go", `package policy; import _ "os"`, "no I/O"},
		"pure below":     {"internal/engine/state/a.go", `package state; import _ "log/slog"`, "instead of logging"},
		"pure atomic":    {"internal/core/hostlist/a.go", `package hostlist; import _ "sync/atomic"`, "nothing to lock"},
		"pure exception": {"internal/core/a.go", `package core; import _ "net/netip"`, ""},
		"pure module":    {"internal/sched/a.go", `package sched; import _ "golang.org/x/sync/errgroup"`, "third-party"},
		"pure now":       {"internal/sched/a.go", `package sched; import "time"; var _ = time.Now()`, "now is an argument"},
		"pure renamed": {
			"internal/sched/a.go", `package sched; import clock "time"; var _ = clock.Now`,
			"now is an argument",
		},
		"pure sleep":      {"internal/sim/a.go", `package sim; import "time"; func f() { time.Sleep(1) }`, "do not wait"},
		"pure duration":   {"internal/sim/a.go", `package sim; import "time"; var _ = time.Second`, ""},
		"pure print":      {"internal/sim/a.go", `package sim; import "fmt"; func f() { fmt.Println() }`, "no I/O"},
		"pure goroutine":  {"internal/policy/a.go", `package policy; func f() { go f() }`, "no goroutines"},
		"pure global rng": {"internal/sim/a.go", `package sim; import "math/rand/v2"; var _ = rand.IntN(3)`, "given seed"},
		"pure seeded rng": {
			"internal/sim/a.go",
			`package sim; import "math/rand/v2"; var _ = rand.New(rand.NewPCG(1, 2))`, "",
		},

		"driver": {
			"internal/server/a.go", `package server; import _ "github.com/jackc/pgx/v5"`,
			"only below internal/store",
		},
		"driver at home": {
			"internal/store/postgres/a.go",
			`package postgres; import _ "github.com/jackc/pgx/v5/stdlib"`, "",
		},
		"driver in tests": {
			"internal/engine/a_test.go", `package engine; import _ "modernc.org/sqlite"`,
			"only below internal/store",
		},
		"docker": {"internal/cli/a.go", `package cli; import _ "github.com/moby/moby/client"`, "only below internal/agent"},
		"cgo":    {"internal/step/a.go", `package step; import "C"`, "without cgo"},

		"vague folder":  {"internal/core/util/a.go", "package strutil", "util says nothing"},
		"vague package": {"internal/core/thing/a.go", "package helpers", "helpers says nothing"},
		"sleep": {
			"internal/agent/a.go", `package agent; import "time"; func f() { time.Sleep(1) }`,
			"end with its context",
		},
		"print": {
			"internal/agent/a.go", `package agent; import "fmt"; func f() { fmt.Println() }`,
			"belongs to the commands",
		},
		"print of a command": {"internal/cli/a.go", `package cli; import "fmt"; func f() { fmt.Println() }`, ""},
		"sleep in test":      {"internal/agent/a_test.go", `package agent; import "time"; func f() { time.Sleep(1) }`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkgs, fset, err := load(fstest.MapFS{tc.file: {Data: []byte("// Package x is here.\n" + tc.src)}})
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(checkArrows(pkgs), checkPure(pkgs, fset), checkConfined(pkgs),
				checkNames(pkgs), checkComments(pkgs), checkSleep(pkgs, fset), checkPrint(pkgs, fset))
			switch {
			case tc.want == "" && len(got) == 0:
			case tc.want != "" && len(got) == 1 && strings.Contains(got[0], tc.want):
			default:
				t.Errorf("complaints %q, want one with %q (none if empty)", got, tc.want)
			}
		})
	}
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"one":  {map[string]string{"doc.go": "// Package core is.\npackage core", "a.go": "package core"}, ""},
		"none": {map[string]string{"a.go": "//go:build linux\n\npackage core"}, "no package comment"},
		"two": {map[string]string{
			"a.go": "// Package core is.\npackage core",
			"b.go": "// Package core was.\npackage core",
		}, "2 package comments"},
		"test's own": {map[string]string{
			"doc.go":    "// Package core is.\npackage core",
			"a_test.go": "// Tests.\npackage core",
		}, ""},
		"tests alone":   {map[string]string{"a_test.go": "// Package core tests.\npackage core"}, ""},
		"tests without": {map[string]string{"a_test.go": "package core"}, "no package comment"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for n, src := range tc.files {
				fsys["internal/core/"+n] = &fstest.MapFile{Data: []byte(src)}
			}
			pkgs, _, err := load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(checkComments(pkgs), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("complaints %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGoModReplace(t *testing.T) {
	t.Parallel()
	if got := checkGoMod("module x\n\nreplace a => ../a\n"); len(got) != 1 || !strings.HasPrefix(got[0], "go.mod:3") {
		t.Errorf("complaints %q, want one for line 3", got)
	}
}

// TestTable: an arrow to nowhere, to itself, or without a reason is a slip of
// the pen, and two rooms that enter each other are one room.
func TestTable(t *testing.T) {
	t.Parallel()
	for from, r := range rooms {
		for to, why := range r.may {
			if _, ok := rooms[to]; !ok || to == from || why == "" {
				t.Errorf("%s → %s: no such room, itself, or no reason (%q)", from, to, why)
			}
			if _, back := rooms[to].may[from]; back {
				t.Errorf("%s and %s enter each other", from, to)
			}
			if r.pure && !rooms[to].pure {
				t.Errorf("%s is pure and %s is not", from, to)
			}
		}
	}
}

func TestWayTo(t *testing.T) {
	t.Parallel()
	imports := map[string][]string{
		modulePath + "/cmd/x":      {"fmt", modulePath + "/internal/y"},
		modulePath + "/internal/y": {"net/http"},
		"net/http":                 {"crypto/tls"},
	}
	got := wayTo(imports, modulePath+"/cmd/x", []string{"crypto/tls"})
	if want := []string{"cmd/x", "internal/y", "net/http", "crypto/tls"}; !slices.Equal(got, want) {
		t.Errorf("way %q, want %q", got, want)
	}
	if got := wayTo(imports, modulePath+"/cmd/x", []string{"database/sql"}); got != nil {
		t.Errorf("way %q, want none", got)
	}
}
