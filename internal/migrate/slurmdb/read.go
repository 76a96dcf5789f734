package slurmdb

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/migrate/sqldump"
)

// Options say what to read.
type Options struct {
	Cluster  string // empty: the only one
	Progress func(bytes int64)
}

// reader is pass one.
type reader struct {
	clusters map[string]*cluster
	accounts map[string]*core.Project
	users    []userRow
	coords   [][2]string // account, user
	qos      []qosRow
	tres     map[int64]string
	pending  []func() error // what needs the names of resources, which come later in the dump
}

// Read reads everything but the jobs, and counts and checks these.
func Read(r io.Reader, o Options) (*Database, error) {
	p := &reader{clusters: map[string]*cluster{}, accounts: map[string]*core.Project{}, tres: map[int64]string{}}
	err := sqldump.Read(r, sqldump.Handler{
		Wants: func(table string) bool { return p.take(table) != nil }, Row: p.row, Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	name, err := p.choose(o.Cluster)
	if err != nil {
		return nil, err
	}
	for _, f := range p.pending {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return p.build(name)
}

// suffixes are the tables that each cluster has, after its name; the longer ones first.
var suffixes = []struct {
	name string
	take func(*reader, *cluster, *sqldump.Row) error
}{
	{"_assoc_usage_hour_table", usageTaker(0)},
	{"_assoc_usage_day_table", usageTaker(1)},
	{"_assoc_usage_month_table", usageTaker(2)},
	{"_wckey_table", (*reader).wckey},
	{"_last_ran_table", (*reader).lastRan},
	{"_assoc_table", (*reader).association},
	{"_job_table", (*reader).job},
	{"_step_table", (*reader).step},
	{"_event_table", countTaker("node events")},
	{"_resv_table", countTaker("reservations")},
}

// tables are those of the whole database.
var tables = map[string]func(*reader, *sqldump.Row) error{
	"acct_table": (*reader).account, "user_table": (*reader).user, "acct_coord_table": (*reader).coordinator,
	"qos_table": (*reader).qosRow, "tres_table": (*reader).tresRow,
}

// take finds who takes the rows of a table; nil: nobody.
func (p *reader) take(table string) func(*sqldump.Row) error {
	if f := tables[table]; f != nil {
		return func(r *sqldump.Row) error { return f(p, r) }
	}
	for i := range suffixes {
		s := &suffixes[i]
		name, ok := strings.CutSuffix(table, s.name)
		if !ok || name == "" {
			continue
		}
		c := p.clusters[name]
		if c == nil {
			c = &cluster{
				wckeys: map[int64]string{}, ofUser: map[string][]string{}, defaults: map[string]string{},
				other: map[string]int64{},
			}
			p.clusters[name] = c
		}
		return func(r *sqldump.Row) error { return s.take(p, c, r) }
	}
	return nil
}

func (p *reader) row(r *sqldump.Row) error { return p.take(r.Table.Name)(r) }

// choose finds the cluster that is meant.
func (p *reader) choose(name string) (string, error) {
	var names []string
	for n, c := range p.clusters {
		if len(c.assocs) > 0 || len(c.jobs) > 0 || c.open > 0 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "", errors.New("there is no table CLUSTER_assoc_table with rows: this is no database of slurmdbd")
	case name == "" && len(names) > 1:
		return "", fmt.Errorf("the database holds several clusters (%s): say which with --cluster", strings.Join(names, ", "))
	case name == "":
		return names[0], nil
	case !slices.Contains(names, name):
		return "", fmt.Errorf("the database holds no cluster %q, but %s", name, strings.Join(names, ", "))
	}
	return name, nil
}

// numbers reads several columns; the first error stays.
type numbers struct {
	r   *sqldump.Row
	err error
}

func (n *numbers) int(column string, otherwise int64) int64 {
	v, err := n.r.Int(column, otherwise)
	if err != nil && n.err == nil {
		n.err = err
	}
	return v
}

func (n *numbers) float(column string, otherwise float64) float64 {
	v, err := n.r.Float(column, otherwise)
	if err != nil && n.err == nil {
		n.err = err
	}
	return v
}

// limit is a count that may be missing, or say that there is none.
func (n *numbers) limit(column string) *int64 {
	v := n.int(column, -1)
	if v < 0 || v == infinite || v == noVal {
		return nil
	}
	return &v
}

// later reads a column of resources when their names are known.
func (p *reader) later(r *sqldump.Row, column string, into *core.TRES) {
	text := r.Text(column)
	if text == "" {
		return
	}
	table, line, offset := r.Table.Name, r.Line, r.Offset
	p.pending = append(p.pending, func() error {
		t, ok := parseTRES(text, p.tres)
		if !ok {
			return &sqldump.Error{
				Line: line, Offset: offset,
				Err: fmt.Errorf("table %s: column %s: %q is no list of resources", table, column, text),
			}
		}
		*into = t
		return nil
	})
}

func need(r *sqldump.Row, columns ...string) error {
	for _, c := range columns {
		if !r.Has(c) {
			return fmt.Errorf("it has no column %q: a database of a version that is not known", c)
		}
	}
	return nil
}

func (p *reader) tresRow(r *sqldump.Row) error {
	n := numbers{r: r}
	id := n.int("id", 0)
	name := r.Text("type")
	if sub := r.Text("name"); sub != "" {
		name += "/" + sub
	}
	p.tres[id] = strings.ToLower(name)
	return errors.Join(n.err, need(r, "id", "type", "name"))
}

func (p *reader) account(r *sqldump.Row) error {
	n := numbers{r: r}
	if n.int("deleted", 0) == 0 {
		name := r.Text("name")
		p.accounts[name] = &core.Project{
			Name: core.ProjectName(name), Description: r.Text("description"),
			Organization: r.Text("organization"),
		}
	}
	return errors.Join(n.err, need(r, "name"))
}

func (p *reader) user(r *sqldump.Row) error {
	n := numbers{r: r}
	if n.int("deleted", 0) == 0 {
		p.users = append(p.users, userRow{r.Text("name"), n.int("admin_level", 1)})
	}
	return errors.Join(n.err, need(r, "name", "admin_level"))
}

func (p *reader) coordinator(r *sqldump.Row) error {
	n := numbers{r: r}
	if n.int("deleted", 0) == 0 {
		p.coords = append(p.coords, [2]string{r.Text("acct"), r.Text("user")})
	}
	return errors.Join(n.err, need(r, "acct", "user"))
}

func (p *reader) wckey(c *cluster, r *sqldump.Row) error {
	n := numbers{r: r}
	name, user := r.Text("wckey_name"), r.Text("user")
	c.wckeys[n.int("id_wckey", 0)] = name
	if n.int("deleted", 0) == 0 && name != "" && user != "" {
		c.ofUser[user] = append(c.ofUser[user], name)
		if n.int("is_def", 0) != 0 {
			c.defaults[user] = name
		}
	}
	return n.err
}

func (p *reader) lastRan(c *cluster, r *sqldump.Row) error {
	n := numbers{r: r}
	c.rolled = n.int("hourly_rollup", 0)
	return n.err
}

func usageTaker(i int) func(*reader, *cluster, *sqldump.Row) error {
	return func(_ *reader, c *cluster, r *sqldump.Row) error {
		n := numbers{r: r}
		u := usageRow{n.int("id", 0), n.int("id_tres", 1), n.int("time_start", 0), n.int("alloc_secs", 0)}
		if n.int("deleted", 0) == 0 && u.seconds > 0 {
			c.usage[i] = append(c.usage[i], u)
		}
		return errors.Join(n.err, need(r, "id", "time_start", "alloc_secs"))
	}
}

func countTaker(what string) func(*reader, *cluster, *sqldump.Row) error {
	return func(_ *reader, c *cluster, _ *sqldump.Row) error {
		c.other[what]++
		return nil
	}
}

// job counts a job; Jobs reads it.
func (p *reader) job(c *cluster, r *sqldump.Row) error {
	n := numbers{r: r}
	id, end, state := n.int("id_job", 0), n.int("time_end", 0), n.int("state", 0)
	if n.err == nil && (id < 1 || id > 1<<53) {
		n.err = fmt.Errorf("column id_job: %d is no job id", id)
	}
	if n.int("deleted", 0) != 0 {
		return n.err
	}
	if c.max = max(c.max, id, n.int("id_array_job", 0)); end == 0 || !ended(state) {
		c.open++
	} else {
		c.jobs = append(c.jobs, jobKey{id, n.int("job_db_inx", 0)})
	}
	return errors.Join(n.err,
		need(r, "id_job", "job_db_inx", "state", "time_submit", "time_start", "time_end", "exit_code",
			"id_assoc", "tres_alloc", "nodelist"))
}

// stateMask takes flags such as "requeued" off a state; those of resized jobs and the like stay unknown.
const stateMask = 0xff

// requeued is the state of an attempt that somebody sent back to the queue (JOB_REQUEUE).
const requeuedFlag = 0x400

func ended(state int64) bool {
	return core.JobState(state&stateMask).Final() && state&stateMask <= int64(core.OutOfMemory) || state&requeuedFlag != 0
}

// batchStep is the number of a job's batch step. Others below 0 (extern, interactive) have no record here.
const batchStep = -5

// step keeps what the records of jobs need of their steps.
func (p *reader) step(c *cluster, r *sqldump.Row) error {
	n := numbers{r: r}
	id, index := int64(int32(n.int("id_step", 0))), n.int("job_db_inx", 0)
	if n.int("deleted", 0) != 0 || id < 0 && id != batchStep {
		return n.err
	}
	if k := len(c.stepInfo); k == 0 || c.stepInfo[k-1].index != index {
		c.stepInfo = append(c.stepInfo, stepInfo{index: index})
	}
	info := &c.stepInfo[len(c.stepInfo)-1]
	if id >= 0 {
		c.steps++
		info.numbered++
	} else {
		info.batch = true
		info.user = n.int("user_sec", 0)*1e6 + n.int("user_usec", 0)
		info.sys = n.int("sys_sec", 0)*1e6 + n.int("sys_usec", 0)
		info.cpus = usageIn(r.Text("tres_alloc"), cpuTRES)
		info.rss = usageIn(r.Text("tres_usage_in_max"), memTRES)
	}
	return errors.Join(n.err, need(r, "job_db_inx", "id_step"))
}

// The numbers of CPUs and memory among resources; Slurm fixes them.
const (
	cpuTRES = 1
	memTRES = 2
)
