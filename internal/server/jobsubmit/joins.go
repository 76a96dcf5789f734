package jobsubmit

import (
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// joinName is the function that joins two texts; no script can name it.
const joinName = "(join)"

// countJoins replaces every A .. B below a part of a script by a call of the function that counts what it makes.
func countJoins(stmts []ast.Stmt) { walk(reflect.ValueOf(stmts)) }

var exprType = reflect.TypeFor[ast.Expr]()

// walk goes through the exported parts of a syntax tree.
func walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			step(v.Index(i))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				step(v.Field(i))
			}
		}
	default:
	}
}

// step walks one part, and puts the call in its place where it is a join.
func step(v reflect.Value) {
	walk(v)
	if v.Type() != exprType || v.IsNil() {
		return
	}
	join, ok := v.Interface().(*ast.StringConcatOpExpr)
	if !ok {
		return
	}
	name := &ast.IdentExpr{Value: joinName}
	name.SetLine(join.Line())
	name.SetLastLine(join.LastLine())
	out := &ast.FuncCallExpr{Func: name, Args: []ast.Expr{join.Lhs, join.Rhs}, AdjustRet: true}
	out.SetLine(join.Line())
	out.SetLastLine(join.LastLine())
	v.Set(reflect.ValueOf(out))
}
