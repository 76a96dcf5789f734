package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Each check returns its complaints, sorted by file, each with its reason.

func checkArrows(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		from := roomOf(p.dir)
		if from == "" {
			bad = append(bad, fmt.Sprintf("%s belongs to no room: give it a row in docs/architecture.md §4 and in "+
				"internal/arch, with its one job", p.dir))
			continue
		}
		for _, f := range p.product() {
			for _, imp := range f.imports() {
				dir, ok := ours(imp)
				if !ok {
					continue
				}
				if isTestPackage(dir) {
					bad = append(bad, fmt.Sprintf("%s imports %s: test-only code never links into a program", f.name, dir))
				}
				to := roomOf(dir)
				if to == "" || to == from || rooms[from].free {
					continue
				}
				if _, ok := rooms[from].may[to]; !ok {
					bad = append(bad, fmt.Sprintf("%s imports %s: %s (%s) may not enter %s (%s); it may enter %s",
						f.name, dir, from, rooms[from].why, to, rooms[to].why, allowed(from)))
				}
			}
		}
	}
	return bad
}

// allowed lists a room's arrows with their reasons.
func allowed(from string) string {
	var out []string
	for to, why := range rooms[from].may {
		out = append(out, fmt.Sprintf("%s (%s)", to, why))
	}
	if len(out) == 0 {
		return "no other room"
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func checkPure(pkgs []pkg, fset *token.FileSet) []string {
	var bad []string
	for _, p := range pkgs {
		r := roomOf(p.dir)
		if !rooms[r].pure {
			continue
		}
		for _, f := range p.product() {
			for _, imp := range f.imports() {
				if thirdParty(imp) {
					bad = append(bad, fmt.Sprintf("%s imports %s: pure rooms import no third-party module, so that "+
						"nothing hidden does I/O", f.name, imp))
				} else if why := impure(imp); why != "" {
					bad = append(bad, fmt.Sprintf("%s imports %s: %s", f.name, imp, why))
				}
			}
			bad = append(bad, impureUses(f, fset)...)
		}
	}
	return bad
}

func impure(imp string) string {
	if pureStd[imp] {
		return ""
	}
	for p := imp; p != "."; p = path.Dir(p) {
		if why := impureStd[p]; why != "" {
			return why
		}
	}
	return ""
}

func impureUses(f file, fset *token.FileSet) []string {
	var bad []string
	at := func(pos token.Pos, what, why string) {
		bad = append(bad, fmt.Sprintf("%s: %s: %s", fset.Position(pos), what, why))
	}
	for _, imp := range []string{"time", "fmt"} {
		f.uses(imp, func(name string, pos token.Pos) {
			if why := impureCalls[imp][name]; why != "" {
				at(pos, imp+"."+name, why)
			}
		})
	}
	for _, imp := range []string{"math/rand", "math/rand/v2"} {
		f.uses(imp, func(name string, pos token.Pos) {
			if !seeded[name] {
				at(pos, imp+"."+name, "randomness comes from a source with a given seed")
			}
		})
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			at(g.Pos(), "go statement", "pure rooms have no goroutines; the caller owns them")
		}
		return true
	})
	return bad
}

func checkConfined(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		for _, f := range p.files {
			for _, imp := range f.imports() {
				if imp == "C" {
					bad = append(bad, fmt.Sprintf("%s imports C: programs are static and built without cgo", f.name))
				}
				for _, c := range confined {
					// Tests at the edge may open a real database themselves.
					if within(imp, c.modules) && !within(p.dir, c.below) && !rooms[roomOf(p.dir)].free {
						bad = append(bad, fmt.Sprintf("%s imports %s, allowed only below %s: %s", f.name, imp,
							strings.Join(c.below, ", "), c.why))
					}
				}
				if !f.test && !p.forTests() && imp == "testing" && roomOf(p.dir) != "bench" {
					bad = append(bad, fmt.Sprintf("%s imports testing: test-only code never links into a program", f.name))
				}
			}
		}
	}
	return bad
}

func checkNames(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		names := map[string]bool{path.Base(p.dir): true}
		for _, f := range p.files {
			names[strings.TrimSuffix(f.ast.Name.Name, "_test")] = true
		}
		for n := range names {
			if vague[n] {
				bad = append(bad, fmt.Sprintf("%s: package %s says nothing about what it does: name it after its job "+
					"(hostlist, getopt, lease)", p.dir, n))
			}
		}
	}
	slices.Sort(bad)
	return bad
}

func checkComments(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		var with []string
		product := slices.ContainsFunc(p.files, func(f file) bool { return !f.test })
		for _, f := range p.files {
			if f.test && product { // a test file's own head comment is not the package's
				continue
			}
			if f.ast.Doc != nil && strings.TrimSpace(f.ast.Doc.Text()) != "" {
				with = append(with, f.name)
			}
		}
		switch len(with) {
		case 1:
		case 0:
			bad = append(bad, fmt.Sprintf("%s has no package comment: say its one job in doc.go", p.dir))
		default:
			bad = append(bad, fmt.Sprintf(
				"%s has %d package comments (%s): godoc would join them; keep the one in doc.go", p.dir, len(with),
				strings.Join(with, ", ")))
		}
	}
	return bad
}

func checkSleep(pkgs []pkg, fset *token.FileSet) []string {
	var bad []string
	for _, p := range pkgs {
		if rooms[roomOf(p.dir)].pure || roomOf(p.dir) == "bench" {
			continue // checkPure has its own words; a benchmark may pace itself
		}
		for _, f := range p.product() {
			f.uses("time", func(name string, pos token.Pos) {
				if name == "Sleep" {
					bad = append(bad, fmt.Sprintf("%s: time.Sleep: a wait must end with its context: select on a "+
						"timer and ctx.Done()", fset.Position(pos)))
				}
			})
		}
	}
	return bad
}

// checkPrint refuses output that no caller chose: the programs and their commands write to writers that were handed to
// them, everything else logs or returns.
func checkPrint(pkgs []pkg, fset *token.FileSet) []string {
	var bad []string
	for _, p := range pkgs {
		if r := rooms[roomOf(p.dir)]; r.pure || r.free || within(p.dir, []string{"internal/cli"}) {
			continue // checkPure has its own words
		}
		for _, f := range p.product() {
			f.uses("fmt", func(name string, pos token.Pos) {
				if strings.HasPrefix(name, "Print") {
					bad = append(bad, fmt.Sprintf("%s: fmt.%s: standard output belongs to the commands; write to an io.Writer",
						fset.Position(pos), name))
				}
			})
		}
	}
	return bad
}

func checkGoMod(gomod string) []string {
	var bad []string
	for i, line := range strings.Split(gomod, "\n") {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "replace" {
			bad = append(bad, fmt.Sprintf("go.mod:%d: replace: `go install` of our programs refuses a module with one", i+1))
		}
	}
	return bad
}
