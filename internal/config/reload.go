package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fixed are the groups and settings that hold from the start of a server to its end; within them, live ones do not.
var (
	fixed = []string{
		"cluster", "dir", "server", "ssh", "certificates", "timers", "step", "retention", "fleets", "audit", "dstack",
	}
	live = []string{
		"timers.max_kill_grace", "timers.interactive_idle", "dstack.managers_manage_secrets", "dstack.upload",
		"dstack.upload_per_user", "server.user_triggers",
		// nodes and srun are told them again
		"timers.kill_wait", "timers.unkillable_after", "step.prolog", "step.epilog", "step.task_prolog",
		"step.task_epilog", "step.prolog_timeout", "step.srun_prolog", "step.srun_epilog", "step.keep_limits",
	}
)

// NeedsRestart reports whether a server takes a setting over only when it starts.
func NeedsRestart(path string) bool {
	if slices.Contains(live, path) {
		return false
	}
	group, _, _ := strings.Cut(path, ".")
	return slices.Contains(fixed, group)
}

// Differences lists the settings in which two configurations differ, in the order of the file; a list is one setting.
func (c *Config) Differences(o *Config) []string {
	var out []string
	differ("", reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem(), func(path string, _, _ reflect.Value) {
		out = append(out, path)
	})
	return out
}

func differ(path string, a, b reflect.Value, do func(path string, a, b reflect.Value)) {
	for i := range a.NumField() {
		key := a.Type().Field(i).Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		sub, x, y := join(path, key), a.Field(i), b.Field(i)
		switch {
		case x.Kind() == reflect.Struct:
			differ(sub, x, y, do)
		case !reflect.DeepEqual(x.Interface(), y.Interface()) && (x.Kind() != reflect.Slice || x.Len()+y.Len() > 0):
			do(sub, x, y)
		}
	}
}

// Reloaded returns what a running server with c makes of a file that says o: o, except for what needs a restart.
func (c *Config) Reloaded(o *Config) *Config {
	out := *o
	differ("", reflect.ValueOf(c).Elem(), reflect.ValueOf(&out).Elem(), func(path string, was, is reflect.Value) {
		if NeedsRestart(path) {
			is.Set(was)
		}
	})
	return &out
}

// Text is a setting's value as Show writes it, for people.
func (c *Config) Text(path string) string {
	v := reflect.ValueOf(c).Elem()
	for key := range strings.SplitSeq(path, ".") {
		f, ok := field(v, key)
		if !ok {
			return ""
		}
		v = f
	}
	if text, ok := scalarText(v); ok {
		return text
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
		return fmt.Sprint(v.Interface())
	}
	return ""
}
