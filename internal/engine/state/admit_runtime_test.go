package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestRuntimeIsFixedAtSubmit: an image means a container; else what was said counts, else what the project says, or the
// nearest one above it that does; processes where nobody says anything.
func TestRuntimeIsFixedAtSubmit(t *testing.T) {
	t.Parallel()
	box := &core.Container{Image: "box:1"}
	for name, tc := range map[string]struct {
		project core.ProjectName
		said    string
		box     *core.Container
		want    string
		err     string
	}{
		"nobody says anything":         {"plain", "", nil, core.RuntimeProcess, ""},
		"an image":                     {"plain", "", box, core.RuntimeContainer, ""},
		"an image and container":       {"plain", core.RuntimeContainer, box, core.RuntimeContainer, ""},
		"an image against the project": {"native", "", box, core.RuntimeContainer, ""},
		"an image and process": {
			"plain", core.RuntimeProcess, box, "",
			"an image was given, but the runtime is process",
		},
		"said against the project":   {"boxed", core.RuntimeProcess, nil, core.RuntimeProcess, ""},
		"the project says processes": {"native", "", nil, core.RuntimeProcess, ""},
		"the project says containers": {
			"boxed", "", nil, "",
			"project boxed runs in containers: give an image, or set runtime to process",
		},
		"the one above says containers": {
			"below", "", nil, "",
			"project below runs in containers: give an image, or set runtime to process",
		},
		"the nearest one counts":       {"native", "", nil, core.RuntimeProcess, ""},
		"a container without an image": {"plain", core.RuntimeContainer, nil, "", "a container needs an image"},
		"a runtime that nobody has heard of": {
			"plain", "tent", nil, "",
			`unknown runtime "tent"; expected process or container`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{})
			node := coretest.Node("n1").Build()
			w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
			w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
			for _, p := range []core.Project{
				{Name: "plain"},
				{Name: "boxed", Runtime: core.RuntimeContainer},
				{Name: "below", Parent: "boxed"},
				{Name: "native", Parent: "below", Runtime: core.RuntimeProcess},
			} {
				w.must(&PutProject{By: root, Project: &p})
			}
			spec := coretest.Job().Set(func(s *core.Spec) {
				s.Project, s.Runtime, s.Hold = tc.project, tc.said, true
				if tc.box != nil {
					s.Extra = &core.Extra{Container: tc.box}
				}
			}).Spec()
			reply, err := w.do(&Submit{By: root, Spec: spec})
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			j, _ := w.st.Snapshot().Job(reply.(*Submitted).ID)
			if j.Spec.Runtime != tc.want {
				t.Errorf("it runs in %q, want %q", j.Spec.Runtime, tc.want)
			}
		})
	}
	w := newWorld(t, Config{})
	if _, err := w.do(&PutProject{
		By:      root,
		Project: &core.Project{Name: "p", Runtime: "tent"},
	}); core.CodeOf(err) != core.Invalid {
		t.Errorf("a project in tents: %v", err)
	}
}
