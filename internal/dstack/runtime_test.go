package dstack

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestRuntime: image, python, nvcc and docker mean a container; else runtime says it, else the project.
func TestRuntime(t *testing.T) {
	t.Parallel()
	const process, container = core.RuntimeProcess, core.RuntimeContainer
	for name, tc := range map[string]struct {
		yaml    string
		project string
		want    string // the runtime, and the image of a container
		err     string
	}{
		"nothing":                   {"", "", process, ""},
		"the project: processes":    {"", process, process, ""},
		"the project: containers":   {"", container, container + " " + baseImage, ""},
		"process in such a project": {"runtime: process", container, process, ""},
		"container in the other":    {"runtime: container", process, container + " " + baseImage, ""},
		"image":                     {"image: box:1", process, container + " box:1", ""},
		"python":                    {"python: 3.12", process, container + " " + baseImage, ""},
		"nvcc":                      {"nvcc: true", process, container + " " + develImage, ""},
		"docker":                    {"docker: true", process, container + " " + dindImage, ""},
		"image and process": {
			"runtime: process\nimage: box:1", container, "",
			"runtime: process cannot be combined",
		},
		"what needs one has one":          {"privileged: true", container, container + " " + baseImage, ""},
		"what needs one, among processes": {"privileged: true", process, "", "privileged: needs a container"},
		"what needs one, said process": {
			"runtime: process\nprivileged: true", container, "",
			"privileged: needs a container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task, err := Parse("t.yml", []byte("type: task\ncommands: [id]\n"+tc.yaml+"\n"))
			got := ""
			if err == nil {
				sub, fault := task.Submit(Options{Name: "test", Lookup: caller, Runtime: tc.project})
				if err = fault; err == nil {
					got = sub.Spec.Runtime
					if c := sub.Spec.More().Container; c != nil {
						got += " " + c.Image
					}
				}
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q %v, want %q", got, err, tc.want)
			}
		})
	}
}
