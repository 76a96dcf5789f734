package convert

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
)

func task(t *testing.T, configuration string, more func(*wire.RunSpec)) *Spec {
	t.Helper()
	in := wire.RunSpec{Configuration: json.RawMessage(configuration)}
	if more != nil {
		more(&in)
	}
	s, faults := Read(&in, "body")
	if len(faults) > 0 {
		t.Fatalf("%+v", faults)
	}
	return s
}

// TestSubmitInside: commands of a container run on a terminal, secrets stay references, images are the site's.
func TestSubmitInside(t *testing.T) {
	t.Parallel()
	s := task(t, `{"type":"task","commands":["echo a"],"env":{"A":"x${{ secrets.key }}","B":"$$"},
		"registry_auth":{"username":"u","password":"${{ secrets.key }}"}}`, nil)
	var asked []string
	o := Options{Name: "r", Images: Images{Base: "site/base:1"}, Secret: func(name string) (string, error) {
		asked = append(asked, name)
		return "value", nil
	}}
	sub, err := s.Submit(o)
	if err != nil {
		t.Fatal(err)
	}
	c := sub.Spec.Extra.Container
	if !c.Terminal || c.Image != "site/base:1" || sub.Spec.Extra.KillGrace != killAfter {
		t.Errorf("%+v, %d", c, sub.Spec.Extra.KillGrace)
	}
	want := []string{
		"A=x${{ secrets.key }}", "B=$$",
		core.RegistryAuth + `={"password":"${{ secrets.key }}","username":"u"}`,
	}
	if !slices.Equal(sub.Env, want) || !slices.Equal(asked, []string{"key"}) {
		t.Errorf("%q, asked for %q", sub.Env, asked)
	}
	o.Secret = func(string) (string, error) { return "", errors.New("no such secret") }
	if _, err := s.Submit(o); err == nil {
		t.Error("a run was taken whose secret is missing")
	}
}

// TestSubmitRepo: a repository is brought before the commands, with the changes of whoever applies it.
func TestSubmitRepo(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	s := task(t, `{"type":"task","image":"box","commands":["echo a"],"repos":[{"local_path":".","path":"/src",
		"if_exists":"skip"}]}`, func(in *wire.RunSpec) {
		in.RepoID, in.RepoCodeHash = text("0123"), text("abc")
		in.RepoData = json.RawMessage(`{"repo_type":"remote","repo_name":"x","repo_branch":"main","repo_hash":"f00"}`)
		in.FileArchives = []wire.FileArchiveTarget{{ID: "i", Path: "notes"}}
	})
	sub, err := s.Submit(Options{Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"branch=main", "hash=f00", `patch="$HOME"/.bireme-changes-r`, "dir=/src", "echo a"} {
		if !strings.Contains(sub.Script, part) {
			t.Errorf("the script lacks %q:\n%s", part, sub.Script)
		}
	}
	if strings.Index(sub.Script, "bireme_repo") > strings.Index(sub.Script, "echo a") || sub.Spec.Extra.Repo != "0123" {
		t.Errorf("repo %q:\n%s", sub.Spec.Extra.Repo, sub.Script)
	}
	list, err := s.Archives("r", [][]byte{[]byte("tar")}, []byte("diff"))
	if err != nil || len(list) != 2 || list[0].Path != "~/.bireme-changes-r" || list[1].Path != "notes" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestSubmitGroups: one job a group, one script for all.
func TestSubmitGroups(t *testing.T) {
	t.Parallel()
	s := task(t, `{"type":"task","image":"box","groups":[
		{"name":"a","nodes":1,"resources":{"cpu":4,"memory":"1GB.."},"commands":["echo a"],"ports":[8080]},
		{"name":"b","nodes":2,"resources":{"cpu":1,"memory":"2GB..","gpu":1},
		 "commands":["echo ${{ groups[0].nodes[0].IP_ADDRESS }}"]}],"max_duration":600}`, nil)
	sub, err := s.Submit(Options{Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if len(sub.Components) != 1 {
		t.Fatalf("%d components", len(sub.Components))
	}
	a, b := &sub.Spec, &sub.Components[0]
	if a.Shape.NodesMin != 1 || a.Shape.CPUsPerTask != 4 || len(a.Extra.Container.Ports) != 1 ||
		b.Shape.NodesMin != 2 || b.Shape.CPUsPerTask != 1 || len(b.Shape.Gres) != 1 || len(b.Extra.Container.Ports) != 0 ||
		b.TimeLimit != 600 || b.Extra.Container.Own {
		t.Errorf("%+v\n%+v", a, b)
	}
	for _, part := range []string{"case $BIREME_NODE_GROUP in", "0)\n{ :\necho a\n}", "1)\n{ :\necho ${{ groups[0]"} {
		if !strings.Contains(sub.Script, part) {
			t.Errorf("the script lacks %q:\n%s", part, sub.Script)
		}
	}
}
