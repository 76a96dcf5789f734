package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"bireme.dev/bireme/internal/core"
)

// queueCollector tells of the queue, of what is allocated, and of how long the engine takes. Nothing in it names
// anybody; whoever may not see all jobs does not get it.
type queueCollector struct{ a *Metrics }

var (
	descQueue = prometheus.NewDesc(
		"bireme_queue", "Pending jobs by partition and reason; array tasks counted one by one.",
		[]string{"partition", "reason"}, nil)
	descAllocCPUs = prometheus.NewDesc("bireme_allocated_cpus", "CPUs of running jobs by partition.",
		[]string{"partition"}, nil)
	descAllocMem = prometheus.NewDesc("bireme_allocated_memory_bytes", "Memory of running jobs by partition.",
		[]string{"partition"}, nil)
	descAllocGres = prometheus.NewDesc("bireme_allocated_gres",
		"Generic resources of running jobs by partition and name.", []string{"partition", "gres"}, nil)
	descPasses   = prometheus.NewDesc("bireme_scheduler_passes_total", "Passes of the scheduler.", nil, nil)
	descPassTime = prometheus.NewDesc("bireme_scheduler_seconds_total", "Time spent in passes of the scheduler.", nil,
		nil)
	descCommit = prometheus.NewDesc("bireme_commit_seconds_total",
		"Time spent in commits; bireme_commits_total counts them.", nil, nil)
	descInbox = prometheus.NewDesc("bireme_inbox", "Commands that wait for the engine.", []string{"lane"}, nil)
)

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descQueue, descAllocCPUs, descAllocMem, descAllocGres, descPasses, descPassTime,
		descCommit, descInbox,
	} {
		ch <- d
	}
}

// allocated is what the running jobs of a partition hold.
type allocated struct {
	cpus, mem int64
	gres      map[string]int
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	s := c.a.Engine.Stats()
	send(descPasses, prometheus.CounterValue, float64(s.Passes))
	send(descPassTime, prometheus.CounterValue, s.Planning.Seconds())
	send(descCommit, prometheus.CounterValue, s.Committing.Seconds())
	send(descInbox, prometheus.GaugeValue, float64(s.Inbox-s.Urgent), "calls")
	send(descInbox, prometheus.GaugeValue, float64(s.Urgent), "exits")
	queue, alloc := c.countQueue()
	for k, n := range queue {
		send(descQueue, prometheus.GaugeValue, float64(n), string(k.partition), k.reason)
	}
	for p, x := range alloc {
		send(descAllocCPUs, prometheus.GaugeValue, float64(x.cpus), string(p))
		send(descAllocMem, prometheus.GaugeValue, float64(x.mem), string(p))
		for name, n := range x.gres {
			send(descAllocGres, prometheus.GaugeValue, float64(n), string(p), name)
		}
	}
}

// waitKey is why jobs of a partition wait.
type waitKey struct {
	partition core.PartitionName
	reason    string
}

// countQueue goes over all live jobs once. Every partition is there, also with nothing in it, so that a graph has no
// holes.
func (c *queueCollector) countQueue() (map[waitKey]int, map[core.PartitionName]*allocated) {
	queue, alloc := map[waitKey]int{}, map[core.PartitionName]*allocated{}
	snap, plan := c.a.Engine.Snapshot(), c.a.Engine.Plan()
	if snap == nil {
		return queue, alloc
	}
	of := func(p core.PartitionName) *allocated {
		if alloc[p] == nil {
			alloc[p] = &allocated{gres: map[string]int{}}
		}
		return alloc[p]
	}
	for _, p := range c.a.Settings().CorePartitions() {
		of(p.Name)
	}
	for j := range snap.Jobs() {
		switch {
		case j.State == core.Pending:
			queue[waitKey{core.PartitionName(j.Spec.Partition.String()), plan.Reason(j).Code.String()}] += j.Count()
		case j.Alloc != nil && !j.State.Final():
			x := of(j.Alloc.Partition)
			for i := range j.Alloc.Nodes {
				n := &j.Alloc.Nodes[i]
				x.cpus, x.mem = x.cpus+int64(n.CPUs), x.mem+int64(n.Mem)
				for _, g := range n.Gres {
					x.gres[g.Name] += len(g.Units)
				}
			}
		}
	}
	return queue, alloc
}
