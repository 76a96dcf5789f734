package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/cli/app"
)

// Links lead to the program of the Slurm commands where it is there, also those made before it was, and to this one
// where not.
func TestLinksLeadToTheSmallerProgram(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	exe, small, links := filepath.Join(dir, "bireme"), filepath.Join(dir, slurmMain), filepath.Join(dir, "links")
	touch := func(path string) {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want string, args ...string) {
		t.Helper()
		var errs bytes.Buffer
		a := &App{App: app.App{Err: &errs, Out: &errs}, Links: []string{"sbatch"}, Exe: func() (string, error) {
			return exe, nil
		}}
		if code := a.Run(t.Context(), append([]string{"links", links}, args...)); code != 0 {
			t.Fatalf("links: %d %s", code, errs.String())
		}
		if to, _ := os.Readlink(filepath.Join(links, "sbatch")); to != want {
			t.Errorf("sbatch leads to %q, want %q", to, want)
		}
	}
	touch(exe)
	run(exe)
	touch(small)
	run(small)
	if err := os.Remove(small); err != nil {
		t.Fatal(err)
	}
	run(exe)
	touch(small)
	run(small)
	run("", "--remove")
}
