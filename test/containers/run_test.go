//go:build e2e

package containers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// TestContainers is what users see of jobs in containers, on one node.
func TestContainers(t *testing.T) {
	c := start(t, cluster.Options{
		Memory: "8G", Set: []string{"step.constrain_mem=true", "step.max_pids=40"},
		Args: []string{"--cpus", "16"},
	})
	for _, tc := range []struct {
		name string
		test func(*testing.T, *cluster.Cluster)
	}{
		{"run", runs},
		{"own program", ownProgram},
		{"user", users},
		{"no shell", noShell},
		{"memory", memory},
		{"pids", pids},
		{"stop", stops},
		{"limit", limit},
		{"registry", registry},
		{"killed", killed},
		{"mounts", mounts},
		{"denied", denied},
		{"files", files},
		{"sbatch", batch},
		{"suspend", suspended},
		{"agent", agentDies},
		{"keeper", keeperDies},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, c.For(t)) })
	}
	left(t, c)
	c.WaitClean()
}

// runs: output, variables, exit status, and nothing secret where others look.
func runs(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := apply(t, p, c.Work, "hello", `image: box:1
env: [SECRET=s3cr3t-8472]
working_dir: /work/here
resources: {shm_size: 32MB}
commands:
  - echo "$KIND $SECRET $DSTACK_RUN_NAME $PWD"
  - stat -f -c '%b*%S' /dev/shm
  - test -z "$BIREME_SERVER"
  - exit 7
`)
	if r.Code != 7 || r.Out != "image s3cr3t-8472 hello /work/here\n8192*4096\n" {
		t.Errorf("a run: %v", r)
	}
	id := jobOf(t, c, "hello")
	wants(t, "sacct", p.Run("sacct", "-X", "-n", "-P", "-j", id, "-o", "JobName,State,ExitCode"), "hello|FAILED|7:0")
	// While one runs, neither the engine nor a command line nor a file of the node knows its secret.
	apply(t, p, c.Work, "quiet", "image: box:1\nenv: [SECRET=s3cr3t-9911]\ncommands: [echo up, sleep 100]\n", "-d")
	c.Eventually("it runs", func() (bool, string) {
		out := p.Try("bireme", "logs", "quiet")
		return out.Out == "up\n", out.String()
	})
	name, err := docker.Find(jobOf(t, c, "quiet") + ".1.batch")
	if err != nil {
		t.Fatal(err)
	}
	one, err := docker.Call("GET", "/containers/"+name+"/json")
	if err != nil || strings.Contains(one, "s3cr3t") {
		t.Errorf("the engine knows a secret: %v %s", err, one)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		if b, _ := os.ReadFile(name); strings.Contains(string(b), "s3cr3t-9911") { // processes come and go
			t.Errorf("%s: %q", name, b)
		}
	}
	for _, n := range c.Nodes() {
		out := searchFiles(t, filepath.Join(c.Dir, "nodes", n), "s3cr3t-9911")
		if len(out) > 0 {
			t.Errorf("files of the node hold a secret: %v", out)
		}
	}
	p.Run("bireme", "stop", "-y", "quiet")
	c.WaitEnd(jobOf(t, c, "quiet"))
}

// searchFiles lists the files below dir that hold a text.
func searchFiles(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what goes meanwhile holds nothing
		}
		if b, _ := os.ReadFile(path); strings.Contains(string(b), text) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func ownProgram(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	if r := apply(t, p, c.Work, "own", "image: box:1\n"); r.Code != 0 || r.Out != "the image speaks\n" {
		t.Errorf("an image's own program: %v", r)
	}
	if r := apply(t, p, c.Work, "entry", "image: box:1\nentrypoint: echo 'a b'\ncommands: [c d]\n"); r.Code != 0 ||
		r.Out != "a b c d\n" {
		t.Errorf("an entrypoint: %v", r)
	}
}

func users(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	if r := apply(t, p, c.Work, "app", "image: box:1\nuser: app\ncommands: ['id -u', 'id -G', 'echo "+
		"$HOME']\n"); r.Out != "1234\n1234 77\n/home/app\n" {
		t.Errorf("a user of the image: %v", r)
	}
	r := apply(t, p, c.Work, "nobody", "image: box:1\nuser: no-one\ncommands: [id]\n")
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "nobody")), `user "no-one": the image knows no such user`)
	if r.Code == 0 {
		t.Errorf("an unknown user: %v", r)
	}
}

func noShell(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	if r := apply(t, p, c.Work, "tool", "image: tool:1\n"); r.Code != 0 || r.Out != "alone\n" {
		t.Errorf("an image without a shell: %v", r)
	}
	r := apply(t, p, c.Work, "shellless", "image: tool:1\ncommands: [echo hi]\n")
	if r.Code != 127 {
		t.Errorf("commands in an image without a shell: %v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "shellless")), "the image has no /bin/sh")
}

// memory: who takes too much dies alone.
func memory(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	gate := filepath.Join(c.Work, "alive")
	apply(t, c.Root(), c.Work, "other",
		fmt.Sprintf("image: box:1\nresources: {memory: 64MB..}\nvolumes: [\"%s:/w\"]\n"+
			"commands: [\"while ! test -e /w/alive; do sleep 0.05; done\", echo well]\n", c.Work), "-d")
	r := apply(t, p, c.Work, "greedy",
		"image: box:1\nresources: {memory: 64MB..}\ncommands: [dd if=/dev/zero of=/dev/null bs=200M count=1, echo never]\n")
	if r.Code == 0 || strings.Contains(r.Out, "never") {
		t.Errorf("a greedy run: %v", r)
	}
	if j := c.WaitEnd(jobOf(t, c, "greedy")); j.State != core.OutOfMemory {
		t.Errorf("a greedy run is %s: %s", j.State, j.Message)
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(jobOf(t, c, "other")); j.State != core.Completed {
		t.Errorf("its neighbour is %s: %s", j.State, j.Message)
	}
}

func pids(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := apply(t, p, c.Work, "bomb", `image: box:1
commands:
  - (for i in $(seq 200); do sleep 100 & done) 2>/dev/null; true
  - ls -d /proc/[0-9]* | wc -l
`)
	// Whoever cannot fork any more cannot count either; without a limit there would be 200.
	var n int
	if _, err := fmt.Sscan(r.Out, &n); err == nil && (n < 20 || n > 40) || err != nil &&
		!strings.Contains(r.Out, "can't fork") {
		t.Errorf("a fork bomb had %d processes: %v", n, r)
	}
}

// stops: who is asked to end may say goodbye, who does not listen is ended.
func stops(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "polite", "image: box:1\nstop_duration: 20s\ncommands: [\"trap 'echo bye; exit 0' INT; echo "+
		"up; while :; do sleep 0.05; done\"]\n", "-d")
	apply(t, p, c.Work, "deaf",
		"image: box:1\nstop_duration: 1s\ncommands: [\"trap '' INT HUP; echo up; while :; do sleep 0.05; done\"]\n", "-d")
	for _, run := range []string{"polite", "deaf"} {
		c.Eventually(run+" runs", func() (bool, string) {
			out := p.Try("bireme", "logs", run)
			return out.Out == "up\n", out.String()
		})
		p.Run("bireme", "stop", "-y", run)
		c.WaitEnd(jobOf(t, c, run))
	}
	wants(t, "the log", p.Run("bireme", "logs", "polite"), "bye\n")
}

func limit(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "slow", "image: box:1\nmax_duration: 1s\ncommands: [sleep 100]\n", "-d")
	if j := c.WaitEnd(jobOf(t, c, "slow")); j.State != core.Timeout {
		t.Errorf("a run beyond its limit is %s: %s", j.State, j.Message)
	}
}

// registry: images that are fetched, are not there, or are not given.
func registry(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	fake := engine.NewFakeRegistry("me", "right")
	defer fake.Close()
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := fake.Add("team/box:2", files)
	if err != nil {
		t.Fatal(err)
	}
	const auth = "registry_auth: {username: me, password: \"${{ env.PW }}\"}\n"
	for name, tc := range map[string]struct {
		yaml string
		want string // in why
	}{
		"wrong": {
			"image: " + ref + "\nenv: [PW=wrong]\n" + auth + "commands: ['true']\n",
			"the registry refused user me",
		},
		"anonymous": {"image: " + ref + "\ncommands: ['true']\n", "does not give it without registry_auth"},
		"missing": {
			"image: " + fake.Host + "/team/none:1\nenv: [PW=right]\n" + auth + "commands: ['true']\n",
			"there is no such image",
		},
	} {
		r := apply(t, p, c.Work, name, tc.yaml)
		if r.Code == 0 {
			t.Errorf("%s: %v", name, r)
		}
		id := jobOf(t, c, name)
		why := p.Run("bireme", "why", id)
		wants(t, "why of "+name, why, tc.want)
		wants(t, "ps", p.Run("bireme", "ps", "-a"), name)
		if strings.Contains(why, "wrong") && name == "wrong" && strings.Contains(why, "PW") {
			t.Errorf("a password is told: %s", why)
		}
	}
	r := apply(t, p, c.Work, "pulled", "image: "+ref+"\nenv: [PW=right]\n"+auth+
		"commands: ['echo $BIREME_REGISTRY_AUTH-']\n")
	if r.Code != 0 || r.Out != "-\n" {
		t.Errorf("a pulled image: %v", r)
	}
}

// killed: somebody kills the container with the engine's own tools.
func killed(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "victim", "image: box:1\ncommands: [echo up, sleep 100]\n", "-d")
	c.Eventually("it runs", func() (bool, string) {
		out := p.Try("bireme", "logs", "victim")
		return out.Out == "up\n", out.String()
	})
	id := jobOf(t, c, "victim")
	name, err := docker.Find(id + ".1.batch")
	if err != nil || name == "" {
		t.Fatalf("job %s has no container: %v", id, err)
	}
	if _, err := docker.Call("POST", "/containers/"+name+"/kill"); err != nil {
		t.Fatal(err)
	}
	j := c.WaitEnd(id)
	if j.State != core.Failed || !strings.Contains(j.Message, "the container") {
		t.Errorf("a killed container's job is %s: %q", j.State, j.Message)
	}
}

func mounts(t *testing.T, c *cluster.Cluster) {
	dir := filepath.Join(c.Work, "made")
	r := apply(t, c.Root(), c.Work, "mounts",
		fmt.Sprintf("image: box:1\nvolumes: [\"%s:/data\", {instance_path: /no/such, path: /none, optional: true}]\n"+
			"commands: [echo in > /data/out, test ! -e /none]\n", dir))
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if r.Code != 0 || err != nil || string(b) != "in\n" {
		t.Errorf("a volume of the node: %v %v %q", r, err, b)
	}
}

// denied: what would make everybody root on the node is the administrator's.
func denied(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	for name, yaml := range map[string]string{"root": "volumes: [\"/:/host\"]\n", "priv": "privileged: true\n"} {
		r := apply(t, p, c.Work, name, "image: box:1\n"+yaml+"commands: [id]\n")
		if r.Code == 0 || !strings.Contains(r.Err, "administrator") {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// batch: a Slurm script runs in an image as its user, sees what that user may see, and can become nobody else.
func batch(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	mine, secret := filepath.Join(c.Work, "mine"), filepath.Join(c.Work, "closed")
	for _, dir := range []string{mine, filepath.Join(secret, "open")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(c.Work, "job.sh")
	if err := os.WriteFile(script,
		[]byte("#!/bin/sh\n#SBATCH --container-image=box:1\nid -u; id -G; echo $KIND $SLURM_JOB_ID $1; pwd; grep "+
			"NoNewPrivs /proc/self/status; echo kept > /m/out; exit 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(mine, "job.out")
	id := p.Sbatch("-o", out, "--container-mounts="+mine+":/m", "--container-workdir=/tmp", script, "argument")
	j := c.WaitEnd(id)
	if j.State != core.Failed || j.Exit.Code != 3 {
		t.Errorf("it is %s %v: %s", j.State, j.Exit, j.Message)
	}
	ids := strings.Fields(strings.TrimSpace(runTool(t, "id", "-u", alice)) + " " +
		strings.TrimSpace(runTool(t, "id", "-G", alice)))
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(got))
	if len(f) < len(ids) || strings.Join(f[:len(ids)], " ") != strings.Join(ids, " ") {
		t.Errorf("it ran as %v, want %v", f, ids)
	}
	wants(t, "output", string(got), "image "+id+" argument\n/tmp\nNoNewPrivs:\t1\n")
	if st, err := os.Stat(filepath.Join(mine, "out")); err != nil || fmt.Sprint(st.Sys().(*syscall.Stat_t).Uid) != ids[0] {
		t.Errorf("what it wrote belongs to %v: %v", st, err)
	}
	// What the user cannot reach is not reached by way of a mount.
	id = p.Sbatch("-o", "/dev/null", "--container-image=box:1", "--container-mounts="+secret+"/open:/m", "--wrap", "true")
	if j := c.WaitEnd(id); j.State != core.Failed || !strings.Contains(j.Message, "permission denied") {
		t.Errorf("a closed folder: %s: %s", j.State, j.Message)
	}
}

func runTool(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// suspended: what is suspended stands still, whoever made it.
func suspended(t *testing.T, c *cluster.Cluster) {
	p := c.Root()
	apply(t, p, c.Work, "ticking", "image: box:1\ncommands: [\"while :; do echo tick; sleep 0.05; done\"]\n", "-d")
	id := jobOf(t, c, "ticking")
	ticks := func() int { return strings.Count(p.Try("bireme", "logs", "ticking").Out, "tick") }
	c.Eventually("it ticks", func() (bool, string) { n := ticks(); return n > 0, fmt.Sprint(n) })
	name, err := docker.Find(id + ".1.batch") // Podman does not list it among those that run once it is held
	if err != nil || name == "" {
		t.Fatalf("there is no container of job %s: %v", id, err)
	}
	p.Run("scontrol", "suspend", id)
	c.Eventually("the engine holds it", func() (bool, string) {
		s, err := docker.Call("GET", "/containers/"+name+"/json")
		return err == nil && strings.Contains(s, `"Paused":true`), s
	})
	before := ticks()
	p.Run("scontrol", "resume", id)
	c.Eventually("it ticks again", func() (bool, string) { n := ticks(); return n > before+1, fmt.Sprint(n, before) })
	p.Run("bireme", "stop", "-y", "-x", "ticking")
	c.WaitEnd(id)
}

// agentDies: containers run on without an agent, and the next one has all of their output.
func agentDies(t *testing.T, c *cluster.Cluster) {
	node := c.Nodes()[0]
	gate := filepath.Join(c.Work, "gate-agent")
	apply(t, c.Root(), c.Work, "lasting",
		fmt.Sprintf("image: box:1\nvolumes: [\"%s:/w\"]\ncommands: [\"for i in $(seq 500); do echo line $i; done; "+
			"while ! test -e /w/gate-agent; do sleep 0.05; done; echo end; exit 3\"]\n", c.Work), "-d")
	c.Eventually("it runs", func() (bool, string) {
		out := c.Root().Try("bireme", "logs", "lasting")
		return strings.Contains(out.Out, "line 500\n"), out.String()
	})
	c.Kill("the agent", func() int { return c.Agent(node) })
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	j := c.WaitEnd(jobOf(t, c, "lasting"))
	if j.State != core.Failed || j.Exit.Code != 3 {
		t.Errorf("it ended as %s %v %s", j.State, j.Exit, j.Message)
	}
	var want strings.Builder
	for i := range 500 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	want.WriteString("end\n")
	c.Eventually("all of its output is there", func() (bool, string) {
		got := c.Root().Run("bireme", "logs", "lasting")
		return got == want.String(), fmt.Sprint(len(got), " bytes, want ", want.Len())
	})
}

// keeperDies: what nobody watches any more ends, and nothing of it stays.
func keeperDies(t *testing.T, c *cluster.Cluster) {
	node := c.Nodes()[0]
	apply(t, c.As(alice), c.Work, "orphan", "image: box:1\ncommands: [echo up, sleep 1000]\n", "-d")
	c.Eventually("it runs", func() (bool, string) {
		out := c.As(alice).Try("bireme", "logs", "orphan")
		return out.Out == "up\n", out.String()
	})
	c.Kill("the keeper", func() int { return c.Keeper(node) })
	if j := c.WaitEnd(jobOf(t, c, "orphan")); j.State == core.Completed {
		t.Errorf("its job is %s", j.State)
	}
	left(t, c)
}

// TestNoEngine: a node without an engine says so where the user looks.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Args: []string{"--engine", "/no/such.sock"}})
	p := c.As(alice)
	if r := apply(t, p, c.Work, "none", "image: box:1\ncommands: ['true']\n"); r.Code == 0 {
		t.Errorf("a run without an engine: %v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "none")), "no container engine listens on /no/such.sock")
}

// TestHundred: a hundred containers at once on one node, all at work at the same moment.
func TestHundred(t *testing.T) {
	const n = 100
	c := start(t, cluster.Options{Args: []string{"--cpus", fmt.Sprint(n)}, Memory: "16G"})
	p := c.Root()
	for i := range n {
		r := apply(t, p, c.Work, fmt.Sprintf("h-%d", i),
			fmt.Sprintf("image: box:1\nresources: {cpu: 1, memory: 32MB..}\nvolumes: [\"%s:/w\"]\n"+
				"commands: [touch /w/here-%d, \"while ! test -e /w/all; do sleep 0.2; done\"]\n", c.Work, i), "-d")
		if r.Code != 0 {
			t.Fatalf("%v", r)
		}
	}
	c.Within(3*time.Minute, "all are there", func() (bool, string) {
		here, err := filepath.Glob(filepath.Join(c.Work, "here-*"))
		return err == nil && len(here) == n, fmt.Sprint(len(here))
	})
	if err := os.WriteFile(filepath.Join(c.Work, "all"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if j := c.WaitEnd(jobOf(t, c, fmt.Sprintf("h-%d", i))); j.State != core.Completed {
			t.Errorf("h-%d is %s: %s", i, j.State, j.Message)
		}
	}
	left(t, c)
}
