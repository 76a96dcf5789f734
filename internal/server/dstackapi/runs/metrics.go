package runs

import (
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/samples"
)

// maxMetrics bounds the moments of an answer.
const maxMetrics = 10_000

// metricsQuery is which moments are asked for.
type metricsQuery struct {
	job, limit    int64
	after, before core.Time
}

func readMetricsQuery(c *front.Call) (q metricsQuery, err error) {
	v := c.R.URL.Query()
	if q.job, err = call.Number(v.Get("job_num"), 0); err != nil {
		return q, err
	}
	if q.limit, err = call.Number(v.Get("limit"), 1); err != nil {
		return q, err
	}
	q.limit = min(q.limit, maxMetrics)
	for key, to := range map[string]*core.Time{"after": &q.after, "before": &q.before} {
		if text := v.Get(key); text != "" {
			var ok bool
			if *to, ok = wire.ParseTime(text); !ok {
				return q, front.Errorf("%s: %.60q is not a time", key, text)
			}
		}
	}
	return q, nil
}

// metrics gives what a job used, the newest moment first.
func (a *Runs) metrics(c *front.Call) (any, error) {
	q, err := readMetricsQuery(c)
	if err != nil {
		return nil, err
	}
	l := a.look(c)
	r, err := l.find(c.Context(), c.Project.Name, c.R.PathValue("run"))
	if id := c.R.URL.Query().Get("run_id"); id != "" {
		r, err = l.findID(c.Context(), c.Project.Name, id)
	}
	if err != nil {
		return nil, err
	}
	out := &wire.JobMetrics{Metrics: []wire.Metric{}}
	j, err := l.job(c.Context(), r)
	if err != nil || j == nil || j.Alloc == nil || q.job >= int64(len(j.Alloc.Nodes)) {
		return out, err
	}
	if err := a.Jobs.May(c.Caller, j); err != nil {
		return nil, err
	}
	a.Saw(c.Caller, j)
	done, err := a.Heavy(c.Context(), c.Caller) // a job of weeks has many samples, and all are read
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := a.Samples.Read(samples.Key{Job: j.ID, Attempt: j.Attempt})
	if err != nil {
		return nil, err
	}
	out.Metrics = l.series(j, int(q.job), list, &q)
	return out, nil
}

// series turns samples of one node of a job into dstack's metrics. The first sample only begins the count of CPU time.
func (l *look) series(j *core.Job, rank int, list []core.Sample, q *metricsQuery) []wire.Metric {
	na := &j.Alloc.Nodes[rank]
	list = slices.DeleteFunc(list, func(x core.Sample) bool { return x.Node != na.Node })
	b := &seriesOf{at: map[string]int{}, list: []wire.Metric{}}
	node, gpuMemory := l.Node(na.Node), int64(0)
	if node != nil {
		for _, u := range node.Hardware.Units {
			if u.Name == "gpu" {
				gpuMemory = int64(u.Memory)
			}
		}
	}
	n := int64(0)
	for i := len(list) - 1; i > 0 && n < q.limit; i-- {
		x, prev := &list[i], &list[i-1]
		passed := x.At.Sub(prev.At)
		if passed <= 0 || q.after != 0 && x.At <= q.after || q.before != 0 && x.At >= q.before {
			continue
		}
		n++
		at := wire.Time(x.At)
		b.add("cpu_usage_percent", at, int64(100*float64(max(0, x.CPU-prev.CPU))/float64(passed)))
		b.add("memory_usage_bytes", at, int64(x.Mem))
		b.add("memory_working_set_bytes", at, int64(x.Mem))
		b.add("cpus_detected_num", at, int64(na.CPUs))
		b.add("memory_total_bytes", at, int64(na.Mem))
		b.add("gpus_detected_num", at, int64(len(x.GPUs)))
		if len(x.GPUs) > 0 {
			b.add("gpu_memory_total_bytes", at, gpuMemory)
		}
		for i, g := range x.GPUs {
			b.add("gpu_memory_usage_bytes_gpu"+strconv.Itoa(i), at, int64(g.Mem))
			b.add("gpu_util_percent_gpu"+strconv.Itoa(i), at, int64(g.Util))
		}
	}
	return b.list
}

// seriesOf collects metrics by name, in the order of their first values.
type seriesOf struct {
	at   map[string]int
	list []wire.Metric
}

func (b *seriesOf) add(name, at string, value int64) {
	i, ok := b.at[name]
	if !ok {
		i = len(b.list)
		b.at[name] = i
		b.list = append(b.list, wire.Metric{Name: name})
	}
	m := &b.list[i]
	m.Timestamps = append(m.Timestamps, at)
	m.Values = append(m.Values, value)
}
