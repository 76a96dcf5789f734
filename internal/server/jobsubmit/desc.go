package jobsubmit

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"bireme.dev/bireme/internal/core"
)

// desc is the job_desc of slurm_job_submit: a table whose fields are read from the submission and written to it.
type desc struct {
	*Submission
	call *call
	env  []string // of the submission, once the script has looked at it
	read bool
	set  bool // a variable was changed

	written map[string]bool // the fields that the script has set, where somebody wants to know
}

// field is one field of job_desc. A field without set is left as it is.
type field struct {
	get func(*desc) lua.LValue
	set func(*desc, lua.LValue) bool // false: a value of another kind
}

// table makes the Lua table.
func (d *desc) table(l *lua.LState) *lua.LTable {
	t, meta := l.NewTable(), l.NewTable()
	env := d.environment(l)
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		name := l.CheckString(2)
		if name == "environment" && d.Spec.Kind == core.Batch {
			l.Push(env)
			return 1
		}
		f, ok := fields[name]
		if !ok || f.get == nil {
			l.Push(lua.LNil)
			return 1
		}
		v := f.get(d)
		if s, ok := v.(lua.LString); ok {
			d.call.spend(l, len(s))
		}
		l.Push(v)
		return 1
	}))
	meta.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		name, v := l.CheckString(2), l.Get(3)
		f, ok := fields[name]
		if !ok || f.set == nil { // as Slurm: told in the log, and the script goes on
			l.Push(l.GetField(l.GetGlobal("slurm"), "log_error"))
			l.Push(lua.LString("job_desc." + name + " is not known, or cannot be set"))
			l.Call(1, 0)
			return 0
		}
		if !f.set(d, v) {
			wrong(l, name, v)
		}
		if d.written != nil {
			d.written[name] = true
		}
		return 0
	}))
	meta.RawSetString("__metatable", lua.LString("job_desc"))
	l.SetMetatable(t, meta)
	return t
}

// environment is job_desc.environment, by the names of variables.
func (d *desc) environment(l *lua.LState) *lua.LTable {
	t, meta := l.NewTable(), l.NewTable()
	find := func(name string) int {
		if !d.read {
			d.env, d.read = strings.Split(strings.TrimSuffix(string(d.Env), "\x00"), "\x00"), true
		}
		return slices.IndexFunc(d.env, func(e string) bool {
			return len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name
		})
	}
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		name := l.CheckString(2)
		if i := find(name); i >= 0 {
			l.Push(lua.LString(d.env[i][len(name)+1:]))
			return 1
		}
		l.Push(lua.LNil)
		return 1
	}))
	meta.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		name, v := l.CheckString(2), l.Get(3)
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(lua.LVAsString(v), 0) {
			l.RaiseError("environment: a name or value that cannot be one")
		}
		i := find(name)
		d.set = true
		switch {
		case v == lua.LNil && i >= 0:
			d.env = slices.Delete(d.env, i, i+1)
		case v == lua.LNil:
		case i >= 0:
			d.env[i] = name + "=" + lua.LVAsString(v)
		default:
			d.env = append(d.env, name+"="+lua.LVAsString(v))
		}
		return 0
	}))
	l.SetMetatable(t, meta)
	return t
}

// finish writes the environment back.
func (d *desc) finish() {
	if !d.set {
		return
	}
	d.Env = nil
	for _, e := range d.env {
		if e != "" {
			d.Env = append(append(d.Env, e...), 0)
		}
	}
}

// extra is the spec's Extra to write to.
func (d *desc) extra() *core.Extra {
	if d.Spec.Extra == nil {
		d.Spec.Extra = &core.Extra{}
	}
	return d.Spec.Extra
}

// wide is the rare part of the shape to write to.
func (d *desc) wide() *core.ShapeMore {
	if d.Spec.Shape.More == nil {
		d.Spec.Shape.More = &core.ShapeMore{}
	}
	return d.Spec.Shape.More
}

// keep sets an option that Slurm's front end keeps; empty: it is dropped.
func (d *desc) keep(name, value string) {
	k := d.extra().Keep()
	if value == "" {
		delete(k.Slurm, name)
		return
	}
	if k.Slurm == nil {
		k.Slurm = map[string]string{}
	}
	k.Slurm[name] = value
}

// has reports a part of the shape as given: the user wrote it, or it is more than a job gets anyway.
func (d *desc) has(bit core.ShapeGiven, n int32) bool { return d.Spec.Shape.Given&bit != 0 || n > 1 }

func (d *desc) give(bit core.ShapeGiven, on bool) {
	if d.Spec.Shape.Given &^= bit; on {
		d.Spec.Shape.Given |= bit
	}
}

// textField is a field of text; nil where it is empty.
func textField(get func(*desc) string, set func(*desc, string) bool) field {
	f := field{get: func(d *desc) lua.LValue {
		if s := get(d); s != "" {
			return lua.LString(s)
		}
		return lua.LNil
	}}
	if set != nil {
		f.set = func(d *desc, v lua.LValue) bool {
			switch v.(type) {
			case *lua.LNilType:
				return set(d, "")
			case lua.LString, lua.LNumber:
				return set(d, lua.LVAsString(v))
			}
			return false
		}
	}
	return f
}

// plain is a text field that is one place of the submission.
func plain(at func(*desc) *string) field {
	return textField(func(d *desc) string { return *at(d) }, func(d *desc, s string) bool { *at(d) = s; return true })
}

// extraText is a text field that is one place of the spec's Extra.
func extraText(at func(*core.Extra) *string) field {
	return textField(func(d *desc) string { return *at(d.Spec.More()) }, func(d *desc, s string) bool {
		*at(d.extra()) = s
		return true
	})
}

// kept is a text field that is an option which Slurm's front end keeps.
func kept(option string) field {
	return textField(func(d *desc) string { return d.Spec.More().SlurmOption(option) },
		func(d *desc, s string) bool { d.keep(option, s); return true })
}

// number is a field of a number. What is not set reads as none; none, a nil and Slurm's other numbers for it unset it.
func number(none float64, get func(*desc) (int64, bool), set func(d *desc, n int64, given bool)) field {
	f := field{get: func(d *desc) lua.LValue {
		if n, ok := get(d); ok {
			return lua.LNumber(n)
		}
		return lua.LNumber(none)
	}}
	if set != nil {
		f.set = func(d *desc, v lua.LValue) bool {
			if v == lua.LNil {
				set(d, 0, false)
				return true
			}
			n, ok := lua.LVAsNumber(v), lua.LVCanConvToString(v)
			if b, is := v.(lua.LBool); is {
				ok = true
				if n = 0; bool(b) {
					n = 1
				}
			}
			if !ok {
				return false
			}
			given := float64(n) != none && n != noVal && n < noVal64
			set(d, clamp(float64(n)), given)
			return true
		}
	}
	return f
}

// clamp makes a number of a script one that an integer can hold.
func clamp(n float64) int64 {
	switch {
	case n != n:
		return 0
	case n > 1<<62:
		return 1 << 62
	case n < -1<<62:
		return -1 << 62
	}
	return int64(n)
}

// fixed reads as one number and cannot be set.
func fixed(n float64) field {
	return field{get: func(*desc) lua.LValue { return lua.LNumber(n) }, set: func(*desc, lua.LValue) bool { return true }}
}
