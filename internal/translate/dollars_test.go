package translate

import (
	"strings"
	"testing"
)

// Dollars of a script mean the same as commands of a configuration, and the other way round.
func TestDollars(t *testing.T) {
	t.Parallel()
	const script = "#!/bin/bash\necho $$ /tmp/x.$$ '${{ run.args }}' $HOME ${A} $(( 1 )) '$'\n"
	there, err := Script([]byte(script), Options{Name: "a.sh"})
	if err != nil {
		t.Fatal(err)
	}
	want := "echo $$$$ /tmp/x.$$$$ '$${{ run.args }}' $HOME ${A} $(( 1 )) '$'"
	if !strings.Contains(there.Output, want) {
		t.Errorf("the configuration lacks %s:\n%s", want, there.Output)
	}
	back, err := Configuration([]byte(there.Output), Options{Name: "a.yml"})
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(script, "\n")
	if !strings.HasSuffix(back.Output, body) {
		t.Errorf("the script does not end with %s:\n%s", body, back.Output)
	}
	const task = "type: task\ncommands:\n  - echo ${{ run.args }} ${{ groups[0].nodes[0].IP_ADDRESS }}\n"
	args, err := Configuration([]byte(task), Options{Name: "b.yml"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`echo "$@" ${{ groups[0]`, "a script has no such variable"} {
		if !strings.Contains(args.Output, part) {
			t.Errorf("it lacks %s:\n%s", part, args.Output)
		}
	}
}
