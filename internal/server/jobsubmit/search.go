package jobsubmit

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// search puts functions of our own in the place of those that match patterns: their work is counted.
func search(l *lua.LState, str *lua.LTable, now func() *call) {
	for name, f := range map[string]func(*lua.LState, *call) int{
		"find":   func(l *lua.LState, c *call) int { return find(l, c, true) },
		"match":  func(l *lua.LState, c *call) int { return find(l, c, false) },
		"gmatch": gmatch, "gsub": gsub,
	} {
		str.RawSetString(name, l.NewFunction(func(l *lua.LState) int { return f(l, now()) }))
	}
	str.RawSetString("gfind", str.RawGetString("gmatch"))
}

// held is a pattern of a call against its text.
func held(c *call, text, pat string) *pattern {
	return &pattern{text: text, pat: pat, call: c}
}

// next is the next match of a pattern; what is wrong with it is raised.
func (p *pattern) next(l *lua.LState, from int) (start, end int) {
	start, end, err := p.find(from)
	if err == nil {
		return start, end
	}
	l.RaiseError("%s", err.Error())
	return -1, -1
}

// captured gives a capture as a value; of a pattern without any the first is the whole match.
func (p *pattern) captured(l *lua.LState, i, start, end int) lua.LValue {
	if len(p.caps) == 0 {
		return lua.LString(p.text[start:end])
	}
	switch x := p.caps[i]; x.end {
	case position:
		return lua.LNumber(x.start + 1)
	case open:
		l.RaiseError("%s (a parenthesis is not closed)", errPattern.Error())
		return lua.LNil
	default:
		return lua.LString(p.text[x.start:x.end])
	}
}

// find is string.find and string.match.
func find(l *lua.LState, c *call, places bool) int {
	text, pat, from := l.CheckString(1), l.CheckString(2), l.OptInt(3, 1)
	if from < 0 {
		from = max(len(text)+from+1, 1)
	}
	from = max(from, 1) - 1
	if from > len(text) {
		l.Push(lua.LNil)
		return 1
	}
	if places && (lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		i := strings.Index(text[from:], pat)
		if c.steps += len(text) / 16; i < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(from + i + 1))
		l.Push(lua.LNumber(from + i + len(pat)))
		return 2
	}
	p := held(c, text, pat)
	start, end := p.next(l, from)
	if start < 0 {
		l.Push(lua.LNil)
		return 1
	}
	n := len(p.caps)
	if places {
		l.Push(lua.LNumber(start + 1))
		l.Push(lua.LNumber(end))
	} else {
		n = max(n, 1)
	}
	for i := range n {
		l.Push(p.captured(l, i, start, end))
	}
	if places {
		return n + 2
	}
	return n
}

// gmatch is string.gmatch.
func gmatch(l *lua.LState, c *call) int {
	p := held(c, l.CheckString(1), l.CheckString(2))
	at := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		if at > len(p.text) {
			l.Push(lua.LNil)
			return 1
		}
		start, end := p.next(l, at)
		if start < 0 {
			at = len(p.text) + 1
			l.Push(lua.LNil)
			return 1
		}
		if at = end; start == end {
			at++
		}
		n := max(1, len(p.caps))
		for i := range n {
			l.Push(p.captured(l, i, start, end))
		}
		return n
	}))
	return 1
}

// gsub is string.gsub.
func gsub(l *lua.LState, c *call) int {
	p := held(c, l.CheckString(1), l.CheckString(2))
	repl := l.Get(3)
	most := l.OptInt(4, len(p.text)+1)
	var b strings.Builder
	at, count := 0, 0
	for count < most && at <= len(p.text) {
		start, end := p.next(l, at)
		if start < 0 {
			break
		}
		count++
		made := p.replacement(l, repl, start, end)
		c.spend(l, start-at+len(made))
		b.WriteString(p.text[at:start])
		b.WriteString(made)
		if at = end; start == end {
			if at < len(p.text) {
				b.WriteByte(p.text[at])
			}
			at++
		}
		if strings.HasPrefix(p.pat, "^") {
			break
		}
	}
	if at < len(p.text) {
		c.spend(l, len(p.text)-at)
		b.WriteString(p.text[at:])
	}
	l.Push(lua.LString(b.String()))
	l.Push(lua.LNumber(count))
	return 2
}

// replacement is what gsub puts in the place of a match.
func (p *pattern) replacement(l *lua.LState, repl lua.LValue, start, end int) string {
	var v lua.LValue
	switch r := repl.(type) {
	case lua.LString, lua.LNumber:
		return p.expand(l, lua.LVAsString(repl), start, end)
	case *lua.LTable:
		v = l.GetTable(r, p.captured(l, 0, start, end))
	case *lua.LFunction:
		l.Push(r)
		n := max(1, len(p.caps))
		for i := range n {
			l.Push(p.captured(l, i, start, end))
		}
		l.Call(n, 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		l.RaiseError("bad argument #3 to gsub (string/function/table expected)")
	}
	switch {
	case !lua.LVAsBool(v):
		return p.text[start:end]
	case !lua.LVCanConvToString(v):
		l.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	return lua.LVAsString(v)
}

// expand puts captures into a replacement: %1, and %0 for the whole match.
func (p *pattern) expand(l *lua.LState, text string, start, end int) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; {
		case c == '0':
			b.WriteString(p.text[start:end])
		case c >= '1' && c <= '9':
			if int(c-'1') >= max(1, len(p.caps)) {
				l.RaiseError("invalid capture index %%%c in replacement", c)
			}
			b.WriteString(lua.LVAsString(p.captured(l, int(c-'1'), start, end)))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
