package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

const ours = `type: task
commands: [a]
array: 0-9,20%4
depends_on: [prep, afterany:42_3, "afternotok:train:eval"]
partition: [gpu, long]
qos: high
account: physics
time: 1:30:00
deadline: 2026-12-24T18:00:00
begin: now+1hour
constraint: "[rack1|rack2]&a100"
switches: 1@30
requeue: yes
checkpoint: {signal: USR1, grace: 5m, saved_file: state.pt}
runtime: process
tags: {team: blue}
`

func TestAdditions(t *testing.T) {
	t.Parallel()
	c, err := Read([]byte(ours))
	if err != nil {
		t.Fatal(err)
	}
	a := c.Additions
	if got := a.Array.String(); got != "0-9,20%4" {
		t.Errorf("array %q", got)
	}
	yes := true
	a.Array = nil
	want := Additions{
		Dependencies: Dependencies{List: []Dependency{
			{When: core.NeedAfterOK, Run: "prep"},
			{When: core.NeedAfterAny, Job: "42_3"},
			{When: core.NeedAfterNotOK, Run: "train"},
			{When: core.NeedAfterNotOK, Run: "eval"},
		}},
		Partition: "gpu,long", QOS: "high", Account: "physics", Time: 5400, Deadline: "2026-12-24T18:00:00",
		Begin: "now+1hour", Constraint: coretest.Constraint("[rack1|rack2]&a100"), Switches: coretest.Switches("1@30"),
		Requeue:    &yes,
		Checkpoint: &Checkpoint{Signal: 10, Grace: 300, SavedFile: "state.pt"}, Runtime: core.RuntimeProcess,
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	text, err := tree.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := valueAt(t, text, "tags"), `{"team":"blue","bireme-array":"0-9 20@4","bireme-depends-on":`+
		`"afterok:prep afterany:42_3 afternotok:train afternotok:eval","bireme-partition":"gpu long","bireme-qos":"high",`+
		`"bireme-account":"physics","bireme-time":"5400s","bireme-deadline":"2026-12-24T18:00:00",`+
		`"bireme-begin":"now+1hour",`+
		`"bireme-constraint":"=5Brack1 or rack2=5D and a100","bireme-switches":"1@30","bireme-requeue":"true",`+
		`"bireme-checkpoint-signal":"USR1","bireme-checkpoint-grace":"300s","bireme-checkpoint-saved-file":"state.pt",`+
		`"bireme-runtime":"process"}`; got != want {
		t.Errorf("tags:\n got %s\nwant %s", got, want)
	}
	// A stock client sends those tags: they say the same.
	again, err := ReadJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Additions.Array.String(); got != "0-9,20%4" {
		t.Errorf("array of the tag %q", got)
	}
	again.Additions.Array = nil
	if diff := cmp.Diff(want, again.Additions); diff != "" {
		t.Errorf("by tags: %s", diff)
	}
	for i := range again.Task.Tags {
		if tag := again.Task.Tags[i]; !tagName().MatchString(tag.Name) || !tagValue().MatchString(tag.Value) {
			t.Errorf("dstack refuses the tag %v", tag)
		}
	}
}

func TestAdditionsRefused(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"array: 5-2":                        "column 8: task.array: invalid job array",
		"depends_on: soon:x":                `task.depends_on: "soon:x" must be RUN or CONDITION:RUN`,
		"depends_on: [ab, X]":               `column 18: task.depends_on.1: "X" must be RUN`,
		"partition: [a, 'b c']":             `task.partition.1: must be a name`,
		"qos: a b":                          "task.qos: must be a name",
		"time: soon":                        `task.time: "soon" is not a duration`,
		"time: 0":                           "task.time: must be more than 0",
		"deadline: someday":                 "task.deadline: invalid time",
		"begin: 25:00":                      "task.begin: invalid time",
		"constraint: a&&b":                  "task.constraint: invalid",
		"switches: 0":                       "task.switches: invalid switch count",
		"requeue: maybe":                    "task.requeue: must be true or false",
		"checkpoint: {sginal: USR1}":        "task.checkpoint.sginal: unknown key; did you mean signal?",
		"checkpoint: BOOM":                  "task.checkpoint: invalid signal",
		"checkpoint: {grace: 0}":            "task.checkpoint.grace: must be more than 0",
		"runtime: vm":                       "task.runtime: must be process or container",
		"runtime: process\nimage: x":        "line 4, column 8: task.image: needs a container",
		"tags: {bireme-arry: 1-2}":          "column 8: task.tags.bireme-arry: unknown addition; did you mean array?",
		"tags: {bireme-array: x}":           "task.tags.bireme-array: invalid job array",
		"tags: {bireme-qos: a}\nqos: b":     "task.tags.bireme-qos: the key qos says this already",
		"tags: {bireme-constraint: a=2}":    "two hexadecimal digits",
		"partion: x":                        "task.partion: unknown key; did you mean partition?",
		"tags: {bireme-runtime: vm}":        "task.tags.bireme-runtime: must be process or container",
		"time: 1h\ntags: {bireme-time: 2h}": "the key time says this already",
	} {
		_, err := Read([]byte("type: task\ncommands: [a]\n" + key + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", key, err, want)
		}
	}
	if _, err := Read([]byte("type: fleet\nnodes: 1\npartition: x\n")); err == nil ||
		!strings.Contains(err.Error(), "fleet.partition: unknown key") {
		t.Errorf("a fleet takes a partition: %v", err)
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]core.Time{
		"": 0, "now+1hour": core.At(now.Add(time.Hour)), "2026-11-17T08:00:00+02:00": core.At(now.Add(18 * time.Hour)),
		"2026-11-17": core.At(now.Add(12 * time.Hour)),
	} {
		if got, err := Moment(text, now); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
}

// Every text survives the spelling of a tag.
func FuzzTag(f *testing.F) {
	f.Add("constraint", "[a|b]&c*2")
	f.Add("array", "1,3%2")
	f.Add("checkpoint_saved_file", "a=b ü")
	f.Fuzz(func(t *testing.T, key, value string) {
		if (key == "array" || key == "depends_on" || key == "partition" || key == "constraint") &&
			strings.ContainsAny(value, " @") {
			return // their grammars have neither
		}
		tag := toTag(key, value)
		if !tagValue().MatchString(tag[:min(len(tag), 200)]) {
			t.Fatalf("%q is no tag", tag)
		}
		if got, err := fromTag(key, tag); err != nil || got != value {
			t.Fatalf("%q became %q, then %q %v", value, tag, got, err)
		}
	})
}
