//go:build e2e

package containers

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// gangNodes is how many nodes the jobs of several containers have here.
const gangNodes = 4

// TestGang is what users see of a job with a container on each of its nodes.
func TestGang(t *testing.T) {
	c := start(t, cluster.Options{Nodes: gangNodes, CPUs: 4, Memory: "2G"})
	for _, tc := range []struct {
		name string
		test func(*testing.T, *cluster.Cluster)
	}{
		{"ranks", ranks},
		{"ssh", gangSSH},
		{"openssh", gangOpenSSH},
		{"fails", rankFails},
		{"killed", rankKilled},
		{"stop", gangStops},
		{"sbatch", gangBatch},
		{"host", gangHost},
		{"port", gangPort},
		{"no image", gangNoImage},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, c.For(t)) })
	}
	left(t, c)
	c.WaitClean()
}

// ranks: the commands run in each container, each knows its place and has the files that came along, and all that they
// write is one output.
func ranks(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := apply(t, p, c.Work, "ranks", fmt.Sprintf(`image: box:1
nodes: %d
env: [SECRET=s3cr3t-6621]
files: [ranks.dstack.yml]
commands:
  - grep -q '^name. ranks' ranks.dstack.yml
  - place="on $SLURMD_NODENAME $SLURM_NODEID master $DSTACK_MASTER_NODE_IP"
  - echo "rank $DSTACK_NODE_RANK of $DSTACK_NODES_NUM $place $SECRET"
  - test "$(echo "$DSTACK_NODES_IPS" | wc -l)" = $DSTACK_NODES_NUM
  - test "$(cat $DSTACK_MPI_HOSTFILE)" = "$DSTACK_NODES_IPS"
`, gangNodes))
	if r.Code != 0 {
		t.Fatalf("%v", r)
	}
	for i := range gangNodes {
		line := fmt.Sprintf("rank %d of %d on n%d %d master 127.0.1.1 s3cr3t-6621\n", i, gangNodes, i+1, i)
		wants(t, "output", r.Out, line)
		if got := p.Run("bireme", "logs", "--job", strconv.Itoa(i), "ranks"); got != line {
			t.Errorf("the log of rank %d is %q", i, got)
		}
		if got := p.Run("bireme", "logs", "--job", strconv.Itoa(i), "--tail", "1", "ranks"); got != line {
			t.Errorf("the last line of rank %d is %q", i, got)
		}
	}
	if strings.Contains(r.Out+p.Run("bireme", "logs", "ranks"), "\x1b") {
		t.Errorf("marks of ranks are shown: %q", r.Out)
	}
	refused := p.Try("bireme", "logs", "--job", strconv.Itoa(gangNodes), "ranks")
	wants(t, "one that is not there", refused.Err, "--job 4: run ranks has the jobs 0 to 3")
	rankVolumes(t, c)
}

// rankVolumes: a path that names the rank is another on each node.
func rankVolumes(t *testing.T, c *cluster.Cluster) {
	for i := range 2 {
		open(t, c.Work, fmt.Sprintf("of-%d", i))
	}
	r := apply(t, c.Root(), c.Work, "volumes", fmt.Sprintf(`image: box:1
nodes: 2
volumes:
  - "%s/of-${{ dstack.node_rank }}:/own"
  - {instance_path: "%[1]s/of-${{dstack.job_num}}", path: /too}
commands: [echo $DSTACK_NODE_RANK >>/own, echo $DSTACK_NODE_RANK >>/too]
`, c.Work))
	for i := range 2 {
		got, err := os.ReadFile(filepath.Join(c.Work, fmt.Sprintf("of-%d", i)))
		if want := fmt.Sprintf("%d\n%[1]d\n", i); err != nil || string(got) != want {
			t.Errorf("the volume of rank %d holds %q, %v: %v", i, got, err, r)
		}
	}
}

// gangSSH: from the first container to the others by name and by address, without a key, a question or an ssh in the
// image.
func gangSSH(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := apply(t, p, c.Work, "ssh", fmt.Sprintf(`image: box:1
nodes: %d
commands:
  - test $DSTACK_NODE_RANK = 0 || exit 0
  - for ip in $DSTACK_NODES_IPS; do ssh -x $ip 'echo here is $SLURMD_NODENAME; exit 0' || exit; done
  - test $DSTACK_NODE_RANK != 0 || for n in n1 n2; do echo "from $n" | ssh someone@$n cat || exit; done
  - test $DSTACK_NODE_RANK != 0 || { ssh n2 exit 5; echo status $?; ssh n9 true; echo status $?; }
`, gangNodes))
	if r.Code != 0 {
		t.Fatalf("%v", r)
	}
	for i := range gangNodes {
		wants(t, "output", r.Out, fmt.Sprintf("here is n%d\n", i+1))
	}
	wants(t, "output", r.Out, "from n1\n", "from n2\n", "status 5\n", "ssh: n9 is no node of this job\n", "status 255\n")
}

// gangOpenSSH: the machine's own ssh and mpirun, shown to the containers, find their way.
func gangOpenSSH(t *testing.T, c *cluster.Cluster) {
	p := c.Root()
	r := apply(t, p, c.Work, "openssh", `image: box:1
nodes: 3
volumes: ["/usr:/usr", "/lib:/lib", "/lib64:/lib64", "/etc/alternatives:/etc/alternatives"]
commands:
  - test $DSTACK_NODE_RANK = 0 || exit 0
  - for ip in $DSTACK_NODES_IPS; do /usr/bin/ssh $ip 'echo here is $SLURMD_NODENAME' || exit; done
  - stat -c %a /.bireme/job/key
`)
	if r.Code != 0 {
		t.Fatalf("%v", r)
	}
	wants(t, "output", r.Out, "here is n1\n", "here is n2\n", "here is n3\n", "600\n")
}

// rankFails: one that fails ends the whole, and is named.
func rankFails(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := apply(t, p, c.Work, "one-fails",
		"image: box:1\nnodes: 3\ncommands: [\"test $DSTACK_NODE_RANK != 2 || exit 9\", sleep 1000]\n")
	if r.Code != 9 {
		t.Errorf("%v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "one-fails")), "rank 2 on n3 ended with status 9")
	var run struct {
		Jobs []struct {
			Submissions []struct {
				Status, Message string
				Exit            *int   `json:"exit_status"`
				Reason          string `json:"termination_reason"`
			} `json:"job_submissions"`
		}
	}
	if err := json.Unmarshal([]byte(p.Run("bireme", "run", "get", "one-fails", "--json")), &run); err != nil ||
		len(run.Jobs) != 3 {
		t.Fatalf("%v: %+v", err, run)
	}
	for rank, want := range []string{
		"terminated terminated_by_server", "terminated terminated_by_server",
		"failed container_exited_with_error 9",
	} {
		s := run.Jobs[rank].Submissions[0]
		got := s.Status + " " + s.Reason
		if s.Exit != nil {
			got += fmt.Sprintf(" %d", *s.Exit)
		}
		if got != want {
			t.Errorf("rank %d: %s, want %s", rank, got, want)
		}
	}
	left(t, c)
}

// rankKilled: a container that is killed ends the job, wherever it is.
func rankKilled(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "one-dies", "image: box:1\nnodes: 3\ncommands: [echo up, sleep 1000]\n", "-d")
	c.Eventually("all run", func() (bool, string) {
		out := p.Try("bireme", "logs", "one-dies")
		return out.Out == "up\nup\nup\n", out.String()
	})
	id := jobOf(t, c, "one-dies")
	name, err := docker.Find(id + ".1.extern")
	if err != nil || name == "" {
		t.Fatalf("no container beside the first: %v", err)
	}
	// Their key is in no file of the machine, and the engine does not know it.
	const key = "OPENSSH PRIVATE KEY-----"
	one, err := docker.Call("GET", "/containers/"+name+"/json")
	if err != nil || strings.Contains(one, key) || strings.Contains(one, "seed") {
		t.Errorf("the engine knows the job's key: %v %s", err, one)
	}
	for _, dir := range []string{filepath.Dir(docker.Socket), filepath.Join(c.Dir, "nodes")} {
		if found := searchFiles(t, dir, key); len(found) > 0 {
			t.Errorf("files of the machine hold a key: %v", found)
		}
	}
	if r := p.Try("srun", "--jobid="+id, "--overlap", "-N1", "grep", "-c", key, "/.bireme/job/key"); r.Out != "2\n" {
		t.Errorf("inside: %v", r)
	}
	if _, err := docker.Call("POST", "/containers/"+name+"/kill"); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(id); j.State != core.Failed || !strings.Contains(j.Message, "container") {
		t.Errorf("it is %s: %q", j.State, j.Message)
	}
	left(t, c)
}

// gangStops: all are asked to end, and may say goodbye.
func gangStops(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "polite", "image: box:1\nnodes: 3\nstop_duration: 20s\ncommands: [\"trap 'echo bye; exit 0' "+
		"INT; echo up; while :; do sleep 0.05; done\"]\n", "-d")
	c.Eventually("all run", func() (bool, string) {
		out := p.Try("bireme", "logs", "polite")
		return out.Out == "up\nup\nup\n", out.String()
	})
	p.Run("bireme", "stop", "-y", "polite")
	c.WaitEnd(jobOf(t, c, "polite"))
	c.Eventually("all said goodbye", func() (bool, string) {
		out := p.Run("bireme", "logs", "polite")
		return strings.Count(out, "bye\n") == 3, out
	})
}

// gangBatch: a Slurm script runs in the first container and reaches the others as its user; steps run in all of them.
func gangBatch(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	script := filepath.Join(c.Work, "gang.sh")
	text := "#!/bin/sh\nfor n in n1 n2 n3; do ssh $n 'echo $SLURMD_NODENAME $(id -u) $SLURM_NODEID' || exit; done\n" +
		"echo ready\nwhile ! test -e /w/go-on; do sleep 0.05; done\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(c.Work, "gang.out")
	id := p.Sbatch("-N3", "-o", out, "--container-image=box:1", "--container-mounts="+c.Work+":/w", script)
	c.Eventually("the script has seen all", func() (bool, string) {
		b, err := os.ReadFile(out)
		return err == nil && strings.Contains(string(b), "ready\n"), string(b)
	})
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	uid := strings.TrimSpace(runTool(t, "id", "-u", alice))
	wants(t, "output", string(b), "n1 "+uid+" 0\n", "n2 "+uid+" 1\n", "n3 "+uid+" 2\n")
	got := p.Run("srun", "--jobid="+id, "--overlap", "-N3", "sh", "-c",
		"echo $SLURMD_NODENAME $KIND; test -d /.bireme/job")
	wants(t, "steps in it", got, "n1 image\n", "n2 image\n", "n3 image\n")
	open(t, c.Work, "go-on")
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("it is %s: %s", j.State, j.Message)
	}
}

// gangHost: who has whole nodes has their networks. There, as a user that the image does not know, mpirun starts its
// daemons through our ssh.
func gangHost(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	script := filepath.Join(c.Work, "host.sh")
	text := "#!/bin/sh\ncat /proc/net/dev | grep -c be\nmpirun --hostfile $DSTACK_MPI_HOSTFILE --map-by ppr:1:node " +
		"sh -c 'echo mpi on $SLURMD_NODENAME'\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(c.Work, "host.out")
	id := p.Sbatch("-N2", "--exclusive", "-o", out, "--container-image=box:1",
		"--container-mounts=/usr,/lib,/lib64,/etc/alternatives,/etc/openmpi", script)
	j := c.WaitEnd(id)
	b, err := os.ReadFile(out)
	if err != nil || j.State != core.Completed {
		t.Fatalf("it is %s: %s: %v: %s", j.State, j.Message, err, b)
	}
	wants(t, "output", string(b), "mpi on n1\n", "mpi on n2\n")
	if strings.HasPrefix(string(b), "0\n") {
		t.Errorf("the node's network is not inside: %s", b)
	}
}

// gangNoImage: what fails on any node is told with its node.
func gangNoImage(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	if r := apply(t, p, c.Work, "nowhere", "image: 127.0.0.1:1/none:1\nnodes: 2\ncommands: ['true']\n"); r.Code == 0 {
		t.Errorf("%v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "nowhere")), "127.0.0.1:1/none:1")
}

// gangPort: somebody sits on the port that a job's containers would have; they get another.
func gangPort(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	out := filepath.Join(c.Work, "port.out")
	id := p.Sbatch("-H", "--requeue", "-N2", "-o", out, "--container-image=box:1", "--wrap", "echo did")
	n, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", 24000+n*61%8000))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.Run("scontrol", "release", id)
	j := c.WaitEnd(id)
	if b, err := os.ReadFile(out); j.State != core.Completed || j.Attempt != 2 || err != nil || string(b) != "did\n" {
		t.Errorf("%s at its attempt %d: %s: %q %v", j.State, j.Attempt, j.Message, b, err)
	}
}
