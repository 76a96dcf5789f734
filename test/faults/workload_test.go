//go:build e2e

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// order is one submission of the stream and what came of handing it in.
type order struct {
	name    string
	sleep   time.Duration
	code    int32
	tasks   int // 0: no array
	nodes   int32
	requeue bool
	after   time.Duration // since the client's last order
	cancel  time.Duration // after the acknowledgement; 0: never

	id        core.JobID // 0: never acknowledged
	asked     bool       // a cancel was sent, its fate may be unknown
	cancelled time.Time  // when a cancel was acknowledged; zero: never
}

// draw makes the stream of a seed.
func draw(rng *rand.Rand, n int, pace time.Duration) []*order {
	list := make([]*order, n)
	for i := range list {
		o := &order{
			name: fmt.Sprintf("j%04d", i), sleep: time.Duration(rng.IntN(301)) * time.Millisecond, nodes: 1,
			requeue: rng.IntN(2) == 0, after: time.Duration(rng.Int64N(int64(2 * pace))),
		}
		switch rng.IntN(10) {
		case 0, 1:
			o.code = 1 + rng.Int32N(120)
		case 2:
			o.tasks = 2 + rng.IntN(5)
		case 3:
			o.nodes = 2
		}
		if rng.IntN(8) == 0 {
			o.cancel = 1 + time.Duration(rng.IntN(500))*time.Millisecond
		}
		list[i] = o
	}
	return list
}

// names are the files of an order's runs: one, or one a task.
func (o *order) names() []string {
	if o.tasks == 0 {
		return []string{o.name}
	}
	var list []string
	for i := range o.tasks {
		list = append(list, fmt.Sprintf("%s_%d", o.name, i))
	}
	return list
}

// script is every job of the stream. The lock belongs to the open file, which every child inherits, and the kernel
// drops it with the last of them: a job that meets it was started while something of an earlier run lived.
const script = `#!/bin/sh
name=$FAULT_NAME${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
exec 9>>"$FAULT_DIR/lock/$name"
flock -n 9 || { echo "$name: ${BIREME_LAUNCH%@*} met an earlier run" >>"$FAULT_DIR/twice"; exit 99; }
echo "start ${BIREME_LAUNCH%@*}" >>"$FAULT_DIR/run/$name"
sleep "$FAULT_SLEEP"
echo "end ${BIREME_LAUNCH%@*}" >>"$FAULT_DIR/run/$name"
exit "$FAULT_CODE"
`

// submission is the order as the API takes it.
func (o *order) submission(dir string) *client.Submit {
	s := &client.Submit{
		Script: script,
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "FAULT_DIR=" + dir, "FAULT_NAME=" + o.name,
			fmt.Sprintf("FAULT_SLEEP=%.3f", o.sleep.Seconds()), fmt.Sprintf("FAULT_CODE=%d", o.code),
		},
		Spec: core.Spec{
			Name: o.name, Requeue: o.requeue, IO: core.IO{WorkDir: dir, Stdout: filepath.Join(dir, "out", o.name+"-%a")},
			Shape: core.Shape{NodesMin: o.nodes, NodesMax: o.nodes, CPUsPerTask: 1, MemPerNode: 16 * core.MiB},
		},
		Key: client.NewKey(),
	}
	if o.tasks > 0 {
		s.Spec.Array = fmt.Sprintf("0-%d", o.tasks-1)
	}
	return s
}

// directories makes where the jobs leave their marks.
func folders(c *cluster.Cluster) (string, error) {
	dir := filepath.Join(c.Work, "marks")
	var errs []error
	for _, sub := range []string{"lock", "run", "out"} {
		errs = append(errs, os.MkdirAll(filepath.Join(dir, sub), 0o777))
	}
	return dir, errors.Join(errs...)
}

// send hands in the stream by several clients, each of which tries again under the same key until it is acknowledged.
func send(ctx context.Context, c *cluster.Cluster, orders []*order, clients int, dir string) <-chan error {
	var wg sync.WaitGroup
	faults := make(chan error, len(orders)+clients)
	for part := range slices.Chunk(orders, (len(orders)+clients-1)/clients) {
		cl := c.Client(90 * time.Second)
		wg.Go(func() {
			var cancels sync.WaitGroup
			defer cancels.Wait()
			for _, o := range part {
				pause(ctx, o.after)
				done, err := cl.Submit(ctx, o.submission(dir))
				if err != nil {
					faults <- fmt.Errorf("submit %s: %w", o.name, err)
					continue
				}
				o.id = done.ID
				if o.cancel > 0 {
					cancels.Go(func() {
						pause(ctx, o.cancel)
						if err := o.end(ctx, cl); err != nil {
							faults <- fmt.Errorf("cancel %s: %w", o.name, err)
						}
					})
				}
			}
		})
	}
	go func() {
		wg.Wait()
		close(faults)
	}()
	return faults
}

// end cancels the order's job. One that has ended by then is no fault.
func (o *order) end(ctx context.Context, cl *client.Client) error {
	o.asked = true
	done, err := cl.Cancel(ctx, &client.Cancel{IDs: []string{fmt.Sprint(o.id)}})
	if err == nil && len(done.Results) > 0 && done.Results[0].Error != nil {
		err = done.Results[0].Error
	}
	switch core.CodeOf(err) {
	case "":
		o.cancelled = time.Now()
	case core.NotFound, core.Conflict:
	default:
		return err
	}
	return nil
}
