package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/hub"
)

// gpuCollector tells Prometheus how GPUs do; a series a GPU, with the job that has it.
type gpuCollector struct {
	a    *Metrics
	jobs bool // jobs may be named
}

var (
	gpuLabels   = []string{"node", "gpu", "uuid", "model", "job"}
	descGPUUtil = prometheus.NewDesc("bireme_gpu_utilization_ratio", "Part of the time that something ran on a GPU.",
		gpuLabels, nil)
	descGPUUsed = prometheus.NewDesc("bireme_gpu_memory_used_bytes", "Memory of a GPU in use.", gpuLabels, nil)
	descGPUMem  = prometheus.NewDesc("bireme_gpu_memory_total_bytes", "Memory of a GPU.", gpuLabels, nil)
	descGPUTemp = prometheus.NewDesc("bireme_gpu_temperature_celsius", "Temperature of a GPU.", gpuLabels, nil)
	descGPUWatt = prometheus.NewDesc("bireme_gpu_power_watts", "Power a GPU draws.", gpuLabels, nil)
	descGPUWell = prometheus.NewDesc("bireme_gpu_health", "0: healthy, 1: warning, 2: failure.", gpuLabels, nil)
)

// Describe implements prometheus.Collector.
func (c *gpuCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descGPUUtil, descGPUUsed, descGPUMem, descGPUTemp, descGPUWatt, descGPUWell} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *gpuCollector) Collect(ch chan<- prometheus.Metric) {
	list, _ := c.a.Hub.GPUs()
	for i := range list {
		g := &list[i]
		labels := []string{string(g.Node), strconv.Itoa(int(g.Index)), g.UUID, g.Type, c.jobLabel(g)}
		for d, v := range map[*prometheus.Desc]float64{
			descGPUUtil: g.Util / 100, descGPUUsed: float64(g.Used), descGPUMem: float64(g.Memory), descGPUTemp: g.Temp,
			descGPUWatt: g.Power,
			descGPUWell: float64(slices.Index([]string{"healthy", "warning", "failure"}, g.Health)),
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
		}
	}
}

func (c *gpuCollector) jobLabel(g *hub.GPU) string {
	if g.Job == nil || !c.jobs {
		return ""
	}
	return strconv.FormatInt(int64(g.Job.ID), 10)
}

// ServeDCGM passes on what the nodes' dcgm-exporters say of GPUs that jobs have, with the node, the job and its run
// beside it.
func (a *Metrics) ServeDCGM(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	list, exported := a.Hub.GPUs()
	v := a.scraper(r, who)
	list = slices.DeleteFunc(list, func(g hub.GPU) bool { return g.Job != nil && !v.SeesJob(g.Job) })
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(relabelled(list, exported)) // a scraper that went away
	return nil, nil
}

// relabelled joins the texts of several exporters: each family once, with the lines of all nodes below it.
func relabelled(list []hub.GPU, exported map[core.NodeName][]byte) []byte {
	type family struct{ about, lines []string }
	families := map[string]*family{}
	var order []string
	find := func(name string) *family {
		if families[name] == nil {
			families[name] = &family{}
			order = append(order, name)
		}
		return families[name]
	}
	slices.SortFunc(list, func(a, b hub.GPU) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index))
	})
	for i := range list {
		g := &list[i]
		if g.Job == nil || exported[g.Node] == nil {
			continue
		}
		more := fmt.Sprintf(`bireme_node=%q,bireme_job="%d",bireme_run=%q,bireme_user=%q,`, g.Node, g.Job.ID, g.Job.Spec.Run,
			g.Job.Spec.User)
		for line := range strings.Lines(string(exported[g.Node])) {
			line = strings.TrimSpace(line)
			if f := strings.Fields(line); strings.HasPrefix(line, "# ") && len(f) > 2 {
				if at := find(f[2]); !slices.Contains(at.about, line) && len(at.about) < 2 {
					at.about = append(at.about, line)
				}
				continue
			}
			name, rest, ok := strings.Cut(line, "{")
			if ok && strings.Contains(rest, `UUID="`+g.UUID+`"`) {
				at := find(name)
				at.lines = append(at.lines, name+"{"+more+rest)
			}
		}
	}
	var b bytes.Buffer
	for _, name := range order {
		if at := families[name]; len(at.lines) > 0 {
			for _, line := range slices.Concat(at.about, at.lines) {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.Bytes()
}
