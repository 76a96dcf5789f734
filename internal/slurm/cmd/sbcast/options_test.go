package sbcast

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// What is told before anything is sent, and the exit codes, as Slurm 22.05 has them.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const usage = `Try "sbcast --help" for more information` + "\n"
	const e = "sbcast: error: "
	const packing = e + "Compression type 'foo' unknown, disabling compression support.\n"
	noJob := e + "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.\n"
	for args, want := range map[string]slurmtest.Result{
		"":                             {Err: "Need two file names, have 0 names\n" + usage, Code: 1},
		"a b c":                        {Err: "Need two file names, have 3 names\n" + usage, Code: 1},
		"FILE /x":                      {Err: noJob, Code: 1},
		"-s foo FILE /x":               {Err: "size specification is invalid, ignored\n" + noJob, Code: 1},
		"--compress=foo FILE /x":       {Err: packing + noJob, Code: 1},
		"--send-libs=x FILE /x":        {Err: e + "Ignoring unrecognized --send-libs value 'x'\n" + noJob, Code: 1},
		"-j 1 /nofile /x":              {Err: "sbcast: error: Can't open `/nofile`: No such file or directory\n", Code: 255},
		"-j 1 / /x":                    {Err: "sbcast: error: Can't mmap file `/`, No such device.\n", Code: 255},
		"-j 1 FILE /x/":                {Err: "sbcast: error: Target filename cannot be a directory.\n", Code: 1},
		"-j 1.x FILE /x":               {Err: "sbcast: fatal: Bad step specified: 1\n", Code: 1},
		"-j 99 FILE /x":                {Err: e + "Slurm job 99 lookup error: Invalid job id specified\n", Code: 255},
		"-j 1.7 FILE /x":               {Err: e + "Slurm job 1.7 lookup error: Invalid job id specified\n", Code: 255},
		"-j 99 --fanout=x -t y FILE /": {Err: "sbcast: error: Target filename cannot be a directory.\n", Code: 1},
	} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := slurmtest.Lab()
		c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/steps") {
				_, _ = w.Write([]byte(`{"steps":[]}`))
				return true
			}
			return false
		}
		words := strings.Fields(strings.ReplaceAll(args, "FILE", file))
		if d := cmp.Diff(want, c.Start(t).Run(t, "sbcast", Run, words)); d != "" {
			t.Errorf("sbcast %s: (-want +got)\n%s", args, d)
		}
	}
}

// -v tells of options, also of those that variables stand for; the command line wins.
func TestVerbose(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := slurmtest.Lab().Start(t).Run(t, "sbcast", Run, []string{"-vv", "-F3", "-j", "99", file, "/x"},
		func(w *cmd.World) {
			w.Environ = append(w.Environ, "SBCAST_FORCE=", "SBCAST_FANOUT=9", "SBCAST_SIZE=5k", "SBCAST_TIMEOUT=7",
				"SBCAST_EXCLUDE=/opt", "SBCAST_COMPRESS=lz4", "SBCAST_PRESERVE=1")
		})
	for _, want := range []string{
		"block_size = 5120", "compress   = 2", "exclude    = /opt", "force      = true", "fanout     = 3",
		"preserve   = true", "send_libs  = false", "timeout    = 7000", "verbose    = 2", "source     = " + file,
		"dest       = /x", "modes    = 100600", "size     = 0", "error: Warning: file `" + file + "` is empty.",
	} {
		if !strings.Contains(got.Err, "sbcast: "+want+"\n") {
			t.Errorf("no %q in\n%s", want, got.Err)
		}
	}
}
