package attach

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUserNamesStandForTargets(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Target{
		"42": {Job: 42}, "42_root": {Job: 42}, "42-n3": {Job: 42, Node: 3}, "42-a2": {Job: 42, Attempt: 2},
		"42-a2-n3": {Job: 42, Attempt: 2, Node: 3}, "9007199254740993-a1_root": {Job: 9007199254740993, Attempt: 1},
	} {
		if got, ok := Parse(name); !ok || got != want {
			t.Errorf("%s is %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{
		"", "root", "0", "-1", "042", "42-", "42-n", "42-n0", "42-a0", "42-n1-a1", "42-a1-a2", "42_root_root", "42-x1",
		"42-n-1", "42-n99999999999", "+42", "42-n+1", "99999999999999999999", "42-n1-n2", " 42",
	} {
		if got, ok := Parse(name); ok {
			t.Errorf("%q was taken for %+v", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("42-a2-n3_root")
	f.Fuzz(func(t *testing.T, name string) {
		if got, ok := Parse(name); ok {
			if again, ok := Parse(got.User()); !ok || again != got {
				t.Errorf("%q is %+v, whose name is %q", name, got, got.User())
			}
		}
	})
}

func TestConnectionForms(t *testing.T) {
	t.Parallel()
	l := Listener{Host: "gw", Port: 2222}
	at := Target{Job: 7, Attempt: 1, Node: 1}
	want := Connection{
		Hostname: "gw", Port: 2222, Username: "7-a1-n1", Dockerized: true, NetworkMode: "bridge",
		Ports: map[int]int{10022: 10022, 10999: 10999},
	}
	if diff := cmp.Diff(want, l.Connection(at)); diff != "" {
		t.Error(diff)
	}
	l.Proxy = true
	want = Connection{
		Hostname: "gw", Port: 2222, Username: "7-a1-n1", NetworkMode: "host",
		ProxyHostname: "gw", ProxyPort: 2222, ProxyUpstreamID: "7-a1-n1",
	}
	if diff := cmp.Diff(want, l.Connection(at)); diff != "" {
		t.Error(diff)
	}
}

func TestLinksOfEditors(t *testing.T) {
	t.Parallel()
	for _, tc := range [][4]string{
		{"vscode", "run", "/", "vscode://vscode-remote/ssh-remote+run/"},
		{"cursor", "run", "/w/d", "cursor://vscode-remote/ssh-remote+run/w/d"},
		{"windsurf", "run-1-0", "/w", "windsurf://vscode-remote/ssh-remote+run-1-0/w"},
		{"zed", "run", "/w", "zed://ssh/run/w"},
		{"emacs", "run", "/w", ""},
	} {
		if got := IDELink(tc[0], tc[1], tc[2]); got != tc[3] {
			t.Errorf("%v: %q", tc[:3], got)
		}
	}
	if Host("run", 0) != "run" || Host("run", 2) != "run-2-0" {
		t.Error(Host("run", 0), Host("run", 2))
	}
}
