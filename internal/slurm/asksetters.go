package slurm

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
)

// The options that say for whom and where a job is asked for, and how much is said about it.

// uid names the user the job belongs to, by name or number. Whether the caller may is the server's to say.
func uid(r *Request, v string) error {
	if n, err := strconv.ParseUint(v, 10, 32); err == nil {
		if _, err := account.ByUID(uint32(n)); err != nil {
			return r.invalid("uid")
		}
	} else if _, err := account.ByName(v); err != nil {
		return r.invalid("uid")
	}
	r.Spec.User = core.UserName(v)
	return nil
}

// gid names the group a job runs with, for administrators.
func gid(r *Request, v string) error {
	_, err := account.GroupByName(v)
	if n, bad := strconv.ParseUint(v, 10, 32); err != nil && bad == nil {
		_, err = account.GroupByGID(uint32(n))
	}
	if err != nil {
		return r.invalid("gid")
	}
	r.extra.Keep().Group = v
	return nil
}

func clusters(r *Request, v string) error {
	r.Ask.Clusters = nil
	for w := range strings.SplitSeq(v, ",") {
		if w = strings.TrimSpace(w); w != "" {
			r.Ask.Clusters = append(r.Ask.Clusters, w)
		}
	}
	return nil
}

// acctgFreq reads how often usage is sampled: seconds, or a list such as task=30,network=60.
func acctgFreq(r *Request, v string) error {
	for item := range strings.SplitSeq(v, ",") {
		name, n, ok := strings.Cut(strings.ToLower(item), "=")
		if !ok {
			name, n = "task", item
		}
		if _, err := strconv.ParseUint(n, 10, 31); err != nil || !contains([]string{
			"task", "energy", "network", "filesystem",
		}, name) {
			return r.Fail(ExitUsage, "Invalid --acctg-freq specification: %s", v)
		}
	}
	r.keepOption("acctg-freq", v)
	return nil
}

// verbose counts each -v; a variable says how many.
func verbose(r *Request, v string) error {
	if n, err := strconv.Atoi(v); err == nil {
		r.Ask.Verbose = n
		return nil
	}
	r.Ask.Verbose++
	return nil
}

// finishOvercommit lets one CPU a node do for all its tasks, as Slurm: their number is kept for the script and its
// steps.
func (r *Request) finishOvercommit() {
	s := &r.Spec.Shape
	if !r.Given("overcommit") || s.Tasks <= max(1, s.NodesMin) {
		return
	}
	r.keepOption("ntasks", strconv.Itoa(int(s.Tasks)))
	if s.TasksPerNode > 0 {
		r.keepOption("ntasks-per-node", strconv.Itoa(int(s.TasksPerNode)))
	}
	r.Step.tasks, r.Step.tasksPerNode = s.Tasks, s.TasksPerNode
	if m := s.More; m != nil && len(m.GPUsPerTask) > 0 { // the job has the GPUs of all its tasks
		r.Step.GPUsPerTask = m.GPUsPerTask
		m.GPUs = nil
		for _, g := range m.GPUsPerTask {
			g.Count *= int64(s.Tasks)
			m.GPUs = append(m.GPUs, g)
		}
		m.GPUsPerTask = nil
	}
	s.Tasks = max(1, s.NodesMin)
	s.TasksPerNode = 0
}

// Tasks are the tasks of srun's step, in all and on a node: with --overcommit the shape has fewer. 0: not given.
func (w *StepWish) Tasks(s *core.Shape) (all, perNode int32) {
	all, perNode = s.Tasks, s.TasksPerNode
	if w.tasks > 0 {
		all, perNode = w.tasks, w.tasksPerNode
	}
	if s.Given&core.GivenTasks == 0 {
		all = 0
	}
	if s.Given&core.GivenTasksPerNode == 0 {
		perNode = 0
	}
	return all, perNode
}

// finishSwitches adds how long to wait for --switches, where a variable says so and the option does not.
func (r *Request) finishSwitches() {
	if text := r.extra.Switches.String(); r.wait4switch != "" && text != "" && !strings.Contains(text, "@") {
		r.extra.Switches, _ = core.ParseSwitchLimit(text + "@" + r.wait4switch)
	}
}
