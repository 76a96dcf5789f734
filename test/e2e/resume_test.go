//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// TestSrunOutlivesServer: a step and its srun continue while the server is away. One that ends meanwhile is heard to
// the last line; one that ends when the server is back ends its srun with its code. Both allocations are given back.
func TestSrunOutlivesServer(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "4G"})
	p := c.As(alice)
	short := p.Command(t.Context(), "srun", "-J", "short", "-n2", "-N2", "-l", "sh", "-c",
		`echo up; read a; echo $a; exit $((5 + SLURM_PROCID))`)
	long := p.Command(t.Context(), "srun", "-J", "long", "-n2", "-N2", "sh", "-c",
		`echo run; until [ -e go ]; do sleep 0.1; done; exit 7`)
	typed, err := short.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(c.Work, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	runs, err := os.Create(filepath.Join(c.Work, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	var errs, more bytes.Buffer
	short.Stdout, short.Stderr, long.Stdout, long.Stderr = said, &errs, runs, &more
	if err := short.Start(); err != nil {
		t.Fatal(err)
	}
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	// so that srun has its step: it can know of none that was made while its server died
	c.WaitFile(said.Name(), "0: up\n")
	c.WaitFile(said.Name(), "1: up\n")
	c.WaitFile(runs.Name(), "run\nrun\n")
	jobs := strings.Fields(p.Run("squeue", "-h", "-o", "%i"))
	c.KillServer()
	if _, err := typed.Write([]byte("while away\n")); err != nil {
		t.Fatal(err)
	}
	c.WaitFile(said.Name(), "0: while away\n")
	c.WaitFile(said.Name(), "1: while away\n")
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	write(t, c.Work+"/go", "")
	_ = short.Wait()
	if code := short.ProcessState.ExitCode(); code != 6 {
		t.Errorf("srun ended with %d, its tasks with 5 and 6:\n%s", code, errs.String())
	}
	_ = long.Wait()
	if code := long.ProcessState.ExitCode(); code != 7 {
		t.Errorf("srun ended with %d, its tasks with 7:\n%s", code, more.String())
	}
	if len(jobs) != 2 {
		t.Fatalf("jobs %q", jobs)
	}
	for _, id := range jobs {
		c.WaitEnd(id)
	}
	c.WaitClean()
}
