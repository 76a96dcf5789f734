package jobsubmit

import (
	lua "github.com/yuin/gopher-lua"
)

// countTexts has every library function that makes a text count it, before it makes it where that could be a large one.
func countTexts(l *lua.LState, now func() *call) {
	str := l.GetGlobal("string").(*lua.LTable) // the library was just opened
	tab := l.GetGlobal("table").(*lua.LTable)  // the library was just opened
	l.SetGlobal(joinName, l.NewFunction(func(l *lua.LState) int { return join(l, now()) }))
	wrap := func(t *lua.LTable, name string, before func(*lua.LState, *call)) {
		inner := t.RawGetString(name).(*lua.LFunction).GFunction // as above
		t.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
			c := now()
			if before != nil {
				before(l, c)
			}
			top := l.GetTop()
			n := inner(l)
			for i := top + 1; before == nil && i <= l.GetTop(); i++ {
				if s, ok := l.Get(i).(lua.LString); ok {
					c.spend(l, len(s))
				}
			}
			return n
		}))
	}
	same := func(l *lua.LState, c *call) { c.spend(l, len(l.CheckString(1))) }
	for _, name := range []string{"lower", "upper", "reverse"} {
		wrap(str, name, same)
	}
	for _, name := range []string{"char", "format", "sub"} {
		wrap(str, name, nil)
	}
	search(l, str, now)
	wrap(str, "rep", func(l *lua.LState, c *call) {
		n := max(0, l.CheckInt(2))
		if size := len(l.CheckString(1)); size > 0 && n > maxText/size {
			n = maxText + 1
		} else {
			n *= size
		}
		c.spend(l, n)
	})
	wrap(tab, "concat", func(l *lua.LState, c *call) {
		list := l.CheckTable(1)
		size := len(l.OptString(2, ""))
		for i := l.OptInt(3, 1); i <= l.OptInt(4, list.Len()); i++ {
			c.spend(l, 1+size+len(lua.LVAsString(list.RawGetInt(i)))) // one also for what is not there: it takes time
		}
	})
}

// join is A .. B.
func join(l *lua.LState, c *call) int {
	a, b := l.Get(1), l.Get(2)
	if lua.LVCanConvToString(a) && lua.LVCanConvToString(b) {
		x, y := lua.LVAsString(a), lua.LVAsString(b)
		c.spend(l, len(x)+len(y))
		l.Push(lua.LString(x + y))
		return 1
	}
	method := l.GetMetaField(a, "__concat")
	if method == lua.LNil {
		method = l.GetMetaField(b, "__concat")
	}
	if method == lua.LNil {
		if lua.LVCanConvToString(a) {
			a = b
		}
		l.RaiseError("attempt to concatenate a %s value", a.Type())
	}
	l.Push(method)
	l.Push(a)
	l.Push(b)
	l.Call(2, 1)
	return 1
}
