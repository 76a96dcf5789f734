package step

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/step/prologenv"
)

// TestSet: many variables are set as few are.
func TestSet(t *testing.T) {
	t.Parallel()
	base := []string{"A=1", "B=2", "A=3", "junk", "C="}
	vars := []string{"B=x", "D=1", "D=2", "C=y", "odd"}
	for i := range 20 {
		vars = append(vars, fmt.Sprintf("V%d=%d", i, i))
	}
	got, want := overlay(base, vars), setFew(slices.Clone(base), vars)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if base[1] != "B=2" {
		t.Error("the environment itself was changed")
	}
}

// TestSetOfMany: what a job, its tasks and its prolog say is gone through once, however much it is.
func TestSetOfMany(t *testing.T) {
	t.Parallel()
	const n = 200_000
	env, vars := make([]string, n), make([]string, n)
	var said strings.Builder
	for i := range n {
		env[i], vars[i] = fmt.Sprintf("V%d=old", i), fmt.Sprintf("V%d=new", n-1-i)
		fmt.Fprintf(&said, "export V%d=said\nprint line\nunset W%d\n", i, i)
	}
	got := set(slices.Clone(env), vars)
	followed, prints := prologenv.Follow(env, []byte(said.String()))
	if len(got) != n || got[7] != "V7=new" || len(followed) != n || followed[7] != "V7=said" || len(prints) != 5*n {
		t.Errorf("%d variables, %q; %d, %q; %d bytes printed", len(got), got[7], len(followed), followed[7], len(prints))
	}
}
