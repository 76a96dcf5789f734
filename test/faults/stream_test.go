//go:build e2e

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// kill is a part that was killed.
type kill struct {
	what string // server, agent, keeper
	node string
	at   time.Time
}

func TestStream(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { stream(t, "") })
	t.Run("postgres", func(t *testing.T) { stream(t, postgres(t)) })
}

func stream(t *testing.T, store string) {
	seed := seedOf(t)
	jobs, kills, pace := 300, 14, 130*time.Millisecond
	if soak() {
		jobs, kills, pace = 2000, 60, 100*time.Millisecond
	}
	const nodes = 3
	c := cluster.Start(t, cluster.Options{
		Nodes: nodes, CPUs: 4, Memory: "4G", Store: store,
		Set: []string{"jobs.max_requeues=1000", "timers.lease=1s"},
	})
	dir, err := folders(c)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	orders := draw(rng, jobs, pace)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := watch(ctx, c)
	faults := send(ctx, c, orders, 4, dir)
	killed := rage(c, rng, kills, faults)
	drain(c)
	t.Logf("%d orders, %d kills", len(orders), len(killed))
	judge(t, c, dir, orders, killed)
	judgeEvents(t, c, seen, orders)
	c.WaitClean()
}

// rage kills parts at random moments, at least n times and until the stream is sent. It reports what went wrong with
// sending, and leaves the cluster whole.
func rage(c *cluster.Cluster, rng *rand.Rand, n int, sending <-chan error) []kill {
	var killed []kill
	sent := false
	for len(killed) < n || !sent {
		timer := time.NewTimer(time.Duration(50+rng.IntN(700)) * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case err, open := <-sending:
				if !open {
					sent, sending = true, nil
				} else {
					c.T.Errorf("%v", err)
				}
			case <-timer.C:
				waiting = false
			}
		}
		killed = append(killed, strike(c, rng)...)
	}
	return killed
}

// strike kills one part, or several at once, and starts the server again if it was one of them.
func strike(c *cluster.Cluster, rng *rand.Rand) []kill {
	nodes := c.Nodes()
	node := nodes[rng.IntN(len(nodes))]
	parts := map[string]func() int{
		"server": c.Server,
		"agent":  func() int { return c.Agent(node) },
		"keeper": func() int { return c.Keeper(node) },
	}
	choice := [][]string{
		{"server"}, {"server"}, {"server"}, {"agent"}, {"agent"}, {"agent"}, {"keeper"}, {"keeper"},
		{"server", "agent"}, {"agent", "keeper"}, {"server", "keeper"}, {"server", "agent", "keeper"},
	}[rng.IntN(12)]
	again := rng.IntN(4) == 0
	moment := time.Duration(rng.IntN(400)) * time.Millisecond
	var killed []kill
	down := false
	for _, what := range choice {
		if c.Signal(parts[what](), syscall.SIGKILL) {
			killed = append(killed, kill{what, node, time.Now()})
			c.T.Logf("%s killed %s of %s", time.Now().Format("05.000"), what, node)
		}
		down = down || what == "server"
	}
	if down {
		c.Eventually("the server is gone", func() (bool, string) { return c.Server() == 0, "it runs" })
		if again { // in the middle of its start
			up := make(chan error, 1)
			go func() { up <- c.Up() }()
			pause(c.T.Context(), moment)
			c.Signal(c.Server(), syscall.SIGKILL)
			<-up // it may have been ready by then, or not
			c.Eventually("the server is gone", func() (bool, string) {
				c.Signal(c.Server(), syscall.SIGKILL)
				return c.Server() == 0, "it runs"
			})
			killed = append(killed, kill{"server", "", time.Now()})
		}
		if err := c.Up(); err != nil {
			c.T.Fatalf("start again on the same folder: %v", err)
		}
	}
	return killed
}

// drain waits until no job is left that has not ended and is not clean.
func drain(c *cluster.Cluster) {
	c.Within(90*time.Second, "every job has ended", func() (bool, string) {
		list, err := c.Client(time.Second).Briefs(c.T.Context(), client.JobsQuery{})
		if err != nil {
			return false, err.Error()
		}
		saw := fmt.Sprintf("%d jobs", len(list.Jobs))
		for i := range list.Jobs {
			j := &list.Jobs[i]
			saw += fmt.Sprintf("\n%d %s %v flags %b %s %s", j.ID, j.Name, j.State, j.Flags, j.Reason, j.NodeList)
			if i == 20 {
				break
			}
		}
		return len(list.Jobs) == 0, saw
	})
}

// watcher follows the events through every death of the server.
type watcher struct {
	last atomic.Int64
	gap  chan error
	all  chan *core.Event
}

func watch(ctx context.Context, c *cluster.Cluster) *watcher {
	w := &watcher{gap: make(chan error, 1), all: make(chan *core.Event, 1<<20)}
	cl := c.Client(90 * time.Second)
	go func() {
		defer close(w.all)
		for ctx.Err() == nil {
			err := cl.Watch(ctx, w.last.Load(), func(e *core.Event) error {
				if want := w.last.Load() + 1; e.Seq != want {
					return fmt.Errorf("event %d came where %d was due", e.Seq, want)
				}
				w.all <- e
				w.last.Store(e.Seq)
				return nil
			})
			if code := core.CodeOf(err); err != nil && ctx.Err() == nil && code != core.Unavailable {
				w.gap <- err
				return
			}
		}
	}()
	return w
}
