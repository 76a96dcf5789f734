package main

import (
	"strings"

	"golang.org/x/tools/go/analysis"
)

// nolint refuses directives that no analyzer here obeys: `//nolint`, `//nolint:all`, or the name of another.
func nolint(known ...*analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "nolint",
		Doc:  "check that directives name an analyzer of this program",
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range pass.Files {
				for _, g := range f.Comments {
					for _, c := range g.List {
						rest, ok := strings.CutPrefix(c.Text, "//nolint")
						if !ok {
							continue
						}
						which, _, _ := strings.Cut(strings.TrimPrefix(rest, ":"), "//")
						if !named(strings.TrimSpace(which), known) {
							pass.Reportf(c.Pos(), "nolint: %q is no analyzer of tools/lint", strings.TrimSpace(which))
						}
					}
				}
			}
			return nil, nil
		},
	}
}

func named(name string, known []*analysis.Analyzer) bool {
	for _, a := range known {
		if a.Name == name {
			return true
		}
	}
	return false
}
