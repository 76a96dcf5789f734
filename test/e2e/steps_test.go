//go:build e2e

package e2e

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/test/cluster"
)

// TestSteps runs steps as users do: side by side in one allocation, several programs at once, over components, bound
// and with their own GPUs.
func TestSteps(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 3, CPUs: 4, Memory: "4G", Gres: "gpu:2"})
	for name, f := range map[string]func(*testing.T, *cluster.Cluster){
		"share": shareAllocation, "wait for others": waitForSteps, "programs": programsByRank, "components": overComponents,
		"binding": bindAsIf, "gpus": gpusOfTasks, "ends": endsOfTasks, "input": inputOfTasks,
		"terminal": terminalOfTask, "interrupt": interrupted,
		"broadcast": broadcast, "relayed": relayed, "attach": watchStep, "windows": windows,
	} {
		t.Run(name, func(t *testing.T) { f(t, c.For(t)) })
	}
	c.WaitClean()
}

// lines are a text's, sorted: tasks write in any order.
func lines(text string) []string {
	list := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(list)
	return list
}

func wantLines(t *testing.T, r cluster.Result, code int, want ...string) {
	t.Helper()
	slices.Sort(want)
	if r.Code != code || !slices.Equal(lines(r.Out), want) {
		t.Errorf("want exit status %d and\n%s\n%v", code, strings.Join(want, "\n"), r)
	}
}

// shareAllocation: two exact steps meet in a pipe, so they run at one time; one that overlaps runs beside one that has
// all.
func shareAllocation(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	script := write(t, filepath.Join(c.Work, "share.sh"), `#!/bin/sh
mkfifo meet.$$ over.$$
srun -Q -n1 --exact sh -c "echo met >meet.$$" &
srun -Q -n1 --exact cat meet.$$
wait
srun -Q -n1 cat over.$$ &
srun -Q -n1 --overlap sh -c "echo beside >over.$$"
wait
`)
	wantLines(t, p.Try("salloc", "-Q", "-n2", "-N1", script), 0, "met", "beside")
}

// waitForSteps: a step that needs what another has waits for it, and says so; an immediate one does not.
func waitForSteps(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	script := write(t, filepath.Join(c.Work, "busy.sh"), `#!/bin/sh
mkfifo hold up
srun -n1 sh -c "echo >up; cat hold" &
cat up
srun -I -n1 true
echo immediate $? >busy.rc
srun -n1 echo after
wait
`)
	cmd := p.Command(t.Context(), "salloc", "-n2", "-N1", script)
	var out, errs bytes.Buffer
	said := filepath.Join(c.Work, "busy.err")
	cmd.Stdout = &out
	cmd.Stderr = &errs
	cmd.Args = append([]string{"sh", "-c", `exec "$@" 2>` + said, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.WaitFile(said, "step creation temporarily disabled, retrying (Requested nodes are busy)")
	if out := p.Run("squeue", "-s", "-h", "-o", "%j"); strings.Contains(out, "echo") {
		t.Errorf("the second step runs beside the first:\n%s", out)
	}
	// who made a pipe may write to it; others may not where fs.protected_fifos is set
	p.Run("/bin/sh", "-c", "echo held >hold")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s%s", err, out.String(), read(t, said))
	}
	if got := lines(out.String()); !slices.Equal(got, []string{"", "after", "held"}) &&
		!slices.Equal(got, []string{"after", "held"}) {
		t.Errorf("steps wrote %q", got)
	}
	wants(t, "salloc", read(t, said), "srun: Step created for job ", "srun: error: Unable to create step for job ",
		": Requested nodes are busy\n")
	wants(t, "busy.rc", read(t, filepath.Join(c.Work, "busy.rc")), "immediate 1")
}

func programsByRank(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	conf := write(t, filepath.Join(c.Work, "mp.conf"),
		"# ranks and programs\n0 echo 'the master'\n1,3 echo odd %t %o\n* echo rest %t\n")
	wantLines(t, p.Try("srun", "-n4", "-N2", "-l", "--multi-prog", conf, "more"), 0, "0: the master more",
		"1: odd 1 0 more", "2: rest 2 more", "3: odd 3 1 more")
	short := write(t, filepath.Join(c.Work, "short.conf"), "0 true\n")
	refused(t, p.Try("srun", "-n2", "--multi-prog", short), 1, "No executable program specified for task 1")
	refused(t, p.Try("srun", "--multi-prog", "missing.conf"), 1, "srun: error: ", "missing.conf")
}

// overComponents: the tasks of all components are one world.
func overComponents(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	world := `echo $SLURM_PROCID of $SLURM_NTASKS in $SLURM_JOB_ID, $SLURM_NODEID of $SLURM_NNODES, ` +
		`$SLURM_CPUS_ON_NODE CPUs`
	r := p.Try("srun", "-n1", "-c4", "sh", "-c", world, ":", "-n2", "sh", "-c", world)
	if r.Code != 0 || len(lines(r.Out)) != 3 {
		t.Fatalf("%v", r)
	}
	for i, line := range lines(r.Out) {
		want := []string{
			"0 of 3 in ", ", 0 of 2, 4 CPUs", "1 of 3 in ", ", 1 of 2, 2 CPUs", "2 of 3 in ",
			", 1 of 2, 2 CPUs",
		}[2*i:]
		if !strings.HasPrefix(line, want[0]) || !strings.HasSuffix(line, want[1]) {
			t.Errorf("task %d: %q", i, line)
		}
	}
	inside := write(t, filepath.Join(c.Work, "inside.sh"), `#!/bin/sh
echo $SLURM_HET_SIZE $SLURM_NTASKS_HET_GROUP_1
srun -l echo first
srun -l --het-group=1 echo second
srun -l --het-group=0,1 echo both
srun -l echo a : sh -c 'echo b; exit 3'
echo $?
`)
	wantLines(t, p.Try("salloc", "-Q", "-n1", ":", "-n2", inside), 0,
		"2 2", "0: first", "0: second", "1: second", "0: both", "1: both", "2: both", "0: a", "1: b", "2: b", "3")
	refused(t, p.Try("srun", "--het-group=x", "true"), 1, "srun: error: Invalid --het-group specification: x")
}

// bindAsIf: emulated CPUs are nowhere, and tasks are told of them all the same.
func bindAsIf(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := p.Try("srun", "-n2", "-N1", "--exclusive", "--cpu-bind=verbose,cores", "sh", "-c", "echo $SLURM_CPU_BIND")
	wantLines(t, r, 0, "verbose,mask_cpu:0x1,0x2", "verbose,mask_cpu:0x1,0x2")
	wants(t, "srun", r.Err, "task  0  0 [", "]: mask 0x1 set\n", "task  1  1 [", "]: mask 0x2 set\n", "cpu-bind=MASK - n")
	wantLines(t, p.Try("srun", "-n2", "-N1", "--exclusive", "--cpu-bind=map_cpu:1,0", "printenv",
		"SLURM_CPU_BIND_LIST"), 0, "1,0", "1,0")
	refused(t, p.Try("srun", "-n1", "--cpu-bind=map_cpu:63", "true"), 1, "Unable to satisfy cpu bind request")
	refused(t, p.Try("srun", "--cpu-bind=sideways", "true"), 255, "Invalid --cpu-bind argument: sideways", "map_cpu:")
	wants(t, "help", p.Run("srun", "--cpu-bind=help"), "mask_cpu:LIST")
}

func gpusOfTasks(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	seen := []string{"sh", "-c", "echo $SLURM_LOCALID sees $CUDA_VISIBLE_DEVICES"}
	wantLines(t, p.Try("srun", append([]string{"-n2", "-N1", "--gpus-per-task=1"}, seen...)...), 0, "0 sees 0", "1 sees 1")
	wantLines(t, p.Try("srun", append([]string{"-n2", "-N1", "--gres=gpu:2", "--gpu-bind=map_gpu:1,0"}, seen...)...), 0,
		"0 sees 1", "1 sees 0")
	script := write(t, filepath.Join(c.Work, "gpus.sh"), `#!/bin/sh
mkfifo g.$$
srun -Q -n1 --exact -G1 sh -c "echo \$CUDA_VISIBLE_DEVICES >g.$$" &
srun -Q -n1 --exact -G1 sh -c "read other <g.$$; echo \$other \$CUDA_VISIBLE_DEVICES" | tr ' ' '\n' | sort
wait
`)
	wantLines(t, p.Try("salloc", "-Q", "-n2", "-N1", "-G2", script), 0, "0", "1")
}

func endsOfTasks(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := p.Try("srun", "-n3", "-N3", "-K", "sh", "-c", "if [ $SLURM_PROCID = 1 ]; then until [ -e bad.0 ] && [ -e "+
		"bad.2 ]; do :; done; exit 3; fi; : >bad.$SLURM_PROCID; exec tail -f /dev/null")
	refused(t, r, 143, ": task 1: Exited with exit code 3\n", "srun: launch/slurm: _step_signal: Terminating StepId=",
		": task 0: Terminated\n", ": task 2: Terminated\n",
		" ON n1 CANCELLED AT ", " ON n3 CANCELLED AT ")
	r = p.Try("srun", "-n2", "-N1", "-W1", "sh", "-c", "if [ $SLURM_PROCID = 0 ]; then exit 0; fi; exec tail -f /dev/null")
	refused(t, r, 137, "srun: First task exited 1s ago\n", " task 1: running\n", " task 0: exited\n", // [wait-kill]
		"srun: Job step aborted: Waiting up to ", " task 1: Killed\n", " CANCELLED AT ")
	refused(t, p.Try("srun", "-n3", "-N1", "sh", "-c", "exit $SLURM_PROCID"), 2, ": task 1: Exited with exit code 1\n",
		": task 2: Exited with exit code 2\n")
	refused(t, p.Try("srun", "-n2", "-N1", "sh", "-c", "[ $SLURM_PROCID = 1 ] && kill -SEGV $$; exit 200"), 139,
		"Segmentation fault")
}

func inputOfTasks(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	for mode, want := range map[string][]string{
		"all": {"0: hello", "1: hello", "2: hello"}, "1": {"1: hello"}, "none": {""},
		write(t, filepath.Join(c.Work, "in.txt"), "file\n"): {"0: file", "1: file", "2: file"},
	} {
		wantLines(t, p.TryIn("hello\n", "srun", "-n3", "-N2", "-l", "-i", mode, "cat"), 0, want...)
	}
	p.Run("srun", "-n2", "-o", "out.%t.%N", "sh", "-c", "echo task $SLURM_PROCID >&2")
	files, _ := filepath.Glob(filepath.Join(c.Work, "out.1.n*"))
	if len(files) != 1 || read(t, files[0]) != "task 1\n" {
		t.Errorf("files of task 1: %q", files)
	}
}

// terminalOfTask: a terminal has its size from the first, and is told when that changes.
func terminalOfTask(t *testing.T, c *cluster.Cluster) {
	cmd := c.As(alice).Command(t.Context(), "srun", "--pty", "sh", "-c",
		`stty size; trap 'stty size; exit 5' WINCH; echo ready; while :; do read x; done`)
	tty := openPTY(t, cmd, 33, 77)
	tty.until(t, "33 77", "ready")
	tty.resize(t, 40, 100)
	tty.until(t, "40 100")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("srun --pty: %v", err)
	}
}

// interrupted [sigint]: one Ctrl-C tells how things stand, a second one is passed on, a third one kills the step.
func interrupted(t *testing.T, c *cluster.Cluster) {
	said := filepath.Join(c.Work, "interrupt.err")
	cmd := c.As(alice).Command(t.Context(), "srun", "-n2", "-N1", "sh", "-c", "trap '' INT; echo up >&2; exec tail "+
		"-f /dev/null")
	cmd.Args = append([]string{"sh", "-c", `exec "$@" 2>` + said, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.WaitFile(said, "up\nup\n")
	deadline := time.Now().Add(20 * time.Second)
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for aborted := false; !aborted; { // a slow machine may take more than a second between two
		if time.Now().After(deadline) {
			t.Fatalf("three interrupts do not end it:\n%s", read(t, said))
		}
		before := strings.Count(read(t, said), "srun: ")
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		c.Eventually("srun answers", func() (bool, string) {
			text := read(t, said)
			return strings.Count(text, "srun: ") > before, text
		})
		aborted = strings.Contains(read(t, said), "Job step aborted")
	}
	<-over
	if code := cmd.ProcessState.ExitCode(); code != 137 {
		t.Errorf("exit status %d:\n%s", code, read(t, said))
	}
	wants(t, "srun", read(t, said), "srun: interrupt (one more within 1 sec to abort)\n", " tasks 0-1: running\n",
		"srun: sending Ctrl-C to StepId=", "srun: forcing job termination\n",
		"srun: Job step aborted: Waiting up to ")
}

// broadcast: a file comes to all nodes, in a tree and by the step's input.
func broadcast(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	write(t, filepath.Join(c.Work, "file.txt"), strings.Repeat("some text\n", 10000))
	script := write(t, filepath.Join(c.Work, "cast.sh"), `#!/bin/sh
# The nodes share their folders: each finds what another has made, which is the same.
sbcast file.txt $PWD/cast.a && sbcast -f -F1 -C -s 10k file.txt cast.b &&
	BIREME_DIRECT=off sbcast -f -p file.txt $PWD/cast.c || exit
for f in cast.a cast.b cast.c; do cmp file.txt $f && echo $f; done
[ cast.c -nt file.txt ] || [ cast.c -ot file.txt ] || echo same time
sbcast file.txt $PWD/cast.a || echo refused
sbcast -f file.txt $PWD/cast.a && echo forced
`)
	r := p.Try("salloc", "-Q", "-N3", script)
	wantLines(t, r, 0, "cast.a", "cast.b", "cast.c", "same time", "refused", "forced")
	wants(t, "sbcast", r.Err, "File exists")
	write(t, filepath.Join(c.Work, "program"), "#!/bin/sh\necho $0 $1\n")
	wantLines(t, p.Try("srun", "-N2", "-n2", "--bcast="+c.Work+"/copy", "./program", "arg"), 0, c.Work+"/copy arg",
		c.Work+"/copy arg")
	r = p.Try("salloc", "-Q", "-N2", "sh", "-c", "srun --bcast ./program arg; ls "+c.Work)
	if r.Code != 0 || strings.Count(r.Out, c.Work+"/slurm_bcast_") != 2 || strings.Contains(r.Out, "\nslurm_bcast_") ||
		strings.Contains(r.Out, "\ncopy\n") {
		t.Errorf("srun --bcast: exit status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	refused(t, p.Try("srun", "--bcast=program", "./program"), 1, "srun: error: --bcast: "+c.Work+
		"/program is the program itself")
	refused(t, p.Try("srun", "--bcast", "./nosuchfile"), 1, "srun: error: --bcast: "+c.Work+
		"/nosuchfile could not be copied")
	refused(t, p.Try("sbcast", "file.txt", "there"), 1, "sbcast: error: Need a job id to run this command.")
	refused(t, p.With("SLURM_JOB_ID=1").Try("sbcast", "nosuchfile", "there"), 255,
		"sbcast: error: Can't open `nosuchfile`: No such file or directory")
}

// relayed: streams that go by the server carry the same as direct ones.
func relayed(t *testing.T, c *cluster.Cluster) {
	text := strings.Repeat("line of input\n", 50_000)
	for _, way := range []string{"on", "off"} {
		p := c.As(alice).With("BIREME_DIRECT=" + way)
		r := p.TryIn(text, "srun", "-n2", "-N2", "-i", "1", "sh", "-c",
			"cat; echo $SLURM_PROCID $SLURM_SRUN_COMM_PORT >&2; exit 4")
		if r.Code != 4 || r.Out != text {
			t.Errorf("BIREME_DIRECT=%s: %d bytes of %d came back, exit status %d: %s", way, len(r.Out), len(text), r.Code, r.Err)
		}
		if told := strings.Contains("\n"+r.Err, "\n0\n"); told != (way == "off") {
			t.Errorf("BIREME_DIRECT=%s: what tasks are told of srun's port: %s", way, r.Err)
		}
	}
}

// TestRealBinding: on the machine itself tasks really have the CPUs they were given.
func TestRealBinding(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	p := c.As(alice)
	mine := []string{"sh", "-c", "echo $SLURM_LOCALID $(grep Cpus_allowed_list /proc/self/status | cut -f2)"}
	got := lines(p.Run("srun", append([]string{"-n2", "-N1", "--cpu-bind=threads"}, mine...)...))
	if len(got) != 2 || strings.ContainsAny(got[0]+got[1], ",-") || got[0][2:] == got[1][2:] {
		t.Errorf("two tasks with a CPU each have %q", got)
	}
	one := lines(p.Run("salloc", append([]string{"-Q", "-n2", "-N1", "srun", "-n1", "--exact"}, mine...)...))
	if len(one) != 1 || strings.ContainsAny(one[0], ",-") {
		t.Errorf("an exact step of one task has %q", one)
	}
	c.WaitClean()
}
