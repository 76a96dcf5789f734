package arch

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits on sizes. A size above its limit needs a row in testdata/sizes.txt.
const (
	maxPackageLines = 5000 // lines of a package, tests not counted
	maxTypeMethods  = 40   // methods of a type, see methods
	maxLineColumns  = 120  // characters of a line; a tab counts as one
)

var (
	rewriteSizes = flag.Bool("rewrite", false, "lower the numbers of testdata/sizes.txt to the measured sizes")
	strictSizes  = flag.Bool("strict", false, "fail if a number of testdata/sizes.txt is higher than the measured size")
)

const sizesFile = "testdata/sizes.txt"

// TestSizes holds the sizes of packages, types and lines against their limits. Sizes above a limit are listed in
// testdata/sizes.txt with the present number and a reason. A listed size may shrink but not grow. After one shrank,
//
//	go test ./internal/arch -run Sizes -rewrite
//
// lowers its number. With -strict, as in `make check`, a number that could be lower is an error.
func TestSizes(t *testing.T) {
	t.Parallel()
	measured, err := measure(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sizesFile)
	if err != nil {
		t.Fatal(err)
	}
	table, err := parseSizes(string(text))
	if err != nil {
		t.Fatal(err)
	}
	tooLarge, couldShrink := compareSizes(measured, table)
	for _, c := range tooLarge {
		t.Error(c)
	}
	for _, c := range couldShrink {
		if *strictSizes && !*rewriteSizes {
			t.Errorf("%s: go test ./internal/arch -run Sizes -rewrite", c)
		} else {
			t.Log(c)
		}
	}
	if *rewriteSizes && len(couldShrink) > 0 {
		if err := os.WriteFile(sizesFile, lowerSizes(string(text), measured), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A size names something that is measured: the package of a directory ("package internal/sched"), a type
// ("type internal/server/api.API"), or the lines over maxLineColumns below a directory ("lines internal/sched").
type size struct{ kind, name string }

func (s size) String() string { return s.kind + " " + s.name }

// A sizeLimit is one row of testdata/sizes.txt.
type sizeLimit struct {
	max    int
	reason string
}

// sizeKinds gives for each kind its limit and the words of a complaint.
var sizeKinds = map[string]struct {
	max  int
	unit string
	hint string
}{
	"package": {maxPackageLines, "lines without tests", "cut a sub-package out of it"},
	"type":    {maxTypeMethods, "methods", "a type with so many methods is several types"},
	"lines":   {0, fmt.Sprintf("lines over %d columns", maxLineColumns), "wrap them"},
}

// measure counts everything that has a limit.
func measure(root fs.FS) (map[size]int, error) {
	pkgs, _, err := load(root)
	if err != nil {
		return nil, err
	}
	out := map[size]int{}
	for _, p := range pkgs {
		for _, f := range p.files {
			src, err := fs.ReadFile(root, f.name)
			if err != nil {
				return nil, err
			}
			if n := longLines(src); n > 0 {
				out[size{"lines", lineGroup(p.dir)}] += n
			}
			if !f.test {
				out[size{"package", p.dir}] += bytes.Count(src, []byte("\n"))
			}
		}
		for name, n := range methods(p) {
			out[size{"type", p.dir + "." + name}] = n
		}
	}
	return out, nil
}

// lineGroup returns the directory under which the long lines of a package are counted: the first two elements of its
// path, so that moving code into a sub-package changes no number.
func lineGroup(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return path.Join(parts[:min(2, len(parts))]...)
}

func longLines(src []byte) int {
	n := 0
	for line := range bytes.Lines(src) {
		if utf8.RuneCount(bytes.TrimRight(line, "\n")) > maxLineColumns {
			n++
		}
	}
	return n
}

// methods counts the methods of each type of a package, tests left out. A function whose first parameter is a struct of
// the package, or a pointer to one, counts as a method of that struct: otherwise a type would become smaller by a
// change of syntax alone. A context before that parameter does not change this.
func methods(p pkg) map[string]int {
	structs := map[string]bool{}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					if _, ok := ts.Type.(*ast.StructType); ok {
						structs[ts.Name.Name] = true
					}
				}
			}
		}
	}
	count := map[string]int{}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Recv != nil {
				count[typeName(fn.Recv.List[0].Type)]++
			} else if name := firstParameter(fn); structs[name] {
				count[name]++
			}
		}
	}
	return count
}

func firstParameter(fn *ast.FuncDecl) string {
	for _, field := range fn.Type.Params.List {
		if sel, ok := field.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
			continue
		}
		return typeName(field.Type)
	}
	return ""
}

// typeName returns the name of a type of the same package behind pointers and type parameters, or "".
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.ParenExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}

// parseSizes reads the table: one row per line, `kind name number reason`. Empty lines and # are comments.
func parseSizes(text string) (map[size]sizeLimit, error) {
	table := map[size]sizeLimit{}
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			errs = append(errs, fmt.Errorf("%s:%d: want `kind name number reason`", sizesFile, i+1))
			continue
		}
		s := size{f[0], f[1]}
		n, err := strconv.Atoi(f[2])
		kind, known := sizeKinds[s.kind]
		_, twice := table[s]
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s:%d: %q is no number", sizesFile, i+1, f[2]))
		case !known:
			errs = append(errs, fmt.Errorf("%s:%d: unknown kind %q", sizesFile, i+1, s.kind))
		case twice:
			errs = append(errs, fmt.Errorf("%s:%d: %s is listed twice", sizesFile, i+1, s))
		case n <= kind.max:
			errs = append(errs, fmt.Errorf("%s:%d: %s %d is within the limit of %d: delete the row", sizesFile, i+1, s,
				n, kind.max))
		}
		table[s] = sizeLimit{n, strings.Join(f[3:], " ")}
	}
	return table, errors.Join(errs...)
}

// compareSizes returns what is larger than its limit or its row allows, and which rows could be lower.
func compareSizes(measured map[size]int, table map[size]sizeLimit) (tooLarge, couldShrink []string) {
	bySize := func(a, b size) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) }
	for _, s := range slices.SortedFunc(maps.Keys(measured), bySize) {
		kind := sizeKinds[s.kind]
		limit, listed := table[s]
		switch n := measured[s]; {
		case n > kind.max && !listed:
			tooLarge = append(tooLarge,
				fmt.Sprintf("%s: %d %s, limit %d: %s (if a listed one was moved or renamed, move its row in %s)",
					s, n, kind.unit, kind.max, kind.hint, sizesFile))
		case n > kind.max && n > limit.max:
			tooLarge = append(tooLarge, fmt.Sprintf("%s: %d %s, but %s allows %d (%s) and only shrinks: %s",
				s, n, kind.unit, sizesFile, limit.max, limit.reason, kind.hint))
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(table), bySize) {
		switch n := measured[s]; {
		case n <= sizeKinds[s.kind].max:
			couldShrink = append(couldShrink, fmt.Sprintf("%s: %d is within the limit, its row can go", s, n))
		case n < table[s].max:
			couldShrink = append(couldShrink, fmt.Sprintf("%s: lower %d to %d", s, table[s].max, n))
		}
	}
	return tooLarge, couldShrink
}

// lowerSizes returns the table with each number lowered to the measured size and rows within their limit deleted.
func lowerSizes(text string, measured map[size]int) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || line[0] == '#' {
			out.WriteString(line)
			continue
		}
		s := size{f[0], f[1]}
		listed, err := strconv.Atoi(f[2])
		n := measured[s]
		switch {
		case err == nil && n <= sizeKinds[s.kind].max:
		case err == nil && n < listed:
			fmt.Fprintf(&out, "%s %d %s\n", s, n, strings.Join(f[3:], " "))
		default:
			out.WriteString(line)
		}
	}
	return out.Bytes()
}
