package config

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	caller := func(name string) (string, bool) { return "of the caller", name == "MINE" }
	for name, c := range map[string]struct {
		yaml string
		args []string
		env  []string
		key  string
		want string // JSON of the key, or what the error says after "!"
	}{
		"args": {
			"commands: ['echo ${{ run.args }} $$HOME $PWD']",
			[]string{"a b", "c"},
			nil, "commands",
			`["echo 'a b' c $HOME $PWD"]`,
		},
		"no args": {"commands: ['echo ${{run.args}}.']", nil, nil, "commands", `["echo ."]`},
		"only $$": {"commands: ['echo $$']", nil, nil, "commands", `["echo $"]`},
		"a group": {
			"commands: ['${{ groups[0].nodes[0].IP_ADDRESS }} $$']", nil, nil, "commands",
			`["${{ groups[0].nodes[0].IP_ADDRESS }} $"]`,
		},
		"bare": {"commands: [a]\nenv: [MINE, B=2]", nil, nil, "env", `{"MINE":"of the caller","B":"2"}`},
		"-e wins": {
			"commands: [a]\nenv: [MINE, B=2]", nil,
			[]string{"B=3", "C=$$"},
			"env",
			`{"MINE":"of the caller","B":"3","C":"$$"}`,
		},
		"-e takes":    {"commands: [a]", nil, []string{"MINE"}, "env", `{"MINE":"of the caller"}`},
		"another":     {"commands: [a]\nenv: {A: {key: MINE}}", nil, nil, "env", `{"A":"of the caller"}`},
		"no value":    {"commands: [a]\nenv: [THEIRS]", nil, nil, "", "!line 3, column 7: task.env: THEIRS has no value"},
		"-e no value": {"commands: [a]", nil, []string{"THEIRS"}, "", "!THEIRS has no value"},
		"-e no name":  {"commands: [a]", nil, []string{"1X=2"}, "", `!-e 1X=2: "1X" is not a variable's name`},
		"auth": {
			"image: x\nenv: [P=$$1]\nregistry_auth: {username: '${{ env.P }}', password: 'a$$${{ secrets.p }}'}", nil, nil,
			"registry_auth", `{"username":"$$1","password":"a$${{ secrets.p }}"}`,
		},
		"auth without env": {
			"image: x\nregistry_auth: {username: u, password: '${{ env.P }}'}", nil, nil, "",
			"!line 3, column 40: task.registry_auth.password: ${{ env.P }}: env has no P",
		},
	} {
		cfg, err := Read([]byte("type: task\n" + c.yaml + "\n"))
		if err == nil {
			err = cfg.Complete(Options{Args: c.args, Env: c.env, Lookup: caller})
		}
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", name, err, want)
			}
			continue
		}
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

func TestVariablesRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{
			"commands: ['echo ${{ run.args']",
			`line 2, column 12: task.commands.0: "${{ run.args" is not closed by }}`,
		},
		{
			"commands: ['echo ${{ a b }}']",
			`"a b" is not the name of a variable`,
		},
		{
			"commands: ['echo ${{ }}']",
			`"" is not the name of a variable`,
		},
		{
			"commands: ['echo ${{ run.id }}']",
			"${{ run.id }}: unknown variable; available in commands",
		},
		{
			"commands: ['echo ${{ env.A }}']",
			"commands do not know it; write $A",
		},
		{
			"commands: ['echo ${{ secrets.A }}']",
			"put it in env",
		},
		{
			"commands: [a]\nenv: {A: '${{ env.B }}'}",
			"line 3, column 10: task.env.A: ${{ env.B }}",
		},
		{
			"commands: [a]\nenv: ['A=${{ secrets.a.b }}']",
			`line 3, column 7: task.env.A: ${{ secrets.a.b }}: "a.b" is not the name of a secret`,
		},
		{
			"commands: [a]\nenv: {A: '${{ groups[0].nodes[0].IP_ADDRESS }}'}",
			"addresses of groups are known in commands only",
		},
		{
			"commands: ['${{ groups[1].nodes[0].IP_ADDRESS }}']",
			"there is no group 1; the last is 0",
		},
		{
			"commands: ['${{ groups[0].nodes[2].IP_ADDRESS }}']\nnodes: 2",
			"group 0 is sure to have 2 members only",
		},
		{
			"commands: ['${{ groups[0].replicas[0].IP_ADDRESS }}']",
			"a task has nodes, not replicas",
		},
		{
			"commands: ['${{ groups[0].nodes[0].NAME }}']",
			"write ${{ groups[i].nodes[j].IP_ADDRESS }}",
		},
		{
			"commands: [a]\nvolumes: ['v-${{ run.args }}:/d']",
			"line 3, column 11: task.volumes.0: ${{ run.args }}",
		},
		{
			"groups: [{commands: ['${{ groups[3].nodes[0].IP_ADDRESS }}']}]",
			"line 2, column 22: task.groups.0.commands.0: ${{ groups[3]",
		},
	} {
		_, err := Read([]byte("type: task\n" + c.src + "\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.src, err, c.want)
		}
	}
	const service = "type: service\nport: 80\ngroups:\n" +
		"  - {replicas: 0..2, scaling: {metric: rps, target: 1}, commands: [a]}\n" +
		"  - {replicas: 2, commands: ['${{ groups[%s].IP_ADDRESS }}']}\n"
	for ref, want := range map[string]string{
		"1].replicas[1": "", "1].nodes[1": "a service has replicas, not nodes", "0].replicas[0": "sure to have 0 members",
	} {
		_, err := Read([]byte(strings.Replace(service, "%s", ref, 1)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", ref, err, want)
		}
	}
	// What a client has sent is its commands as they are to run: only the addresses of groups are variables there.
	if _, err := ReadJSON([]byte(`{"type":"task","commands":["echo ${{ not ours }} $$ ${{ env.A }}"]}`)); err != nil {
		t.Error(err)
	}
	if _, err := ReadJSON([]byte(`{"type":"task","commands":["${{ groups[7].nodes[0].IP_ADDRESS }}"]}`)); err == nil {
		t.Error("a group that is not there was accepted")
	}
}
