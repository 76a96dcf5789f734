//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestHealthProgram: a health program that fails drains its node with what it says, and the node comes back when it
// does not fail any more; a drain of an administrator's stays.
func TestHealthProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sick := filepath.Join(dir, "sick")
	program := write(t, filepath.Join(dir, "check"), "#!/bin/sh\n[ $(id -u) = 0 ] || { echo not root; exit 1; }\n"+
		"[ -e "+sick+" ] && { cat "+sick+"; exit 1; }\nexit 0\n")
	c := cluster.Start(t, cluster.Options{Set: []string{
		"health.program=" + program, "health.interval=200ms",
		"timers.heartbeat=200ms", "timers.silent_after=1s", "health.every=100ms", "health.mounts=/proc",
	}})
	root := c.Root()
	node := c.Nodes()[0]

	write(t, sick, "scratch is read-only\nand more\n")
	c.WaitNode(node, "drained", func(n *client.Node) bool {
		return n.State == "IDLE+DRAIN" && n.Reason == "scratch is read-only" && n.ReasonBy == "bireme"
	})
	wants(t, "sinfo -R", root.Run("sinfo", "-R"), "scratch is read-only", "bireme", node)
	waits := root.Sbatch("-o", "/dev/null", "--wrap", "true")
	wants(t, "squeue", root.Run("squeue", "-h", "-j", waits), "PD")
	if err := os.Remove(sick); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(waits); j.State != core.Completed {
		t.Errorf("on a node that is well again: %v %s", j.State, j.Message)
	}
	c.WaitNode(node, "back", func(n *client.Node) bool { return n.Flags == 0 && n.Reason == "" })

	root.Run("scontrol", "update", "nodename="+node, "state=drain", "reason=fan")
	write(t, sick, "worse\n")
	c.WaitNode(node, "its fault noted", func(n *client.Node) bool { return len(n.Faults) == 1 && n.Reason == "fan" })
	if err := os.Remove(sick); err != nil {
		t.Fatal(err)
	}
	c.WaitNode(node, "well, and drained all the same", func(n *client.Node) bool {
		return len(n.Faults) == 0 && n.State == "IDLE+DRAIN" && n.Reason == "fan"
	})
	wants(t, "bireme events", root.Run("bireme", "events", "--node", node), "state=drain",
		`reason="scratch is read-only"`, "by bireme", "reason=fan", "by root")
	wants(t, "bireme nodes NODE", root.Run("bireme", "nodes", node), "fan [root at ", "WHEN", "joined, unknown",
		"scratch is read-only", "fan; found: worse")
	refused(t, root.Try("bireme", "nodes", "nosuch"), 3, "nosuch")
	root.Run("scontrol", "update", "nodename="+node, "state=undrain")
	c.WaitNode(node, "idle", func(n *client.Node) bool { return n.State == "IDLE" })
}

// pretendReboot stands in for a program that restarts the machine: the node's agent ends, and comes back under a new
// boot id.
const pretendReboot = `#!/bin/sh
rm "$(dirname "${BIREME_SERVER#unix:}")/bootid"
kill -9 $PPID
`

// TestReboot: a node restarts when its job has ended, by a program that only pretends to, and is back by its new boot
// id.
func TestReboot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := write(t, filepath.Join(dir, "pretend-reboot"), pretendReboot)
	c := cluster.Start(t, cluster.Options{
		Set: []string{"reboot.program=" + program, "timers.heartbeat=200ms", "timers.silent_after=1s"},
	})
	root := c.Root()
	node := c.Nodes()[0]
	boot := func() (id string) {
		c.WaitNode(node, "known", func(n *client.Node) bool { id = n.Host.BootID; return id != "" })
		return id
	}
	first := boot()
	end := filepath.Join(c.Work, "end")
	runs := root.Sbatch("-o", "/dev/null", "--wrap", "while [ ! -e "+end+" ]; do sleep 0.1; done")
	c.WaitState(runs, core.Running)

	refused(t, root.Try("scontrol", "cancel_reboot", node), 1, "Invalid node state specified")
	root.Run("scontrol", "reboot", "ASAP", "nextstate=RESUME", "reason=kernel", node)
	c.WaitNode(node, "asked", func(n *client.Node) bool { return strings.HasSuffix(n.State, "+DRAIN+REBOOT_REQUESTED") })
	wants(t, "sinfo", root.Run("sinfo", "-h", "-o", "%t %E"), "drng@ kernel")
	wants(t, "scontrol show node", root.Run("scontrol", "show", "node", node), "NextState=RESUME", "Reason=kernel [root@")
	if boot() != first {
		t.Fatal("it was restarted under a job")
	}
	root.Run("scontrol", "cancel_reboot", node)
	c.WaitNode(node, "as before", func(n *client.Node) bool { return n.Flags == 0 && n.Reason == "" })

	root.Run("scontrol", "reboot", node)
	wants(t, "sinfo", root.Run("sinfo", "-h", "-o", "%t"), "@")
	write(t, end, "")
	if j := c.WaitEnd(runs); j.State != core.Completed {
		t.Errorf("the job the node waited for: %v %s", j.State, j.Message)
	}
	c.WaitNode(node, "back with a new boot id", func(n *client.Node) bool {
		return n.Host.BootID != first && n.Flags == 0 && n.Connected
	})
	if j := c.WaitEnd(root.Sbatch("-o", "/dev/null", "--wrap", "true")); j.State != core.Completed {
		t.Errorf("after the restart: %v %s", j.State, j.Message)
	}
}

// TestRebootTooLate: a node that is told to restart and does not is down after a while, and can be told again.
func TestRebootTooLate(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	program := write(t, told+".program", "#!/bin/sh\necho $SLURMD_NODENAME >>"+told+"\n") // and that is all it does
	c := cluster.Start(t, cluster.Options{
		Nodes: 1, CPUs: 1, Memory: "256M",
		Set: []string{"reboot.program=" + program, "reboot.timeout=1s"},
	})
	root := c.Root()
	late := func(n *client.Node) bool {
		return n.State == "DOWN" && n.Reason == "reboot timed out" && n.ReasonBy == "bireme"
	}
	root.Run("scontrol", "reboot", "n1")
	c.WaitNode("n1", "down", late)
	wants(t, "sinfo -R", root.Run("sinfo", "-R"), "reboot timed out", "n1")
	root.Run("scontrol", "update", "nodename=n1", "state=resume")
	root.Run("scontrol", "reboot", "n1")
	c.WaitFile(told, "n1\nn1\n")
	c.WaitNode("n1", "down again", late)
	root.Run("scontrol", "update", "nodename=n1", "state=resume")
	if j := c.WaitEnd(root.Sbatch("-o", "/dev/null", "--wrap", "true")); j.State != core.Completed {
		t.Errorf("resumed: %v %s", j.State, j.Message)
	}
}

// TestPlanned: an idle node that is kept for a job which waits for another one is shown so.
func TestPlanned(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "1G"})
	root, nodes := c.Root(), c.Nodes()
	runs := root.Sbatch("-o", "/dev/null", "-c", "2", "-w", nodes[0], "-t", "10", "--wrap", "sleep 600")
	c.WaitState(runs, core.Running)
	root.Sbatch("-o", "/dev/null", "-N", "2", "-t", "10", "--wrap", "true")
	c.WaitNode(nodes[1], "planned", func(n *client.Node) bool { return n.State == "IDLE+PLANNED" })
	wants(t, "sinfo", root.Run("sinfo", "-h", "-N", "-n", nodes[1]), "plnd")
	root.Run("scancel", runs)
	c.WaitNode(nodes[1], "free of the promise", func(n *client.Node) bool { return n.State == "IDLE" })
}
