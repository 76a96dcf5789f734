//go:build e2e

package containers

import (
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// files: what a configuration brings along is there before the commands, with its modes and links, as the user they run
// as, and again after a requeue.
func files(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	dir := filepath.Join(c.Work, "brought")
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"one.txt": 0o644, "src/run.sh": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho from $0\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("run.sh", filepath.Join(dir, "src", "link")); err != nil {
		t.Fatal(err)
	}
	r := apply(t, p, dir, "brings", `image: box:1
user: app
files:
  - one.txt
  - src:~/code
  - {local_path: one.txt, path: /tmp/deep/two.txt}
commands:
  - stat -c '%n %a %U' one.txt /tmp/deep/two.txt code/run.sh
  - readlink code/link
  - code/link
`)
	if want := "one.txt 644 app\n/tmp/deep/two.txt 644 app\ncode/run.sh 755 app\nrun.sh\n" +
		"from code/link\n"; r.Code != 0 || r.Out != want {
		t.Errorf("files: %v\nwant %s", r, want)
	}
	apply(t, p, dir, "closed", "image: box:1\nuser: app\nfiles: ['one.txt:/etc/one.txt']\ncommands: [echo ran]\n")
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "closed")), "files: /etc/one.txt: permission denied")

	apply(t, p, dir, "again", "image: box:1\nfiles: [one.txt]\nretry: {on_events: [interruption]}\ncommands:\n"+
		"  - head -n1 one.txt && rm one.txt\n  - test -n \"$SLURM_RESTART_COUNT\" || sleep 100\n", "-d")
	c.Eventually("it runs", func() (bool, string) {
		out := p.Try("bireme", "logs", "again")
		return out.Out == "#!/bin/sh\n", out.String()
	})
	id := jobOf(t, c, "again")
	if err := os.Remove(filepath.Join(dir, "one.txt")); err != nil { // what was submitted is what counts
		t.Fatal(err)
	}
	c.Root().Run("scontrol", "requeue", id)
	c.Eventually("it has them again", func() (bool, string) {
		out := p.Try("sacct", "-X", "-n", "-P", "-j", id, "-o", "State,ExitCode")
		return out.Out == "COMPLETED|0:0\n", out.String()
	})
}
