//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// watchStep: sattach shows what a step writes from then on, sends what is typed to all its tasks or to one, and ends as
// the step does, whichever way the step's streams go.
func watchStep(t *testing.T, c *cluster.Cluster) {
	for _, way := range []string{"on", "off"} {
		p := c.As(alice).With("BIREME_DIRECT=" + way)
		srun := p.Command(t.Context(), "srun", "-J", "talk", "-n3", "-N2", "-l", "sh", "-c",
			"read a; echo first $a; echo again $a >&2; read b; echo second $b; read c; exit $SLURM_PROCID")
		typed, err := srun.StdinPipe() // stays open: it is others who type
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		srun.Stdout = &said
		if err := srun.Start(); err != nil {
			t.Fatal(err)
		}
		var job string
		c.Eventually("the step runs", func() (bool, string) {
			job = strings.TrimSpace(p.Run("squeue", "-s", "-h", "-n", "talk", "-o", "%i"))
			return strings.HasSuffix(job, ".0"), job
		})
		layout := p.Run("sattach", "--layout", job)
		nodes := strings.Fields(p.Run("scontrol", "show", "hostnames",
			strings.TrimSpace(p.Run("squeue", "-h", "-j", strings.TrimSuffix(job, ".0"), "-o", "%N"))))
		if len(nodes) != 2 {
			t.Fatalf("nodes %q", nodes)
		}
		wants(t, "layout", layout, "Job step layout:\n\t3 tasks, 2 nodes (", ")\n\n\tNode 0 ("+nodes[0]+
			"), 2 task(s): 0 1 \n\tNode 1 ("+nodes[1]+"), 1 task(s): 2 \n")
		refused(t, c.As(bob).Try("sattach", job), 1, "sattach: error: Could not get job step info: Access/permission denied")

		all := attach(t, c, p, "all."+way, "-l", job)
		all.types(t, "hello\n")
		for _, line := range []string{"0: first hello\n", "1: first hello\n", "2: first hello\n"} {
			c.WaitFile(all.out, line)
		}
		one := attach(t, c, p, "one."+way, "--input-filter", "1", "--output-filter=1", "-e", "0", job)
		one.types(t, "you\n")
		c.WaitFile(one.out, "second you\n")
		all.types(t, "others\nend\n") // of which task 1 reads the first alone
		for _, a := range []*attachment{all, one} {
			_ = a.cmd.Wait()
			if code := a.cmd.ProcessState.ExitCode(); code != 2 {
				t.Errorf("sattach ended with %d, the step with 2:\n%s", code, read(t, a.errs))
			}
		}
		_ = srun.Wait()
		_ = typed.Close()
		if code := srun.ProcessState.ExitCode(); code != 2 {
			t.Errorf("srun ended with %d", code)
		}
		want := []string{
			"0: first hello", "0: second others", "1: first hello", "1: second you", "2: first hello",
			"2: second others",
		}
		for who, text := range map[string]string{"srun": said.String(), "sattach": read(t, all.out)} {
			if got := lines(text); !slices.Equal(got, want) {
				t.Errorf("BIREME_DIRECT=%s, %s showed\n%s", way, who, text)
			}
		}
		wants(t, "standard error", read(t, all.errs), "0: again hello\n", "2: again hello\n")
		if got := read(t, one.out); got != "second you\n" {
			t.Errorf("what task 1 wrote: %q", got)
		}
		refused(t, p.Try("sattach", job), 1, "sattach: error: Could not get job step info: Invalid job id specified")
	}
	refused(t, c.As(alice).Try("sattach", "12"), 1, "sattach: error: Failed to parse stepid from command line options")
}

// attachment is an sattach that runs.
type attachment struct {
	cmd       *exec.Cmd
	in        io.Writer // stays open as long as it runs
	out, errs string    // files
}

func attach(t *testing.T, c *cluster.Cluster, p *cluster.Person, name string, args ...string) *attachment {
	t.Helper()
	a := &attachment{
		cmd: p.Command(t.Context(), "sattach", args...), out: filepath.Join(c.Work, "attach.out."+name),
		errs: filepath.Join(c.Work, "attach.err."+name),
	}
	out, err := os.Create(a.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errs, err := os.Create(a.errs)
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	a.cmd.Stdout, a.cmd.Stderr = out, errs
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *attachment) types(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(a.in, text); err != nil {
		t.Fatal(err)
	}
}
