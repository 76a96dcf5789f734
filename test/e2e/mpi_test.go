//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// TestMPI runs one program built with two libraries on 16 tasks over four nodes: MPICH finds its ranks by srun's PMI,
// Open MPI by its PMIx; Open MPI's mpirun starts its daemons by srun inside an allocation.
func TestMPI(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 4, CPUs: 8, Memory: "4G"})
	// The libraries take any interface they find, also one that another test removes a moment later: all nodes are this
	// machine.
	p := c.As(alice).With("UCX_NET_DEVICES=lo", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo",
		"OMPI_MCA_oob_tcp_if_include=lo")
	var want []string
	for rank := range 16 {
		want = append(want, fmt.Sprintf("rank %d of 16 on n%d: sum 120, from %d", rank, 1+rank/4, (rank+15)%16))
	}
	slices.Sort(want)
	for _, x := range []struct {
		library string
		argv    []string
	}{
		{"mpich", []string{"srun", "-N4", "-n16", "--ntasks-per-node=4", "PROGRAM"}},
		{"mpich", []string{"srun", "--mpi=pmi2", "-N4", "--ntasks-per-node=4", "PROGRAM"}},
		{"openmpi", []string{"salloc", "-Q", "-N4", "-n16", "--ntasks-per-node=4", "mpirun.openmpi", "PROGRAM"}},
		{"openmpi", []string{"srun", "--mpi=pmix", "-N4", "--ntasks-per-node=4", "PROGRAM"}},
	} {
		t.Run(x.library+" by "+x.argv[0], func(t *testing.T) {
			program := filepath.Join(c.Work, "ring-"+x.library)
			if out, err := exec.Command("mpicc."+x.library, "-o", program, "testdata/ring.c").CombinedOutput(); err != nil {
				t.Fatalf("mpicc.%s: %v\n%s", x.library, err, out)
			}
			argv := slices.Clone(x.argv)
			argv[len(argv)-1] = program
			got := strings.Split(strings.TrimSpace(p.In(c.Work).Run(argv[0], argv[1:]...)), "\n")
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%s\nwant\n%s", strings.Join(argv, " "), strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	if out := p.Try("srun", "--mpi=pmix_v1", "true"); out.Code == 0 || !strings.Contains(out.Err, "--mpi=list") {
		t.Errorf("PMIx of a release that is not served: %v", out)
	}
	// A task ends the program: the step ends on both nodes, with the status it gave.
	out := p.In(c.Work).Try("srun", "--mpi=pmix", "-N2", "--ntasks-per-node=2", "./ring-openmpi", "abort")
	if out.Code != 7 || !strings.Contains(out.Err, "Job step aborted") || strings.Contains(out.Out, "after") {
		t.Errorf("abort: %v", out)
	}
	// Ranks that are dealt out in turn have neighbors on the other node.
	// Release 5 has another library of PMIx.
	wrapper := filepath.Join(cmp.Or(os.Getenv("BIREME_DSTACK"), "/opt/bireme-test"), "openmpi-5.0.11/bin/mpicc")
	five := filepath.Join(c.Work, "ring-openmpi5")
	if text, err := exec.Command(wrapper, "-o", five, "testdata/ring.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", wrapper, err, text)
	}
	for _, program := range []string{"./ring-openmpi", five} {
		got := p.In(c.Work).Run("srun", "--mpi=pmix", "-N2", "-n4", "-m", "cyclic", program)
		if !strings.Contains(got, "rank 1 of 4 on n2: sum 6, from 0") {
			t.Errorf("cyclic, %s:\n%s", program, got)
		}
	}
	c.WaitClean()
}
