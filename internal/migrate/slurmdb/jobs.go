package slurmdb

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/migrate/sqldump"
)

// Sink takes jobs and, after them, their numbered steps.
type Sink struct {
	Job  func(*core.Job) error
	Step func(*core.Step) error
}

// jobReader is pass two.
type jobReader struct {
	db     *Database
	ledger *Ledger
	sink   Sink
	owners []owner              // of steps
	held   map[int64][]*attempt // rows of ids that several rows have, until all have been seen
	done   bool                 // held were given out
	names  map[uint32]core.UserName
}

// owner says whose the steps of a row are.
type owner struct {
	index, job int64
	attempt    int32
}

type attempt struct {
	index int64
	job   *core.Job
}

// Jobs reads the dump again and gives out every job that has ended, and then the steps. What jobs used since slurmdbd
// last summed up is added to the ledger.
func (db *Database) Jobs(r io.Reader, ledger *Ledger, sink Sink, progress func(int64)) error {
	p := &jobReader{
		db: db, ledger: ledger, sink: sink, held: map[int64][]*attempt{},
		names: map[uint32]core.UserName{0: "root"},
	}
	db.Counts.Jobs, db.Counts.Attempts, db.Counts.Reused = 0, 0, 0
	jobs, steps := db.Cluster+"_job_table", db.Cluster+"_step_table"
	err := sqldump.Read(r, sqldump.Handler{
		Wants: func(t string) bool { return t == jobs || t == steps },
		Row: func(r *sqldump.Row) error {
			if r.Table.Name == jobs {
				return p.job(r)
			}
			if err := p.flush(); err != nil {
				return err
			}
			return p.step(r)
		},
		Progress: progress,
	})
	if err != nil {
		return err
	}
	return p.flush()
}

func (p *jobReader) job(r *sqldump.Row) error {
	n := &numbers{r: r}
	state, end := n.int("state", 0), n.int("time_end", 0)
	if n.int("deleted", 0) != 0 || end == 0 || !ended(state) {
		return n.err
	}
	j, err := p.convert(n)
	if err != nil {
		return err
	}
	index := n.int("job_db_inx", 0)
	if p.db.repeated[int64(j.ID)] > 1 {
		p.held[int64(j.ID)] = append(p.held[int64(j.ID)], &attempt{index, j})
		return nil
	}
	return p.give(j, index)
}

func (p *jobReader) give(j *core.Job, index int64) error {
	p.owners = append(p.owners, owner{index, int64(j.ID), j.Attempt})
	p.db.Counts.Jobs++
	return p.sink.Job(j)
}

// flush gives out the jobs of which there were several rows: those of one user and name are attempts of one job. Of
// others the last has the id, as Slurm's own commands show it.
func (p *jobReader) flush() error {
	if p.done {
		return nil
	}
	p.done = true
	ids := make([]int64, 0, len(p.held))
	for id := range p.held {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		rows := p.held[id]
		slices.SortFunc(rows, func(a, b *attempt) int { return cmp.Compare(a.index, b.index) })
		last := rows[len(rows)-1]
		var number int32
		for _, a := range rows[:len(rows)-1] {
			if a.job.Spec.UID != last.job.Spec.UID || a.job.Spec.Name != last.job.Spec.Name || a.job.End > last.job.Submit+1e6 {
				p.db.Counts.Reused++
				continue
			}
			number++
			p.db.Counts.Attempts++
			a.job.Attempt, a.job.Earlier = number, last.job.Earlier
			a.job.Remember()
			last.job.Earlier = a.job.Earlier
			p.owners = append(p.owners, owner{a.index, id, number})
		}
		if last.job.Attempt = number; last.job.Start > 0 {
			last.job.Attempt++
		}
		if err := p.give(last.job, last.index); err != nil {
			return err
		}
	}
	p.held = nil
	slices.SortFunc(p.owners, func(a, b owner) int { return cmp.Compare(a.index, b.index) })
	return nil
}

// exitOf takes an exit status as wait(2) gives it apart.
func exitOf(status int64) core.Exit {
	if status < 0 || status >= noVal {
		return core.Exit{}
	}
	return core.Exit{Code: int32(status >> 8 & 0xff), Signal: int32(status & 0x7f)}
}

// moment makes a Time of seconds; Slurm's marks for "none" are none.
func moment(seconds int64) core.Time {
	if seconds <= 0 || seconds >= noVal {
		return 0
	}
	return core.Time(seconds) * 1e6
}

func (p *jobReader) convert(n *numbers) (*core.Job, error) {
	r := n.r
	j := &core.Job{
		ID: core.JobID(n.int("id_job", 0)), State: core.JobState(n.int("state", 0) & stateMask),
		Priority: uint32(clamp(n.int("priority", 0))), Submit: moment(n.int("time_submit", 0)),
		Eligible: moment(n.int("time_eligible", 0)), Start: moment(n.int("time_start", 0)),
		End: moment(n.int("time_end", 0)), Exit: exitOf(n.int("exit_code", 0)), Message: r.Text("system_comment"),
		PausedFor: time.Duration(clamp(n.int("time_suspended", 0))) * time.Second,
	}
	j.SpecID = j.ID
	if n.int("state", 0)&requeuedFlag != 0 && !j.State.Final() {
		j.State = core.Pending // Remember's word for one that was sent back while it ran
	}
	assoc := n.int("id_assoc", 0)
	tres, ok := parseTRES(r.Text("tres_alloc"), p.db.tres)
	if !ok {
		return nil, fmt.Errorf("column tres_alloc: %q is no list of resources", r.Text("tres_alloc"))
	}
	if err := p.spec(n, j); err != nil {
		return nil, err
	}
	if j.Start > 0 {
		j.Attempt = 1
		alloc, err := allocation(r.Text("nodelist"), tres, p.info(n).cpus)
		if err != nil {
			return nil, err
		}
		if j.Alloc = alloc; alloc == nil {
			j.Start, j.Attempt = 0, 0 // it was ended before it had nodes
		} else {
			alloc.Partition = j.Spec.Partition.First()
		}
	}
	p.array(n, j)
	p.stop(n, j)
	p.steps(n, j)
	if j.Start > 0 {
		p.ledger.job(assoc, tres, j.Spec.QOS, int64(j.Start)/1e6, int64(j.End)/1e6)
	}
	return j, n.err
}

// info is what is known of a job's steps.
func (p *jobReader) info(n *numbers) stepInfo {
	i, ok := slices.BinarySearchFunc(p.db.stepInfo, n.int("job_db_inx", 0), func(s stepInfo, index int64) int {
		return cmp.Compare(s.index, index)
	})
	if !ok {
		return stepInfo{}
	}
	return p.db.stepInfo[i]
}

// steps says of a job what it had of steps.
func (p *jobReader) steps(n *numbers, j *core.Job) {
	info := p.info(n)
	j.Steps = info.numbered
	line := n.r.Text("submit_line")
	if !info.batch && !strings.HasPrefix(line, "sbatch") && (j.Start > 0 || line != "") {
		j.Spec.Kind = core.Interactive
	}
	j.Usage = core.Usage{
		User: time.Duration(info.user) * time.Microsecond, Sys: time.Duration(info.sys) * time.Microsecond,
		MaxRSS: core.Bytes(info.rss),
	}
}

// spec makes what is known of what a job asked for.
func (p *jobReader) spec(n *numbers, j *core.Job) error {
	r := n.r
	s := &core.Spec{
		Name: r.Text("job_name"), UID: uint32(n.int("id_user", 0)), GID: uint32(n.int("id_group", 0)),
		Project: core.ProjectName(r.Text("account")), Partition: core.ParsePartitions(r.Text("partition")),
		QOS: p.db.qosNames[n.int("id_qos", 0)], Runtime: core.RuntimeProcess, TimeLimit: timeLimit(n.int("timelimit", 0)),
		IO: core.IO{WorkDir: r.Text("work_dir")}, From: core.Origin{Dir: r.Text("work_dir"), Line: r.Text("submit_line")},
	}
	j.Spec = s
	if a := p.db.associations[n.int("id_assoc", 0)]; a != nil {
		s.User = core.UserName(a.user)
		s.Project = cmp.Or(s.Project, core.ProjectName(a.account))
	}
	if s.User != "" {
		p.names[s.UID] = s.User
	} else if s.User = p.names[s.UID]; s.User == "" {
		s.User = core.UserName(strconv.FormatUint(uint64(s.UID), 10))
	}
	asked, ok := parseTRES(r.Text("tres_req"), p.db.tres)
	if !ok {
		return fmt.Errorf("column tres_req: %q is no list of resources", r.Text("tres_req"))
	}
	s.Shape = shapeOf(asked, n.int("cpus_req", 1), n.int("mem_req", 0))
	var x core.Extra
	x.Comment, x.WCKey = r.Text("derived_es"), p.db.wckeys[n.int("id_wckey", 0)]
	if c, err := core.ParseConstraint(r.Text("constraints")); err == nil {
		x.Constraint = c
	}
	if t := r.Text("admin_comment"); t != "" {
		x.Kept = &core.KeptOptions{Slurm: map[string]string{"admin-comment": t}}
	}
	if lead, offset := n.int("het_job_id", 0), n.int("het_job_offset", noVal); lead > 0 && offset < noVal {
		x.Het = &core.HetRef{Lead: core.JobID(lead), Offset: int32(offset), Count: int32(offset) + 1}
	}
	s.Extra = &x
	return nil
}

// shapeOf spreads what a job asked for over its nodes.
func shapeOf(asked core.TRES, cpus, mem int64) core.Shape {
	nodes := max(1, asked.Count("node"))
	s := core.Shape{NodesMin: int32(nodes), NodesMax: int32(nodes), Tasks: int32(max(1, asked.Count("cpu"), clamp(cpus)))}
	s.CPUsPerTask = 1
	const perCPU = -1 << 63 // the highest bit says that it is for each CPU
	if mem != noVal64 && mem != infinite64 {
		if mem&perCPU != 0 {
			s.MemPerCPU = core.Bytes(mem&^perCPU) * core.MiB
		} else {
			s.MemPerNode = core.Bytes(mem) * core.MiB
		}
	}
	s.Gres = gresOf(asked, nodes)
	return s
}

// gresOf lists generic resources for each node. Where a type is named, the sum of all types is left out.
func gresOf(t core.TRES, nodes int64) (out []core.Gres) {
	for _, a := range t {
		name, ok := strings.CutPrefix(a.Name, "gres/")
		if !ok || a.Count <= 0 {
			continue
		}
		kind, typ, typed := strings.Cut(name, ":")
		if typed {
			out = slices.DeleteFunc(out, func(g core.Gres) bool { return g.Name == kind && g.Type == "" })
		}
		out = append(out, core.Gres{Name: kind, Type: typ, Count: max(1, a.Count/nodes)})
	}
	return out
}

func timeLimit(minutes int64) core.Seconds {
	switch {
	case minutes == infinite || minutes == noVal:
		return core.Forever
	case minutes <= 0:
		return 0
	}
	return core.Seconds(minutes * 60)
}

// maxNodes bounds how many nodes a job may have had.
const maxNodes = 1 << 17

// allocation spreads what a job had over its nodes: how much was on which is not in the database, but for the CPUs of
// the first, which the batch step had (0: it is not known).
func allocation(nodes string, tres core.TRES, first int64) (*core.Alloc, error) {
	if nodes == "" || strings.EqualFold(nodes, "none assigned") || nodes == "(null)" {
		return nil, nil
	}
	names, err := hostlist.Expand(nodes, maxNodes)
	if err != nil {
		return nil, fmt.Errorf("column nodelist: %w", err)
	}
	count := int64(len(names))
	cpus, mem, gres := tres.Count("cpu"), tres.Count("mem"), gresOf(tres, count)
	cpusOf := func(k int64) int64 { return cpus*(k+1)/count - cpus*k/count }
	if rest := cpus - first; first > 0 && count > 1 && rest >= count-1 {
		cpusOf = func(k int64) int64 {
			if k == 0 {
				return first
			}
			return rest*k/(count-1) - rest*(k-1)/(count-1)
		}
	}
	a := &core.Alloc{Nodes: make([]core.NodeAlloc, count)}
	given := int64(0) // CPUs; memory follows them
	for i := range a.Nodes {
		k := int64(i)
		n := &a.Nodes[i]
		n.Node, n.Done = core.NodeName(names[i]), true
		c := cpusOf(k)
		n.CPUs = int32(c)
		n.Mem = core.Bytes(mem*(given+c)/max(1, cpus)-mem*given/max(1, cpus)) * core.MiB
		given += c
		n.Tasks = n.CPUs
		for _, g := range gres {
			units := make([]int32, min(g.Count, 1<<10))
			for u := range units {
				units[u] = int32(u)
			}
			n.Gres = append(n.Gres, core.GresAlloc{Name: g.Name, Type: g.Type, Units: units})
		}
	}
	return a, nil
}

func (p *jobReader) array(n *numbers, j *core.Job) {
	base := n.int("id_array_job", 0)
	if base <= 0 {
		return
	}
	a := &core.ArrayRef{Base: core.JobID(base), Count: 1, Step: 1}
	if task := n.int("id_array_task", noVal); task < noVal {
		a.Task, a.Min, a.Max = int32(task), int32(task), int32(task)
	}
	if text, _, _ := strings.Cut(n.r.Text("array_task_str"), "%"); text != "" && j.Start == 0 {
		if set, err := taskset.Parse(strings.Trim(text, "[]")); err == nil {
			a.Tasks, a.Count = set, int32(set.Len())
		}
	}
	if a.Tasks.Len() == 0 && n.int("id_array_task", noVal) >= noVal {
		return
	}
	j.Array = a
}

func (p *jobReader) stop(n *numbers, j *core.Job) {
	by := n.int("kill_requid", infinite)
	if j.State != core.Cancelled || by < 0 || by >= noVal {
		return
	}
	j.Stop = &core.Stop{By: p.names[uint32(by)], UID: uint32(by), At: j.End, As: core.Cancelled}
}

func (p *jobReader) step(r *sqldump.Row) error {
	n := &numbers{r: r}
	id := int64(int32(n.int("id_step", 0)))
	if id < 0 || n.int("deleted", 0) != 0 {
		return n.err
	}
	index := n.int("job_db_inx", 0)
	i, ok := slices.BinarySearchFunc(p.owners, index, func(o owner, x int64) int { return cmp.Compare(o.index, x) })
	if !ok {
		return n.err // of a job that is not taken over
	}
	tres, ok := parseTRES(r.Text("tres_alloc"), p.db.tres)
	if !ok {
		return fmt.Errorf("column tres_alloc: %q is no list of resources", r.Text("tres_alloc"))
	}
	nodes, err := hostlist.Expand(r.Text("nodelist"), maxNodes)
	if err != nil {
		return fmt.Errorf("column nodelist: %w", err)
	}
	s := &core.Step{
		Job: core.JobID(p.owners[i].job), Attempt: p.owners[i].attempt, ID: int32(id), Name: r.Text("step_name"),
		State: core.JobState(n.int("state", 0) & stateMask), CPUs: int32(tres.Count("cpu")),
		Mem: core.Bytes(tres.Count("mem")) * core.MiB, Gres: gresOf(tres, 1), Start: moment(n.int("time_start", 0)),
		End: moment(n.int("time_end", 0)), Exit: exitOf(n.int("exit_code", 0)),
		Usage: core.Usage{
			User:   time.Duration(n.int("user_sec", 0)*1e6+n.int("user_usec", 0)) * time.Microsecond,
			Sys:    time.Duration(n.int("sys_sec", 0)*1e6+n.int("sys_usec", 0)) * time.Microsecond,
			MaxRSS: core.Bytes(usageIn(r.Text("tres_usage_in_max"), memTRES)),
		},
	}
	if !s.State.Final() || int(s.State) > int(core.OutOfMemory) {
		s.State = core.Cancelled // its job has ended, and nobody reported its end
	}
	tasks := clamp(n.int("task_cnt", 1))
	for k, name := range nodes {
		s.Nodes = append(s.Nodes, core.NodeName(name))
		count := int64(len(nodes))
		s.Tasks = append(s.Tasks, int32(tasks*int64(k+1)/count-tasks*int64(k)/count))
	}
	if n.err != nil {
		return n.err
	}
	return p.sink.Step(s)
}
