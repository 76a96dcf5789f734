package main

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// filter makes an analyzer obey directives, and leave out findings at places that skip returns.
func filter(a *analysis.Analyzer, skip func([]*ast.File) []span) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		var spans []span
		if skip != nil {
			spans = skip(pass.Files)
		}
		ignored := directives(pass, a.Name)
		inner := *pass
		inner.Report = func(d analysis.Diagnostic) {
			for _, s := range spans {
				if s.from <= d.Pos && d.Pos < s.to {
					return
				}
			}
			at := pass.Fset.Position(d.Pos)
			for _, line := range []int{at.Line, at.Line - 1} {
				if i := ignored[place{at.Filename, line}]; i != nil {
					i.used = true
					return
				}
			}
			report(d)
		}
		result, err := run(&inner)
		for _, i := range ignored {
			switch {
			case i.reason == "":
				report(analysis.Diagnostic{Pos: i.pos, Message: "nolint:" + a.Name + " needs a reason"})
			case !i.used:
				report(analysis.Diagnostic{Pos: i.pos, Message: "nolint:" + a.Name + " ignores nothing here"})
			}
		}
		return result, err
	}
	return a
}

type (
	span  struct{ from, to token.Pos }
	place struct {
		file string
		line int
	}
	ignore struct {
		pos    token.Pos
		reason string
		used   bool
	}
)

// directives finds the comments `//nolint:NAME // reason` of an analyzer.
func directives(pass *analysis.Pass, name string) map[place]*ignore {
	out := map[place]*ignore{}
	for _, f := range pass.Files {
		for _, g := range f.Comments {
			for _, c := range g.List {
				rest, ok := strings.CutPrefix(c.Text, "//nolint:")
				if !ok {
					continue
				}
				which, reason, _ := strings.Cut(rest, "//")
				if strings.TrimSpace(which) == name {
					at := pass.Fset.Position(c.Pos())
					out[place{at.Filename, at.Line}] = &ignore{pos: c.Pos(), reason: strings.TrimSpace(reason)}
				}
			}
		}
	}
	return out
}

// plain are declarations that shadow on purpose, as a reader sees at once:
//
//	if err := f(); err != nil {           // in the header of the one statement in which it lives
//	ctx, cancel := context.WithCancel(ctx) // made from the variable that it shadows
//	n, err := f()                         // an error that the next statement handles
//	if err != nil {
func plain(files []*ast.File) []span {
	var out []span
	add := func(s ast.Stmt) {
		if s != nil {
			out = append(out, span{s.Pos(), s.End()})
		}
	}
	list := func(stmts []ast.Stmt) {
		for i, s := range stmts {
			d, ok := s.(*ast.AssignStmt)
			if !ok || d.Tok != token.DEFINE {
				continue
			}
			for _, l := range d.Lhs {
				name := l.(*ast.Ident).Name
				if mentions(name, d.Rhs...) || name == "err" && i+1 < len(stmts) && handles(stmts[i+1]) {
					out = append(out, span{l.Pos(), l.End()})
				}
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				add(n.Init)
			case *ast.SwitchStmt:
				add(n.Init)
			case *ast.TypeSwitchStmt:
				add(n.Init)
			case *ast.ForStmt:
				add(n.Init)
			case *ast.CommClause:
				add(n.Comm)
				list(n.Body)
			case *ast.CaseClause:
				list(n.Body)
			case *ast.BlockStmt:
				list(n.List)
			}
			return true
		})
	}
	return out
}

// handles reports whether a statement decides on err or returns it.
func handles(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.IfStmt:
		return s.Init == nil && mentions("err", s.Cond)
	case *ast.ReturnStmt:
		return mentions("err", s.Results...)
	case *ast.SwitchStmt:
		return s.Init == nil
	}
	return false
}

func mentions(name string, in ...ast.Expr) bool {
	found := false
	for _, e := range in {
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == name {
				found = true
			}
			return !found
		})
	}
	return found
}

// ended are the branches taken when a context has ended: a Run that was told to end has no error to return.
func ended(files []*ast.File) []span {
	var out []span
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				if asksContext(n.Cond) {
					out = append(out, span{n.Body.Pos(), n.Body.End()})
				}
			case *ast.CaseClause:
				for _, e := range n.List {
					if asksContext(e) {
						out = append(out, span{n.Pos(), n.End()})
					}
				}
			}
			return true
		})
	}
	return out
}

func asksContext(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Err" && len(c.Args) == 0 {
				found = true
			}
		}
		return !found
	})
	return found
}
