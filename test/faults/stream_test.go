//go:build e2e

package faults

import (
	"context"
	"database/sql"
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
	r := &rage{c: c, rng: rng, database: store}
	killed := r.run(kills, faults)
	drain(c)
	t.Logf("%d orders, %d kills", len(orders), len(killed))
	judge(t, c, dir, orders, killed)
	judgeEvents(t, c, seen, orders)
	c.WaitClean()
}

// rage breaks a cluster at random.
type rage struct {
	c        *cluster.Cluster
	rng      *rand.Rand
	database string // empty: SQLite
	killed   []kill
}

// run strikes at random moments, at least n times and until the stream is sent. It reports what went wrong with
// sending, and leaves the cluster whole.
func (r *rage) run(n int, sending <-chan error) []kill {
	sent := false
	for len(r.killed) < n || !sent {
		timer := time.NewTimer(time.Duration(50+r.rng.IntN(700)) * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case err, open := <-sending:
				if !open {
					sent, sending = true, nil
				} else {
					r.c.T.Errorf("%v", err)
				}
			case <-timer.C:
				waiting = false
			}
		}
		r.strike()
	}
	return r.killed
}

// strike does one harm: it kills one part or several at once, holds one up for a while, or takes the database's
// connections away.
func (r *rage) strike() {
	nodes := r.c.Nodes()
	node := nodes[r.rng.IntN(len(nodes))]
	switch n := r.rng.IntN(15); {
	case n < 12:
		r.kill(node, [][]string{
			{"server"},
			{"server"},
			{"server"},
			{"agent"},
			{"agent"},
			{"agent"},
			{"keeper"},
			{"keeper"},
			{"server", "agent"},
			{"agent", "keeper"},
			{"server", "keeper"},
			{"server", "agent", "keeper"},
		}[n])
	case n < 14 || r.database == "":
		r.hold(node, []string{"server", "agent", "keeper"}[r.rng.IntN(3)],
			time.Duration(100+r.rng.IntN(1500))*time.Millisecond)
	default:
		r.disconnect()
	}
}

func (r *rage) find(node, what string) int {
	switch what {
	case "server":
		return r.c.Server()
	case "agent":
		return r.c.Agent(node)
	}
	return r.c.Keeper(node)
}

// hold stops a part for so long that others may think it dead.
func (r *rage) hold(node, what string, d time.Duration) {
	pid := r.find(node, what)
	if !r.c.Signal(pid, syscall.SIGSTOP) {
		return
	}
	r.c.T.Logf("%s hold %s of %s for %v", time.Now().Format("05.000"), what, node, d)
	pause(r.c.T.Context(), d)
	r.c.Signal(pid, syscall.SIGCONT)
}

// disconnect ends every connection to the database.
func (r *rage) disconnect() {
	db, err := sql.Open("pgx", r.database)
	if err != nil {
		r.c.T.Fatalf("%v", err)
	}
	defer db.Close()
	r.c.T.Logf("%s disconnect from the database", time.Now().Format("05.000"))
	_, err = db.ExecContext(r.c.T.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "+
		"current_database() AND pid <> pg_backend_pid()")
	if err != nil {
		r.c.T.Errorf("%v", err)
	}
}

// kill kills parts at once, and starts the server again if it was one of them.
func (r *rage) kill(node string, parts []string) {
	c := r.c
	again := r.rng.IntN(4) == 0
	moment := time.Duration(r.rng.IntN(400)) * time.Millisecond
	down := false
	for _, what := range parts {
		if c.Signal(r.find(node, what), syscall.SIGKILL) {
			r.killed = append(r.killed, kill{what, node, time.Now()})
			c.T.Logf("%s kill %s of %s", time.Now().Format("05.000"), what, node)
		}
		down = down || what == "server"
	}
	if !down {
		return
	}
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
		r.killed = append(r.killed, kill{"server", "", time.Now()})
	}
	if err := c.Up(); err != nil {
		c.T.Fatalf("start again on the same folder: %v", err)
	}
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
