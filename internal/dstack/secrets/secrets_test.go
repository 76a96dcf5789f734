package secrets

import (
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	known := map[string]string{"key": `a"b\c`, "two": "22"}
	value := func(name string) (string, bool) { v, ok := known[name]; return v, ok }
	for name, tc := range map[string]struct{ env, want, err string }{
		"none":          {env: "A=b$$c\x00B=${HOME}\x00", want: "A=b$$c\x00B=${HOME}\x00"},
		"some":          {env: "A=x${{ secrets.two }}y${{secrets.key}}\x00B=c\x00", want: "A=x22ya\"b\\c\x00B=c\x00"},
		"dollar":        {env: "A=$$${{ secrets.two }}\x00", want: "A=$22\x00"},
		"missing":       {env: "A=${{ secrets.no }}\x00", err: `env.A: the project has no secret "no"`},
		"other":         {env: "A=${{ env.HOME }}\x00", err: "only secrets are known here"},
		"not closed":    {env: "A=${{ secrets.two\x00", err: "not closed"},
		"a second name": {env: "A=1\x00A2=${{ secrets.two }}=3\x00", want: "A=1\x00A2=22=3\x00"},
		"registry": {
			env:  core.RegistryAuth + `={"username":"u","password":"${{ secrets.key }}"}` + "\x00",
			want: core.RegistryAuth + `={"password":"a\"b\\c","username":"u"}` + "\x00",
		},
		"registry, missing": {
			env: core.RegistryAuth + `={"username":"u","password":"${{ secrets.no }}"}` + "\x00",
			err: `registry_auth.password: the project has no secret "no"`,
		},
	} {
		got, err := Resolve([]byte(tc.env), value)
		switch {
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %v", name, err)
		case tc.err == "" && (err != nil || string(got) != tc.want):
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	names, err := Names([]byte("A=${{ secrets.two }}${{ secrets.key }}\x00B=${{ secrets.two }}\x00"))
	if err != nil || !slices.Equal(names, []string{"key", "two"}) {
		t.Errorf("%v, %v", names, err)
	}
}
