//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// Programs of a site whose machines are agents: to put one to sleep is to end it.
const (
	suspendAgents = `#!/bin/sh
for n in $(PATH=%[1]s:$PATH scontrol show hostnames "$1"); do
	kill "$(cat %[2]s/nodes/$n/agent.pid)" || exit
done
`
	resumeAgents = `#!/bin/sh
[ -e %[2]s/refuse ] && { cat %[2]s/refuse; exit 1; }
for n in $(PATH=%[1]s:$PATH scontrol show hostnames "$1"); do
	mkdir -p %[2]s/nodes/$n
	setsid %[3]s agent --dir %[2]s/nodes/$n --node $n --server %[4]s --ca %[5]s \
		--cgroup none --cpus 1 --memory 256M >>%[2]s/nodes/$n/agent.log 2>&1 &
	echo $! >%[2]s/nodes/$n/agent.pid
done
`
)

// TestPowerPrograms: a node that nobody needs is put to sleep by the site's program and woken by the other when a job
// needs it; one that cannot be woken is down, and is back when it comes.
func TestPowerPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	fails := write(t, at("failed"), "#!/bin/sh\necho \"$1\" >"+at("told")+"\n")
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 1, Memory: "256M", Set: []string{
		"power.suspend_program=" + at("suspend"), "power.resume_program=" + at("resume"), "power.resume_fail_program=" +
			fails,
		"power.suspend_time=1s", "power.suspend_timeout=1s", "power.resume_timeout=1m", "power.exclude_nodes=n1",
	}})
	root := c.Root()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.Agent("n1")))
	if err != nil {
		t.Fatal(err)
	}
	argv := strings.Split(string(b), "\x00")
	server := argv[slices.Index(argv, "--server")+1]
	made, err := c.Client(0).NewToken(t.Context(), &client.NewToken{Kind: "join", Node: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	ca := write(t, at("ca.pem"), made.CA)
	write(t, at("suspend"), fmt.Sprintf(suspendAgents, c.Links, c.Dir))
	resume := write(t, at("resume"), fmt.Sprintf(resumeAgents, c.Links, c.Dir, c.Program("biremed"), server, ca))
	root.With("BIREME_JOIN_TOKEN="+made.Secret).Run(resume, "c1")

	asleep := func(n *client.Node) bool { return n.State == "IDLE+POWERED_DOWN" && !n.Connected }
	c.WaitNode("c1", "asleep", asleep)
	if pid := c.Agent("c1"); pid != 0 {
		t.Errorf("it sleeps, and its agent %d runs", pid)
	}
	wants(t, "sinfo", root.Run("sinfo", "-h", "-N", "-n", "c1"), "idle~")
	if j := c.WaitEnd(root.Sbatch("-o", "/dev/null", "-w", "c1", "--wrap", "true")); j.State != core.Completed {
		t.Errorf("a job that had it woken: %v %s", j.State, j.Message)
	}
	c.WaitNode("c1", "asleep again", asleep)
	root.Run("scontrol", "power", "up", "c1")
	c.WaitNode("c1", "up", func(n *client.Node) bool { return n.Connected })
	wants(t, "events", root.Run("bireme", "events", "--node", "c1"), "state=powering-down", "state=powered-down",
		"state=powering-up", "by bireme", "by root")

	c.WaitNode("c1", "asleep once more", asleep)
	refuse := write(t, filepath.Join(c.Dir, "refuse"), "no power in row 3\n")
	waits := root.Sbatch("-o", "/dev/null", "-w", "c1", "--wrap", "true")
	c.WaitNode("c1", "down", func(n *client.Node) bool {
		return strings.HasPrefix(n.State, "DOWN") && n.Reason == "ResumeProgram failed: no power in row 3" &&
			n.ReasonBy == "bireme"
	})
	c.WaitFile(at("told"), "c1\n")
	if err := os.Remove(refuse); err != nil {
		t.Fatal(err)
	}
	root.Run(resume, "c1") // by hand
	if j := c.WaitEnd(waits); j.State != core.Completed {
		t.Errorf("the job that waited for it: %v %s", j.State, j.Message)
	}
	// The machine goes for good: with an agent of its own it is nobody's to stop.
	c.WaitNode("c1", "asleep for the last time", asleep)
	keeper := c.Keeper("c1")
	c.Signal(keeper, syscall.SIGKILL)
	c.WaitGone("keeper", keeper)
	if err := os.RemoveAll(filepath.Join(c.Dir, "nodes", "c1")); err != nil {
		t.Error(err)
	}
}

// TestResumeAfter: a node that was drained for a time comes back by itself.
func TestResumeAfter(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 1, Memory: "256M"})
	root := c.Root()
	refused(t, root.Try("scontrol", "update", "nodename=n1", "resumeafter=60"), 1,
		"Invalid node state specified")
	refused(t, root.Try("scontrol", "update", "nodename=n1", "state=drain", "reason=x", "resumeafter=soon"), 1,
		"Invalid ResumeAfter")
	root.Run("scontrol", "update", "nodename=n1", "state=drain", "reason=fan", "resumeafter=3600")
	wants(t, "scontrol show node", root.Run("scontrol", "show", "node", "n1"), "State=IDLE+DRAIN", "ResumeAfterTime=2",
		"Reason=fan [root@")
	root.Run("scontrol", "update", "nodename=n1", "state=down", "reason=fan", "resumeafter=1")
	c.WaitNode("n1", "back", func(n *client.Node) bool { return n.State == "IDLE" && n.Reason == "" && n.ResumeAt == 0 })
	wants(t, "events", root.Run("bireme", "events", "--node", "n1"), "by bireme")
}
