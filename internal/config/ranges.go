package config

import (
	"fmt"
	"math"
	"path/filepath"
)

// maxFactor is the most that Slurm takes for a partition's tier and factor.
const maxFactor = 65533

// within notes a number that is not between two others.
func (d *decoder) within(path string, n, least, most int64) {
	switch {
	case n >= least && n <= most:
	case most == math.MaxInt64 || most == math.MaxInt32:
		d.at(path, "%d: must not be less than %d", n, least)
	default:
		d.at(path, "%d is not between %d and %d", n, least, most)
	}
}

// absolute notes a path that depends on where a daemon runs. Empty: there is none.
func (d *decoder) absolute(path, value string) {
	if value != "" && !filepath.IsAbs(value) {
		d.at(path, "%q is not an absolute path", value)
	}
}

// checkNumbers looks at the numbers of partitions and nodes.
func (d *decoder) checkNumbers(c *Config) {
	for i := range c.Partitions {
		p, path := &c.Partitions[i], fmt.Sprintf("partitions[%d].", i)
		d.within(path+"priority_tier", int64(p.PriorityTier), 0, maxFactor)
		d.within(path+"priority_factor", int64(p.PriorityFactor), 0, maxFactor)
		d.within(path+"max_nodes", int64(p.MaxNodes), 0, math.MaxInt32)
		d.within(path+"min_nodes", int64(p.MinNodes), 0, math.MaxInt32)
		d.within(path+"default_mem_per_cpu", int64(p.DefMemPerCPU), 0, math.MaxInt64)
		d.within(path+"max_mem_per_node", int64(p.MaxMemPerNode), 0, math.MaxInt64)
	}
	for i := range c.Nodes {
		n, path := &c.Nodes[i], fmt.Sprintf("nodes[%d].", i)
		d.within(path+"weight", int64(n.Weight), 0, math.MaxInt32)
		d.within(path+"sockets", int64(n.Sockets), 0, math.MaxInt32)
		d.within(path+"cores", int64(n.Cores), 0, math.MaxInt32)
		d.within(path+"threads", int64(n.Threads), 0, math.MaxInt32)
		d.within(path+"tmp_disk", int64(n.TmpDisk), 0, math.MaxInt64)
	}
	d.within("jobs.max_requeues", int64(c.Jobs.MaxRequeues), 0, math.MaxInt32)
	for path, text := range map[string]string{
		"jobs.requeue_exit": c.Jobs.RequeueExit, "jobs.requeue_exit_hold": c.Jobs.RequeueExitHold,
	} {
		if _, err := ParseExitCodes(text); err != nil {
			d.at(path, "%v", err)
		}
	}
	d.within("jobs.max_jobs", c.Jobs.MaxJobs, 1, math.MaxInt64)
	d.within("jobs.default_mem_per_cpu", int64(c.Jobs.DefMemPerCPU), 0, math.MaxInt64)
}

// checkPaths looks at the paths of files and programs, which nodes and the server use from wherever they run.
func (d *decoder) checkPaths(c *Config) {
	d.checkKeptLimits(c)
	d.checkSubmit(c)
	for _, l := range []struct {
		path string
		list []string
	}{
		{"step.prolog", c.Step.Prolog},
		{"step.epilog", c.Step.Epilog},
		{"step.task_prolog", c.Step.TaskProlog},
		{"step.task_epilog", c.Step.TaskEpilog},
	} {
		for i, p := range l.list {
			if p == "" {
				d.at(fmt.Sprintf("%s[%d]", l.path, i), "expected the path of a program")
			}
			d.absolute(fmt.Sprintf("%s[%d]", l.path, i), p)
		}
	}
	d.absolute("step.srun_prolog", c.Step.SrunProlog)
	d.absolute("step.srun_epilog", c.Step.SrunEpilog)
	d.absolute("step.tmpdir", c.Step.TmpDir)
	d.absolute("server.socket", c.Server.Socket)
	d.absolute("server.seal_key", c.Server.SealKey)
	d.absolute("mail.program", c.Mail.Program)
}
