package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// AcctRow is a row of sacct: a job, or one of its steps.
type AcctRow struct {
	Job     *client.Job
	Step    *StepRow // nil: the job itself
	Derived core.Exit
	Cluster string
	Now     core.Time
}

// AcctField is a column of sacct. Width below zero is left-justified.
type AcctField struct {
	Name  string
	Width int
	Value func(r *AcctRow) string
}

// Formats of sacct.
const (
	AcctFormat      = "jobid,jobname,partition,account,alloccpus,state,exitcode"
	AcctBriefFormat = "jobid,state,exitcode"
	AcctLongFormat  = "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss," +
		"maxrssnode,maxrsstask,averss," +
		"maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed," +
		"state,exitcode," +
		"avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode," +
		"maxdiskreadtask," +
		"avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres,tresusageinave," +
		"tresusageinmax," +
		"tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot," +
		"tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)

// AcctColumn is a field as --format asks for it.
type AcctColumn struct {
	*AcctField
	Width int
}

// ParseAcctFormat reads f1,f2%30,f3%-10; names may be shortened. bad is the first that is no field.
func ParseAcctFormat(format string) (cols []AcctColumn, bad string) {
	for _, word := range strings.Split(format, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		name, width, sized := strings.Cut(word, "%")
		n, err := strconv.Atoi(width)
		sized = sized && err == nil
		add := func(f *AcctField) {
			c := AcctColumn{AcctField: f, Width: f.Width}
			if sized {
				c.Width = n
			}
			cols = append(cols, c)
		}
		if strings.EqualFold(name, "ALL") {
			for i := range NumListedFields {
				add(&AcctFields[i])
			}
			continue
		}
		f := acctField(name)
		if f == nil {
			return nil, name
		}
		add(f)
	}
	return cols, ""
}

func acctField(name string) *AcctField {
	var prefix *AcctField
	for i := range AcctFields {
		f := &AcctFields[i]
		switch {
		case strings.EqualFold(f.Name, name):
			return f
		case prefix == nil && name != "" && len(name) < len(f.Name) && strings.EqualFold(f.Name[:len(name)], name):
			prefix = f
		}
	}
	return prefix
}

// Pad fits a value into the column: cut with a + at the end when it is too long.
func (c *AcctColumn) Pad(v string) string {
	width := max(c.Width, -c.Width)
	if len(v) > width && width > 0 {
		v = column.Cut(v, width-1) + "+"
	}
	if c.Width < 0 {
		return v + strings.Repeat(" ", width-len(v))
	}
	return strings.Repeat(" ", width-len(v)) + v
}

// StateText is the state as sacct writes it.
func (r *AcctRow) StateText() string {
	if r.Step != nil {
		return r.Step.State().String()
	}
	switch s := r.Job.State; {
	case s == core.Cancelled && r.Job.Stop != nil:
		return fmt.Sprintf("CANCELLED by %d", r.Job.Stop.UID)
	case !s.Final() && r.Job.Flags.Has(core.Requeueing):
		return "REQUEUED"
	default:
		return s.String()
	}
}

// State is the state of a step. How a batch step ended follows from its job.
func (r *StepRow) State() core.JobState {
	if r.Step != nil {
		return r.Step.State
	}
	switch s := r.Job.State; s {
	case core.Timeout, core.Preempted, core.DeadlineMissed:
		return core.Cancelled
	default:
		if !s.Final() && r.Job.Flags.Has(core.Requeueing) {
			return core.Cancelled
		}
		return s
	}
}

// ExitOf is how a step ended.
func (r *StepRow) ExitOf() core.Exit {
	if r.Step != nil {
		return r.Step.Exit
	}
	return r.Job.Exit
}

// Exit is the exit of the row. A job that was ended from outside has none of its own: only its batch step has.
func (r *AcctRow) Exit() core.Exit {
	if r.Step != nil {
		return r.Step.ExitOf()
	}
	switch r.Job.State {
	case core.Cancelled, core.Timeout, core.Preempted, core.NodeFail:
		return core.Exit{}
	default:
		if !r.Job.State.Final() {
			return core.Exit{}
		}
		return r.Job.Exit
	}
}

func exitText(e core.Exit) string { return fmt.Sprintf("%d:%d", e.Code, e.Signal) }

func (r *AcctRow) usage() core.Usage {
	switch {
	case r.Step == nil, r.Step.Step == nil:
		return r.Job.Usage
	}
	return r.Step.Step.Usage
}

func (r *AcctRow) start() core.Time {
	if r.Step != nil {
		return r.Step.start()
	}
	return r.Job.Start
}

func (r *AcctRow) end() core.Time {
	if r.Step != nil && r.Step.Step != nil {
		return r.Step.Step.End
	}
	return r.Job.End
}

func (r *AcctRow) elapsed() int64 {
	if r.Step != nil {
		return r.Step.Elapsed()
	}
	return seconds(r.Job.Elapsed(r.Now))
}

func (r *AcctRow) size() size {
	if r.Step == nil {
		return billed(r.Job)
	}
	if r.Step.Step == nil {
		z := size{nodes: 1}
		if a := r.Job.Alloc; a != nil && len(a.Nodes) > 0 {
			one := core.Job{Spec: r.Job.Spec, Alloc: &core.Alloc{Nodes: a.Nodes[:1]}}
			z = held(&one)
		}
		return z
	}
	return r.Step.size()
}

// startText is the start as sacct writes it: None for a job that ended without one.
func (r *AcctRow) startText() string {
	if r.Job.Alloc == nil && r.Job.State.Final() {
		return "None"
	}
	return TimeText(r.start(), "Unknown")
}

func (r *AcctRow) nodeList() string {
	if r.Step != nil {
		return r.Step.NodeList()
	}
	return cmp.Or(client.AllocList(r.Job.Alloc), "None assigned")
}

// cpuTime writes user or system time: [D-][HH:]MM:SS.mmm, as sacct.
func cpuTime(d time.Duration) string {
	s := int64(d / time.Second)
	ms := int64(d % time.Second / time.Millisecond)
	switch {
	case s >= 3600:
		return grammar.FormatClock(s)
	default:
		return fmt.Sprintf("%02d:%02d.%03d", s/60, s%60, ms)
	}
}

// kib writes memory as sacct does: 3176K.
func kib(b core.Bytes) string {
	if b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(b/core.KiB), 10) + "K"
}

// Worse is the one of two exits that counts for a whole: a signal before a code, the higher before the lower.
func Worse(a, b core.Exit) core.Exit {
	if b.Signal > a.Signal || b.Signal == a.Signal && b.Code > a.Code {
		return b
	}
	return a
}
