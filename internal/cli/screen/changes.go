package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
)

// Changes words in what a run would differ from the one that lives, a line each: PROPERTY: OLD → NEW. Values of
// variables are not told.
func Changes(was, now *convert.Spec) (out []string) {
	fields, _ := config.Changes(&was.Configuration, &now.Configuration)
	a, b := members(&was.Configuration), members(&now.Configuration)
	for _, f := range fields {
		out = append(out, change(f, a[f], b[f])...)
	}
	for _, x := range []struct {
		what     string
		was, now any
	}{
		{"files", was.FileArchives, now.FileArchives},
		{"repository", []any{was.RepoID, was.RepoData, was.RepoCodeHash}, []any{now.RepoID, now.RepoData, now.RepoCodeHash}},
		{"profile", was.Profile, now.Profile},
		{"ssh key", was.SSHKeyPub, now.SSHKeyPub},
	} {
		if x.what == "profile" && was.Profile.IsEmpty() && now.Profile.IsEmpty() {
			continue
		}
		if one, two := marshal(x.was), marshal(x.now); !bytes.Equal(one, two) {
			out = append(out, x.what+": changed")
		}
	}
	return out
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

func members(v any) (m map[string]json.RawMessage) {
	if json.Unmarshal(marshal(v), &m) != nil {
		return nil
	}
	return m
}

// change words one property; of one with properties of its own, those that differ.
func change(name string, was, now json.RawMessage) (out []string) {
	if bytes.Equal(was, now) || isNull(was) && isNull(now) {
		return nil
	}
	var a, b map[string]json.RawMessage
	if json.Unmarshal(was, &a) == nil && json.Unmarshal(now, &b) == nil && a != nil && b != nil {
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, change(name+"."+k, a[k], b[k])...)
		}
		return out
	}
	if strings.HasPrefix(name, "env.") || strings.HasPrefix(name, "registry_auth") {
		switch {
		case isNull(was):
			return []string{name + ": added"}
		case isNull(now):
			return []string{name + ": removed"}
		}
		return []string{name + ": changed"}
	}
	return []string{fmt.Sprintf("%s: %s → %s", name, value(was), value(now))}
}

func isNull(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

// maxValue bounds the text of a value, in characters.
const maxValue = 60

// value is a value on one line.
func value(v json.RawMessage) string {
	if isNull(v) {
		return "not set"
	}
	text := string(v)
	var s string
	if json.Unmarshal(v, &s) == nil {
		text = s
	}
	if r := []rune(text); len(r) > maxValue {
		text = string(r[:maxValue]) + "…"
	}
	return text
}
