package config

import "testing"

func TestParsePrivate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                 "none",
		"none":             "none",
		"Jobs,users":       "jobs,users",
		" events , JOBS,":  "events,jobs",
		"all":              "accounts,events,jobs,nodes,partitions,reservations,usage,users",
		"cloud,partitions": "partitions",
	} {
		p, err := ParsePrivate([]string{text})
		if err != nil || p.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, p, err, want)
		}
	}
	for _, text := range []string{"job", "none,jobs", "jobs users", "*"} {
		if p, err := ParsePrivate([]string{text}); err == nil {
			t.Errorf("%q was read as %v", text, p)
		}
	}
	c := Default()
	if c.PrivateData = []string{"nonsense"}; c.Check() == nil {
		t.Error("the settings took private_data: [nonsense]")
	}
	if NeedsRestart("private_data") {
		t.Error("private_data needs a restart")
	}
}
