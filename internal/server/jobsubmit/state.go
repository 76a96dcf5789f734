package jobsubmit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// maxIndex bounds the part of a table that the interpreter keeps as an array, which it fills up to the highest index in
// one instruction. Nothing else here uses the interpreter.
const maxIndex = 1 << 16

func init() { lua.MaxArrayIndex = maxIndex }

// newState makes a state with the library that scripts get.
func newState(s *script) *lua.LState {
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: 200, RegistrySize: 1 << 12, RegistryMaxSize: 1 << 16, RegistryGrowStep: 1 << 12,
	})
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
		lua.MathLibName: lua.OpenMath, lua.OsLibName: lua.OpenOs,
	} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	now := func() *call { return s.call }
	confine(l, now)
	countTexts(l, now)
	l.SetGlobal("slurm", s.library(l, now))
	return l
}

// withheld are the functions that scripts do not get. A call of one refuses the job.
var withheld = map[string][]string{
	"": {
		"collectgarbage", "dofile", "getfenv", "load", "loadfile", "loadstring", "module", "newproxy", "require",
		"setfenv", "_printregs",
	},
	"os":     {"execute", "exit", "remove", "rename", "setenv", "setlocale", "tmpname", "getenv"},
	"string": {"dump"},
	"io":     {"close", "flush", "input", "lines", "open", "output", "popen", "read", "tmpfile", "type", "write"},
	"coroutine": {
		"create", "resume", "running", "status", "wrap", "yield",
	},
	"debug":   {"debug", "getinfo", "traceback", "sethook", "getlocal", "setmetatable", "getmetatable"},
	"package": {"loadlib", "seeall"},
}

// confine puts functions that refuse the job in the place of those that scripts do not get.
func confine(l *lua.LState, now func() *call) {
	for module, names := range withheld {
		in := l.G.Global
		if module != "" {
			t, ok := l.GetGlobal(module).(*lua.LTable)
			if !ok {
				t = l.NewTable()
				l.SetGlobal(module, t)
			}
			in = t
		}
		for _, name := range names {
			full := strings.TrimPrefix(module+"."+name, ".")
			in.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
				now().missing = full
				l.RaiseError("%s is not available to scripts here", full)
				return 0
			}))
		}
	}
	l.SetGlobal("print", l.NewFunction(func(*lua.LState) int { return 0 }))
}

// levels are the functions that write to the server's log.
var levels = map[string]slog.Level{
	"log_error": slog.LevelError, "error": slog.LevelError, "log_info": slog.LevelInfo, "log_verbose": slog.LevelInfo,
	"log_debug": slog.LevelDebug, "log_debug2": slog.LevelDebug, "log_debug3": slog.LevelDebug,
	"log_debug4": slog.LevelDebug,
}

// library is the table slurm.
func (s *script) library(l *lua.LState, now func() *call) *lua.LTable {
	t := l.NewTable()
	for name, n := range constants {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("CLUSTER_NAME", lua.LString(s.cluster))
	for name, level := range levels {
		t.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
			s.log.Log(context.Background(), level, "lua", "text", formatted(l, now()))
			return 0
		}))
	}
	t.RawSetString("log", l.NewFunction(func(l *lua.LState) int {
		l.Remove(1)
		s.log.Info("lua", "text", formatted(l, now()))
		return 0
	}))
	tell := l.NewFunction(func(l *lua.LState) int {
		now().tell(formatted(l, now()))
		return 0
	})
	t.RawSetString("log_user", tell)
	t.RawSetString("user_msg", tell)
	t.RawSetString("time_str2mins", l.NewFunction(func(l *lua.LState) int {
		span, err := grammar.ParseTimeSpan(l.CheckString(1))
		switch {
		case err != nil:
			l.Push(lua.LNumber(noVal))
		case span == grammar.Unlimited:
			l.Push(lua.LNumber(infinite))
		default:
			l.Push(lua.LNumber((int64(span) + 59) / 60))
		}
		return 1
	}))
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int { // made for each call that looks at them
		switch l.CheckString(2) {
		case "jobs":
			l.Push(jobTable(l, now()))
		case "reservations":
			l.Push(reservationTable(l, now()))
		default:
			l.Push(lua.LNil)
		}
		return 1
	}))
	l.SetMetatable(t, meta)
	return t
}

// formatted is the text of a call such as log_info("%s", x): string.format of its arguments.
func formatted(l *lua.LState, c *call) string {
	if l.GetTop() == 1 {
		return lua.LVAsString(l.ToStringMeta(l.Get(1)))
	}
	format := l.GetField(l.GetGlobal("string"), "format")
	args := make([]lua.LValue, 0, l.GetTop())
	for i := 1; i <= l.GetTop(); i++ {
		args = append(args, l.Get(i))
	}
	if err := l.CallByParam(lua.P{Fn: format, NRet: 1, Protect: true}, args...); err != nil {
		if c.over != "" {
			l.RaiseError("%s", c.over)
		}
		l.RaiseError("%s", oneLine(err.Error()))
	}
	defer l.Pop(1)
	return lua.LVAsString(l.Get(-1))
}

// asCore finds the error of a refusal.
func asCore(err error, out **core.Error) bool { return errors.As(err, out) }

// wrong is raised where a script gives a field a value of another kind.
func wrong(l *lua.LState, name string, v lua.LValue) {
	l.RaiseError("%s", fmt.Sprintf("job_desc.%s cannot be a %s", name, v.Type()))
}
