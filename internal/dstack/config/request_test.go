package config

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// The shapes that old clients send mean what the present ones do.
func TestOldShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, key, want string }{
		"cpu range": {
			`{"type":"task","commands":["a"],"resources":{"cpu":{"min":2,"max":null}}}`, "resources.cpu",
			`{"arch":null,"count":{"min":2,"max":null}}`,
		},
		"nodes": {`{"type":"task","commands":["a"],"nodes":1}`, "nodes", "1"},
		"groups": {
			`{"type":"service","port":80,"replicas":[{"name":"0","count":{"min":1,"max":1},"commands":["a"]}]}`,
			"groups.0.replicas", `{"min":1,"max":1}`,
		},
		"groups null": {
			`{"type":"service","port":80,"commands":["a"],"replicas":{"min":1,"max":1},"groups":null}`, "replicas",
			`{"min":1,"max":1}`,
		},
		"gateway as text": {
			`{"type":"service","port":80,"commands":["a"],"gateway":"p/g"}`, "gateway", `{"project":"p","name":"g"}`,
		},
		"fleets as text": {`{"type":"task","commands":["a"],"fleets":["f"]}`, "fleets", `[{"project":null,"name":"f"}]`},
		"gateway router": {`{"type":"gateway","backend":"aws","region":"eu","router":null}`, "default", "absent"},
		"new keys that say nothing": {
			`{"type":"task","commands":["a"],"x":null,"y":false,"z":[],"w":{},"v":"","resources":{"npu":null}}`, "commands",
			`["a"]`,
		},
		"relative working_dir": {`{"type":"task","commands":["a"],"working_dir":"src"}`, "working_dir", `"src"`},
	} {
		cfg, err := ReadJSON([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := tree.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := valueAt(t, text, c.key); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What is wrong with a request is told as the server of dstack 0.22.5 does.
func TestDetails(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"type":"task","commands":["a"],"zzz":1}`: `[{"type":"extra_forbidden","loc":["body","run_spec",` +
			`"configuration","task","zzz"],"msg":"Extra inputs are not permitted","input":1}]`,
		`{"type":"task","commands":["a"],"nodes":0}`: `[{"type":"greater_than_equal","loc":["body","run_spec",` +
			`"configuration","task","nodes"],"msg":"must be at least 1, not 0","input":0,"ctx":{"ge":1}}]`,
		`{"type":"service","commands":["a"]}`: `[{"type":"missing","loc":["body","run_spec","configuration","service",` +
			`"port"],"msg":"Field required","input":{"type":"service","commands":["a"]}}]`,
		`{"type":"task","commands":["a"],"ports":[80,"x"]}`: `[{"type":"value_error","loc":["body","run_spec",` +
			`"configuration","task","ports",1],"msg":"Value error, must be a port such as 8080, 80:8080 or *:8080, from 1 to ` +
			`65535, not \"x\"","input":"x","ctx":{"error":{}}}]`,
		`{"type":"jobb"}`: `[{"type":"union_tag_invalid","loc":["body","run_spec","configuration"],"msg":"type: \"jobb\" ` +
			`is not a configuration type; it is one of task, dev-environment, service, fleet, volume, gateway, preset",` +
			`"input":` +
			`"jobb"}]`,
	} {
		_, err := ReadJSON([]byte(in))
		var faults Faults
		if !errors.As(err, &faults) {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got, err := json.Marshal(faults.Details("body", "run_spec", "configuration"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	p, err := ReadProfiles([]byte("profiles:\n" +
		"  - {name: a, default: yes, spot_policy: auto, max_duration: off}\n  - {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Profiles) != 2 || !p.Profiles[0].Default || p.Profiles[0].Name != "a" || !p.Profiles[0].MaxDuration.Off {
		t.Errorf("%+v", p)
	}
	text, err := json.Marshal(&p.Profiles[1])
	if err != nil {
		t.Fatal(err)
	}
	var again Profile
	if err := json.Unmarshal(text, &again); err != nil || again.Name != "" {
		t.Errorf("%s: %+v %v", text, again, err)
	}
	for src, want := range map[string]string{
		"profiles:\n":                       "line 1, column 10: profiles: must be a list, not nothing",
		"{}":                                "line 1, column 1: profiles: is missing",
		"profiles: [{nam: x}]":              "line 1, column 13: profiles.0.nam: unknown key; did you mean name?",
		"profiles: [{name: x, array: 1-2}]": "line 1, column 22: profiles.0.array: unknown key",
	} {
		if _, err := ReadProfiles([]byte(src)); err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %q", src, err, want)
		}
	}
}
