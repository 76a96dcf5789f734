package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A pkg is one directory of Go files, parsed without regard to build tags.
type pkg struct {
	dir   string // relative to the module, with slashes
	files []file
}

type file struct {
	name string // relative to the module
	test bool
	ast  *ast.File
}

// load parses every package below root. Folders the go command leaves out
// (testdata, names that begin with a dot or underscore) are left out here too.
func load(root fs.FS) ([]pkg, *token.FileSet, error) {
	fset := token.NewFileSet()
	byDir := map[string]*pkg{}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(p)
		if d.IsDir() {
			hidden := p != "." && (base[0] == '.' || base[0] == '_')
			if hidden || base == "testdata" || base == "node_modules" || ignored[p] {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || base[0] == '.' || base[0] == '_' {
			return nil
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		dir := path.Dir(p)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
		}
		byDir[dir].files = append(byDir[dir].files, file{name: p, test: strings.HasSuffix(base, "_test.go"), ast: f})
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	var pkgs []pkg
	for _, p := range byDir {
		pkgs = append(pkgs, *p)
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return strings.Compare(a.dir, b.dir) })
	return pkgs, fset, nil
}

// product are the files that may end up in a program.
func (p pkg) product() []file {
	if p.forTests() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.files), func(f file) bool { return f.test })
}

// forTests reports whether the package exists for tests alone: storetest below
// store, coretest below core.
func (p pkg) forTests() bool { return isTestPackage(p.dir) }

func isTestPackage(dir string) bool {
	return path.Base(dir) == path.Base(path.Dir(dir))+"test"
}

func (f file) imports() []string {
	var out []string
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil { // the parser has already refused such a file
			panic(err)
		}
		out = append(out, p)
	}
	return out
}

// localName is the name by which the file calls an imported package, or "".
func (f file) localName(importPath string) string {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		if base := path.Base(importPath); base != "v2" {
			return base
		}
		return path.Base(path.Dir(importPath))
	}
	return ""
}

// uses calls visit for each selector expression importPath.Name in the file.
func (f file) uses(importPath string, visit func(name string, pos token.Pos)) {
	local := f.localName(importPath)
	if local == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
			visit(sel.Sel.Name, sel.Pos())
		}
		return true
	})
}

// ours returns the directory of an import path of this module.
func ours(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, modulePath+"/")
}

// thirdParty reports whether an import path belongs to another module: the
// standard library has no dot in its first element.
func thirdParty(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	_, own := ours(importPath)
	return !own && strings.Contains(first, ".")
}
