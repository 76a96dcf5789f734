package agent

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// TestChooseMaker: an engine where there is one, then apptainer, singularity, enroot; files and bundles never go to an
// engine.
func TestChooseMaker(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, name := range []string{"apptainer", "singularity", "enroot", "runc", "crun"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const all = "apptainer singularity enroot runc crun"
	for name, tc := range map[string]struct {
		installed string
		engine    string // as the operator said it
		socket    bool   // an engine's is there
		box       core.Container
		want      string // kind and program
	}{
		"an engine":                  {all, "", true, core.Container{Image: "a"}, " "},
		"no engine":                  {all, "", false, core.Container{Image: "a"}, "apptainer apptainer"},
		"no apptainer":               {"singularity enroot", "", false, core.Container{Image: "a"}, "apptainer singularity"},
		"enroot alone":               {"enroot", "", false, core.Container{Image: "a"}, "enroot enroot"},
		"nothing":                    {"", "", false, core.Container{Image: "a"}, " "},
		"said against the engine":    {all, "enroot", true, core.Container{Image: "a"}, "enroot enroot"},
		"said and not there":         {"enroot", "apptainer", true, core.Container{Image: "a"}, "apptainer "},
		"a socket that is not there": {all, "/no/such.sock", false, core.Container{Image: "a"}, " "},
		"a file":                     {all, "", true, core.Container{Image: "/a.sif"}, "apptainer apptainer"},
		"a file of enroot's":         {all, "", true, core.Container{Image: "/a.sqsh"}, "enroot enroot"},
		"a file and nothing":         {"", "", true, core.Container{Image: "/a.sif"}, "apptainer "},
		"a bundle":                   {all, "", true, core.Container{Bundle: "/b"}, "oci runc"},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: PATH is the process's
			var path []string
			for _, p := range strings.Fields(tc.installed) {
				path = append(path, filepath.Join(dir, p))
			}
			t.Setenv("PATH", strings.Join(path, ":"))
			m := &makers{engine: tc.engine, socket: "/no/such.sock"}
			if tc.socket {
				m.socket = socket
			}
			kind, program := m.choose(&wire.Container{Container: tc.box})
			if program != "" {
				program = filepath.Base(program)
			}
			if got := kind + " " + program; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for engine, ok := range map[string]bool{"": true, "/a/sock": true, "apptainer": true, "sock": false, "docker": false} {
		if err := checkEngine(engine); (err == nil) != ok {
			t.Errorf("%q: %v", engine, err)
		}
	}
}
