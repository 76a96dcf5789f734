//go:build e2e

package containers

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/test/cluster"
)

// TestDstackRuns is what a dstack configuration means inside containers.
func TestDstackRuns(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 2, CPUs: 4, Memory: "2G"})
	for _, tc := range []struct {
		name string
		test func(*testing.T, *cluster.Cluster)
	}{
		{"terminal", terminalRun},
		{"stop", stopRun},
		{"master done", masterDone},
		{"groups", groupsRun},
		{"retry", retryRun},
		{"abort", abortRun},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, c.For(t)) })
	}
	left(t, c)
	c.WaitClean()
}

// submitYAML submits a configuration as dstack's API does.
func submitYAML(t *testing.T, c *cluster.Cluster, name, yaml string) string {
	t.Helper()
	conf, err := config.Read([]byte("type: task\nname: " + name + "\nimage: box:1\n" +
		"resources: {cpu: 1, memory: 64MB.., disk: 0..}\n" + yaml))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := (&convert.Spec{Configuration: *conf}).Submit(convert.Options{Name: name, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Client(5*time.Second).Submit(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(got.ID)
}

func logOf(t *testing.T, c *cluster.Cluster, id string) string {
	t.Helper()
	r, _, err := c.Client(5*time.Second).Logs(t.Context(), id, client.LogQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// terminalRun: commands run on a terminal, and who looks in finds their variables.
func terminalRun(t *testing.T, c *cluster.Cluster) {
	id := submitYAML(t, c, "term", `env: [COLOR=teal]
commands:
  - test -t 0 && test -t 1 && echo terminal
  - echo ready
  - while [ ! -e /tmp/go ]; do sleep 0.05; done
  - echo "run $DSTACK_RUN_NAME rank $DSTACK_NODE_RANK"
`)
	c.Eventually("it is ready", func() (bool, string) {
		text := logOf(t, c, id)
		return strings.Contains(text, "ready\n"), text
	})
	if got := c.Root().Run("bireme", "ssh", "term", "echo $COLOR $DSTACK_RUN_NAME; touch /tmp/go"); got != "teal term\n" {
		t.Errorf("ssh says %q", got)
	}
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("%s: %s", j.State, j.Message)
	}
	if got := logOf(t, c, id); got != "terminal\nready\nrun term rank 0\n" {
		t.Errorf("log %q", got)
	}
}

// stopRun: a stop is Ctrl+C to what runs in the foreground.
func stopRun(t *testing.T, c *cluster.Cluster) {
	id := submitYAML(t, c, "stopped", `commands:
  - sh -c 'trap "echo told; exit 0" INT; echo ready; while :; do sleep 0.05; done'
`)
	c.Eventually("it is ready", func() (bool, string) {
		text := logOf(t, c, id)
		return strings.Contains(text, "ready\n"), text
	})
	if err := c.Client(5*time.Second).StopRun(t.Context(), "", "stopped"); err != nil {
		t.Fatal(err)
	}
	j := c.WaitEnd(id)
	if j.State != core.Cancelled || j.Termination() != core.EndByUser {
		t.Errorf("%s, %s", j.State, j.Termination())
	}
	if got := logOf(t, c, id); !strings.Contains(got, "told\n") {
		t.Errorf("log %q", got)
	}
}

// masterDone: the run ends with the commands of its first node.
func masterDone(t *testing.T, c *cluster.Cluster) {
	id := submitYAML(t, c, "master", `nodes: 2
stop_criteria: master-done
startup_order: workers-first
commands:
  - test -t 1
  - if [ "$DSTACK_NODE_RANK" = 1 ]; then echo worker; sleep 1000; fi
  - echo master
`)
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("%s: %s", j.State, j.Message)
	}
	if got := logOf(t, c, id); !strings.Contains(got, "master\n") {
		t.Errorf("log %q", got)
	}
}

// groupsRun: groups of nodes start together, know each other and end as one.
func groupsRun(t *testing.T, c *cluster.Cluster) {
	id := submitYAML(t, c, "groups", `groups:
  - {name: head, nodes: 1, resources: {cpu: 2, memory: 64MB..}, commands: [
      "test $DSTACK_NODE_RANK.$DSTACK_NODES_NUM = 0.2",
      "test \"$(echo \"$DSTACK_NODES_IPS\" | tail -n 1)\" = '${{ groups[1].nodes[0].IP_ADDRESS }}'",
      "ssh n1 true && ssh n2 true && echo reached", "echo head has ${{ groups[0].nodes[0].IP_ADDRESS }}"]}
  - {name: tail, nodes: 1, resources: {cpu: 1, memory: 64MB..}, commands: [
      "test $DSTACK_NODE_RANK = 1", "echo tail sees $DSTACK_MASTER_NODE_IP"]}
`)
	j := c.WaitEnd(id)
	text := logOf(t, c, id)
	if j.State != core.Completed || !strings.Contains(text, "head has 127.0.") ||
		!strings.Contains(text, "tail sees 127.0.") || !strings.Contains(text, "reached") {
		t.Errorf("%s: %s\n%s", j.State, j.Message, text)
	}
	id = submitYAML(t, c, "groups", `groups:
  - {name: head, resources: {cpu: 1, memory: 64MB..}, commands: [sleep 1000]}
  - {name: tail, resources: {cpu: 1, memory: 64MB..}, commands: [exit 7]}
`)
	if j := c.WaitEnd(id); j.State != core.Failed || j.Exit.Code != 7 || !strings.Contains(j.Message, "rank 1") {
		t.Errorf("%s %d: %s", j.State, j.Exit.Code, j.Message)
	}
}

// retryRun: a run that failed waits for its next attempt, and ends when somebody stops it.
func retryRun(t *testing.T, c *cluster.Cluster) {
	id := submitYAML(t, c, "again", "retry: {on_events: [error], duration: 1h}\ncommands: [exit 3]\n")
	j := c.WaitState(id, core.Pending)
	c.Eventually("its first attempt has failed", func() (bool, string) {
		j = c.Job(id)
		return j.State == core.Pending && j.Earlier != nil, fmt.Sprint(j.State)
	})
	old := j.As(j.Earlier.Last())
	if old.Termination() != core.EndExitStatus || old.Exit.Code != 3 || j.Eligible <= j.Submit {
		t.Errorf("%+v", old)
	}
	if err := c.Client(5*time.Second).StopRun(t.Context(), "", "again"); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(id); j.RunTermination() != core.RunEndStopped {
		t.Errorf("%s", j.RunTermination())
	}
}

// abortRun: whoever does not hear Ctrl+C and SIGHUP is killed when its grace is over.
func abortRun(t *testing.T, c *cluster.Cluster) {
	id := submitYAML(t, c, "deaf", `stop_duration: 1s
commands:
  - trap '' INT HUP
  - echo ready
  - while :; do sleep 0.05; done
`)
	c.Eventually("it is ready", func() (bool, string) {
		text := logOf(t, c, id)
		return strings.Contains(text, "ready\n"), text
	})
	if err := c.Client(5*time.Second).StopRun(t.Context(), "", "deaf"); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(id); j.State != core.Cancelled {
		t.Errorf("%s", j.State)
	}
}
