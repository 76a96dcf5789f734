package srun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/wire"
)

// --prolog and --epilog run around the step, with the job's variables; a prolog that fails keeps the step from
// starting.
func TestPrologAndEpilog(t *testing.T) {
	t.Parallel()
	hello := func(c *wire.Conn, _ func() string) {
		say(c, 0, 1, "step\n")
		exit(c, "n001", 0, 0, 0)
		last(c, "n001")
	}
	script := func(t *testing.T, w *cmd.World, name, text string) {
		if err := os.WriteFile(filepath.Join(w.Dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlay(t, 7, [][]int32{{0}}, hello)
	got := p.Run(t, "srun", Run, []string{"--prolog=./before", "--epilog=./after", "hostname"}, func(w *cmd.World) {
		script(t, w, "before", "echo $SLURM_SCRIPT_CONTEXT of $SLURM_JOB_ID on $SLURM_JOB_NODELIST")
		script(t, w, "after", "echo $SLURM_SCRIPT_CONTEXT; exit 3")
	})
	if got.Out != "prolog_srun of 7 on n001\nstep\nepilog_srun\n" || got.Code != 0 ||
		got.Err != "srun: error: epilog ./after: exit status 3\n" {
		t.Errorf("%+v", got)
	}
	p = newPlay(t, 8, [][]int32{{0}}, hello)
	got = p.Run(t, "srun", Run, []string{"--prolog=./before", "hostname"}, func(w *cmd.World) {
		script(t, w, "before", "exit 1")
	})
	if got.Code != 1 || strings.Contains(got.Out, "step") ||
		got.Err != "srun: error: prolog ./before: exit status 1\n" || p.released == nil {
		t.Errorf("%+v, released %v", got, p.released)
	}

	// The site's run where none were given, but for "none".
	p = newPlay(t, 9, [][]int32{{0}}, hello)
	p.siteProlog, p.siteEpilog = "./site", "./site"
	got = p.Run(t, "srun", Run, []string{"--epilog=none", "hostname"}, func(w *cmd.World) {
		script(t, w, "site", "echo site $SLURM_SCRIPT_CONTEXT")
	})
	if got.Code != 0 || got.Out != "site prolog_srun\nstep\n" {
		t.Errorf("%+v", got)
	}
}
