package sstat

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/report/table"
)

// row is a step of sstat: what its tasks use now.
type row struct {
	ID      string // job and step, as Slurm writes them
	Usage   *client.StepUsage
	Batch   bool
	Convert bool // sizes in the largest unit that fits them
}

// taskOn is a task and where it is.
type taskOn struct {
	client.TaskUsage
	node core.NodeName
}

// tasks are those of all nodes. Of a node that does not tell of single ones, all together are one.
func (r *row) tasks() (list []taskOn) {
	for i := range r.Usage.Nodes {
		n := &r.Usage.Nodes[i]
		for _, t := range n.Tasks {
			list = append(list, taskOn{t, n.Node})
		}
		if len(n.Tasks) == 0 {
			list = append(list, taskOn{client.TaskUsage{CPU: n.CPU, RSS: n.RSS, MaxRSS: n.MaxRSS}, n.Node})
		}
	}
	return list
}

// quantity is something that tasks use: how much now, how much at most, and how it is written.
type quantity struct {
	name      string
	now, most func(t *taskOn) int64
	text      func(n int64, convert bool) string
}

func plainNumber(n int64, _ bool) string { return strconv.FormatInt(n, 10) }

func sizeText(n int64, convert bool) string {
	if convert {
		for _, unit := range []string{"", "K", "M", "G", "T", "P"} {
			if n == 0 || n%1024 != 0 || unit == "P" {
				return strconv.FormatInt(n, 10) + unit
			}
			n /= 1024
		}
	}
	return strconv.FormatInt(n, 10)
}

var (
	quantityCPU = quantity{
		"cpu", func(t *taskOn) int64 { return int64(t.CPU / time.Second) },
		func(t *taskOn) int64 { return int64(t.CPU / time.Second) },
		func(n int64, _ bool) string { return grammar.FormatClock(n) },
	}
	quantityRead = quantity{
		"fs/disk", func(t *taskOn) int64 { return int64(t.Read) }, func(t *taskOn) int64 { return int64(t.Read) },
		plainNumber,
	}
	quantityWrite = quantity{
		"fs/disk", func(t *taskOn) int64 { return int64(t.Write) }, func(t *taskOn) int64 { return int64(t.Write) },
		plainNumber,
	}
	quantityRSS = quantity{
		"mem", func(t *taskOn) int64 { return int64(t.RSS) }, func(t *taskOn) int64 { return int64(t.MaxRSS) }, sizeText,
	}
	quantityPages = quantity{
		"pages", func(t *taskOn) int64 { return t.Pages }, func(t *taskOn) int64 { return t.Pages }, plainNumber,
	}
	quantityVM = quantity{
		"vmem", func(t *taskOn) int64 { return int64(t.VM) }, func(t *taskOn) int64 { return int64(t.MaxVM) }, sizeText,
	}
	quantityEnergy = quantity{
		"energy", func(*taskOn) int64 { return 0 }, func(*taskOn) int64 { return 0 }, plainNumber,
	}
	// Those of TRESUsageIn and TRESUsageOut, by name.
	quantitiesIn  = []quantity{quantityCPU, quantityEnergy, quantityRead, quantityRSS, quantityPages, quantityVM}
	quantitiesOut = []quantity{quantityEnergy, quantityWrite}
)

// extreme finds the task that has most, or with least set least, of something.
func (r *row) extreme(q *quantity, least bool) (at taskOn, n int64) {
	for i, t := range r.tasks() {
		m := q.most(&t)
		if i == 0 || !least && m > n || least && m < n {
			at, n = t, m
		}
	}
	return at, n
}

// total is what all tasks have now, and how many there are.
func (r *row) total(q *quantity) (n, tasks int64) {
	list := r.tasks()
	for i := range list {
		n += q.now(&list[i])
	}
	return n, int64(len(list))
}

// one makes the fields of one quantity: its extreme, where that is, and what a task has on average.
func (q quantity) extremeText(least bool) func(r *row) string {
	return func(r *row) string { _, n := r.extreme(&q, least); return q.text(n, r.Convert) }
}

func (q quantity) node(least bool) func(r *row) string {
	return func(r *row) string { t, _ := r.extreme(&q, least); return string(t.node) }
}

func (q quantity) task(least bool) func(r *row) string {
	return func(r *row) string { t, _ := r.extreme(&q, least); return strconv.Itoa(t.Task) }
}

func (q quantity) average(r *row) string {
	n, tasks := r.total(&q)
	return q.text(n/cmp.Or(tasks, 1), r.Convert)
}

// each writes something of all quantities of a list.
func each(list []quantity, value func(r *row, q *quantity) string) func(r *row) string {
	return func(r *row) string {
		var words []string
		for i := range list {
			if v := value(r, &list[i]); v != "" {
				words = append(words, list[i].name+"="+v)
			}
		}
		return strings.Join(words, ",")
	}
}

// taskNumber is the rank of a task in the form of the quantity: Slurm writes that of CPUs as a time.
func taskNumber(least bool) func(r *row, q *quantity) string {
	return func(r *row, q *quantity) string {
		if q.name == "energy" {
			return ""
		}
		t, _ := r.extreme(q, least)
		if q.name == "cpu" {
			return q.text(int64(t.Task), false)
		}
		return strconv.Itoa(t.Task)
	}
}

// tresFields are the eight fields of what goes in or out.
func tresFields(way string, width int, list []quantity) []table.Field[row] {
	wide := width + 4
	f := func(name string, width int, value func(r *row, q *quantity) string) table.Field[row] {
		return table.Field[row]{Name: "TRESUsage" + way + name, Width: width, Value: each(list, value)}
	}
	amount := func(least bool) func(r *row, q *quantity) string {
		return func(r *row, q *quantity) string { return q.extremeText(least)(r) }
	}
	node := func(least bool) func(r *row, q *quantity) string {
		return func(r *row, q *quantity) string { return q.node(least)(r) }
	}
	return []table.Field[row]{
		f("Ave", width, func(r *row, q *quantity) string { return q.average(r) }),
		f("Max", width, amount(false)), f("MaxNode", wide, node(false)), f("MaxTask", wide, taskNumber(false)),
		f("Min", width, amount(true)), f("MinNode", wide, node(true)), f("MinTask", wide, taskNumber(true)),
		f("Tot", width, func(r *row, q *quantity) string { n, _ := r.total(q); return q.text(n, r.Convert) }),
	}
}

// most makes the four fields of a quantity: Max, its node and task, and the average.
func most(q quantity, name string, width, nodeWidth, taskWidth, aveWidth int) []table.Field[row] {
	return []table.Field[row]{
		{Name: "Ave" + name, Width: aveWidth, Value: q.average},
		{Name: "Max" + name, Width: width, Value: q.extremeText(false)},
		{Name: "Max" + name + "Node", Width: nodeWidth, Value: q.node(false)},
		{Name: "Max" + name + "Task", Width: taskWidth, Value: q.task(false)},
	}
}

// requestedFreq is what was asked of the frequency of CPUs: nothing ever is.
func requestedFreq(r *row) string {
	if r.Batch {
		return "0"
	}
	return "Unknown"
}

func zeroStat(*row) string { return "0" }

// fields are the columns of sstat, in the order in which it lists them.
var fields = makeStatFields()

func makeStatFields() []table.Field[row] {
	disk := most(quantityRead, "DiskRead", 12, 15, 15, 12)
	write := most(quantityWrite, "DiskWrite", 12, 16, 16, 12)
	pages := most(quantityPages, "Pages", 8, 12, 14, 10)
	rss := most(quantityRSS, "RSS", 10, 10, 10, 10)
	vm := most(quantityVM, "VMSize", 10, 14, 14, 10)
	list := []table.Field[row]{
		{Name: "AveCPU", Width: 10, Value: quantityCPU.average},
		{Name: "AveCPUFreq", Width: 10, Value: zeroStat},
		disk[0], write[0], pages[0], rss[0], vm[0],
		{Name: "ConsumedEnergy", Width: 14, Value: zeroStat},
		{Name: "ConsumedEnergyRaw", Width: 17, Value: zeroStat},
		{Name: "JobID", Width: -12, Value: func(r *row) string { return r.ID }},
	}
	for _, more := range [][]table.Field[row]{disk, write, pages, rss, vm} {
		list = append(list, more[1:]...)
	}
	list = append(list,
		table.Field[row]{Name: "MinCPU", Width: 10, Value: quantityCPU.extremeText(true)},
		table.Field[row]{Name: "MinCPUNode", Width: 10, Value: quantityCPU.node(true)},
		table.Field[row]{Name: "MinCPUTask", Width: 10, Value: quantityCPU.task(true)},
		table.Field[row]{Name: "Nodelist", Width: 20, Value: func(r *row) string {
			var names []string
			for i := range r.Usage.Nodes {
				names = append(names, string(r.Usage.Nodes[i].Node))
			}
			return hostlist.Fold(names)
		}},
		table.Field[row]{Name: "NTasks", Width: 8, Value: func(r *row) string { return fmt.Sprint(len(r.tasks())) }},
		table.Field[row]{Name: "Pids", Width: 20, Value: func(r *row) string {
			var words []string
			for i := range r.Usage.Nodes {
				for _, pid := range r.Usage.Nodes[i].PIDs {
					words = append(words, strconv.Itoa(pid))
				}
			}
			return strings.Join(words, ",")
		}},
		table.Field[row]{Name: "ReqCPUFreq", Width: 10, Value: requestedFreq},
		table.Field[row]{Name: "ReqCPUFreqMin", Width: 13, Value: requestedFreq},
		table.Field[row]{Name: "ReqCPUFreqMax", Width: 13, Value: requestedFreq},
		table.Field[row]{Name: "ReqCPUFreqGov", Width: 13, Value: requestedFreq},
	)
	list = append(list, tresFields("In", 14, quantitiesIn)...)
	return append(list, tresFields("Out", 15, quantitiesOut)...)
}

// defaultFormat is what sstat shows where nobody says, pidFormat with -i.
const (
	defaultFormat = "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxPages," +
		"MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AveCPUFreq,ReqCPUFreqMin," +
		"ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead," +
		"MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,TRESUsageInAve,TRESUsageInMax," +
		"TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot," +
		"TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin," +
		"TRESUsageOutMinNode,TRESUsageOutMinTask,TRESUsageOutTot"
	pidFormat = "JobID,Nodelist,Pids"
)
