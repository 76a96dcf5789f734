package scontrol

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/procstat"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

// hostView is the commands about the machine they are called on.
type hostView struct{ *session }

func ofHost(run func(hostView, context.Context, []string) int) verb {
	return func(s *session, ctx context.Context, args []string) int { return run(hostView{s}, ctx, args) }
}

// isHost reports whether two names are of one machine; the domain need not be there.
func isHost(a, b string) bool {
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return a != "" && a == b
}

// here is the node of this machine, or the one of a name; nil: there is none.
func (s hostView) here(ctx context.Context, name string) (*client.Node, error) {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return nil, err
	}
	name = cmp.Or(name, s.w.Getenv("SLURMD_NODENAME"))
	for i := range nodes {
		if n := &nodes[i]; string(n.Name) == name || name == "" && isHost(n.Host.Hostname, s.w.Host) {
			return n, nil
		}
	}
	return nil, nil
}

// showDaemons lists the daemons that run on this machine, in Slurm's words.
func (s hostView) showDaemons(ctx context.Context, args []string) int {
	if len(args) > 0 {
		fmt.Fprintln(s.w.Err, "too many arguments for keyword:show")
		return slurm.ExitError
	}
	c, err := s.client()
	var info *client.Cluster
	if err == nil {
		info, err = c.Cluster(ctx)
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_ctl_conf error", err)
	}
	list := ""
	if isHost(info.Server, s.w.Host) {
		list = "slurmctld "
	}
	n, err := s.here(ctx, "")
	if err != nil && core.CodeOf(err) != core.Denied { // nodes may be private
		return s.w.LoadFailed("slurm_load_node error", err)
	}
	if n != nil {
		list += "slurmd "
	}
	fmt.Fprintln(s.w.Out, list)
	return 0
}

// showAgent shows how the agent of this machine is.
func (s hostView) showAgent(ctx context.Context, args []string) int {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	n, err := s.here(ctx, name)
	if err != nil {
		return s.w.LoadFailed("slurm_load_slurmd_status", err)
	}
	if n == nil || !n.Connected {
		fmt.Fprintln(s.w.Err, "slurm_load_slurmd_status: Connection refused")
		return slurm.ExitError
	}
	list, err := s.c.Jobs(ctx, client.JobsQuery{Nodes: []string{string(n.Name)}})
	var rows []report.StepRow
	if err == nil {
		rows, err = cmd.Steps(ctx, s.c, list)
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_slurmd_status", err)
	}
	var steps []string
	for i := range rows {
		if r := &rows[i]; !r.State().Final() && onNode(r, string(n.Name)) {
			steps = append(steps, r.ID())
		}
	}
	h := &n.Hardware
	for _, line := range []struct{ name, value string }{
		{"Active Steps", cmp.Or(strings.Join(steps, ","), "NONE")},
		{"Actual CPUs", strconv.Itoa(int(h.CPUs))},
		{"Actual Boards", "1"},
		{"Actual sockets", strconv.Itoa(int(h.Sockets))},
		{"Actual cores", strconv.Itoa(int(h.Cores))},
		{"Actual threads per core", strconv.Itoa(int(h.Threads))},
		{"Actual real memory", fmt.Sprintf("%d MB", h.Memory/core.MiB)},
		{"Actual temp disk space", fmt.Sprintf("%d MB", h.TmpDisk/core.MiB)},
		{"Boot time", report.TimeText(n.Host.AgentStart, "Unknown")},
		{"Hostname", string(n.Name)},
		{"Last slurmctld msg time", report.TimeText(n.LastHeard, "Unknown")},
		{"Slurmd PID", agentPID()},
		{"Slurmd Debug", "3"},        // info, as agents log
		{"Slurmd Logfile", "(null)"}, // standard error
		{"Version", cmd.Version},
	} {
		fmt.Fprintf(s.w.Out, "%-24s = %s\n", line.name, line.value)
	}
	return 0
}

// onNode reports whether a step runs on a node.
func onNode(r *report.StepRow, name string) bool {
	names, err := cmd.Hosts(r.NodeList())
	return err == nil && slices.Contains(names, name)
}

// agentPID is the process of this machine's agent; 0: it cannot be seen.
func agentPID() string {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return "0"
	}
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if err == nil && bytes.Contains(line, []byte("biremed\x00agent")) {
			return d.Name()
		}
	}
	return "0"
}

// pidInfo says which job a process of this machine belongs to and how long that has left. What a job's processes
// have in their environment says so.
func (s hostView) pidInfo(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "missing argument for keyword:pidinfo")
		return slurm.ExitError
	}
	if s.tooMany(args, 1) {
		return slurm.ExitError
	}
	id := jobOf(args[0])
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list := &client.JobList{}
	if id != "" {
		list, err = c.Job(ctx, id)
	}
	if err != nil || len(list.Jobs) == 0 || list.Jobs[0].State.Final() {
		fmt.Fprintln(s.w.Err, "Failed to locate job for requested pid")
		return slurm.ExitError
	}
	j := &list.Jobs[0]
	limit := j.Spec.TimeLimit
	if limit <= 0 || limit >= core.Forever {
		fmt.Fprintf(s.w.Out, "Slurm JobId=%d ends at UNLIMITED\n", j.ID)
		return 0
	}
	end := j.Start.Add(limit.Duration())
	fmt.Fprintf(s.w.Out, "Slurm JobId=%d ends at %s\n", j.ID, end.Go().Local().Format("Mon Jan _2 15:04:05 2006"))
	fmt.Fprintf(s.w.Out, "Job remaining time is %d seconds\n", int64(max(0, end.Sub(core.At(s.w.Now())).Seconds())))
	return 0
}

// jobOf is the job that a process belongs to; empty: none, or it cannot be seen.
func jobOf(pid string) string {
	if _, err := strconv.ParseUint(pid, 10, 31); err != nil {
		return ""
	}
	data, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return ""
	}
	for v := range bytes.SplitSeq(data, []byte{0}) {
		if id, ok := bytes.CutPrefix(v, []byte("SLURM_JOB_ID=")); ok {
			return string(id)
		}
	}
	return ""
}

// listPIDs lists the processes of steps on this machine or a node: listpids [JOB[.STEP] [NODE]].
func (s hostView) listPIDs(ctx context.Context, args []string) int {
	if s.tooMany(args, 2) {
		return slurm.ExitError
	}
	job, step, node := "", "", ""
	if len(args) > 0 && args[0] != "*" {
		job, step, _ = strings.Cut(args[0], ".")
		if _, err := strconv.ParseUint(job, 10, 63); err != nil {
			fmt.Fprintf(s.w.Err, "\"%s\" does not look like a jobid\n", args[0])
			return slurm.ExitError
		}
	}
	if len(args) > 1 {
		node = args[1]
	}
	n, err := s.here(ctx, node)
	if err != nil {
		return s.w.LoadFailed("slurm_load_node error", err)
	}
	fmt.Fprintf(s.w.Out, "%-8s %-8s %-8s %-7s %-8s\n", "PID", "JOBID", "STEPID", "LOCALID", "GLOBALID")
	found := false
	if n != nil {
		node = string(n.Name)
		if found, err = s.printPIDs(ctx, n.Name, job, step); err != nil {
			return s.w.LoadFailed("slurm_get_job_steps error", err)
		}
	}
	node = cmp.Or(node, "(null)")
	switch {
	case found:
		return 0
	case job == "":
		fmt.Fprintln(s.w.Err, "No job steps exist on this node.")
	case step != "":
		fmt.Fprintf(s.w.Err, "StepId=%s.%s does not exist on node %s.\n", job, step, node)
	default:
		fmt.Fprintf(s.w.Err, "JobId=%s does not exist on node %s.\n", job, node)
	}
	return slurm.ExitError
}

// printPIDs prints the processes of the steps of a node that are asked for.
func (s hostView) printPIDs(ctx context.Context, node core.NodeName, job, step string) (found bool, err error) {
	q := client.JobsQuery{Nodes: []string{string(node)}}
	if job != "" {
		q.IDs = []string{job}
	}
	list, err := s.c.Jobs(ctx, q)
	if core.CodeOf(err) == core.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	rows, err := cmd.Steps(ctx, s.c, list)
	if err != nil {
		return false, err
	}
	for i := range rows {
		r := &rows[i]
		id, name, _ := strings.Cut(r.ID(), ".")
		if r.State().Final() || step != "" && name != step {
			continue
		}
		use, err := s.c.StepUsage(ctx, strconv.FormatInt(int64(r.Job.ID), 10), name)
		if err != nil {
			continue // it ended, or is another's
		}
		for k := range use.Nodes {
			if u := &use.Nodes[k]; u.Node == node && len(u.PIDs) > 0 {
				s.printStep(id, name, u)
				found = true
			}
		}
	}
	return found, nil
}

func (s hostView) printStep(job, step string, u *client.NodeUsage) {
	first := leaders(u.PIDs)
	for _, pid := range u.PIDs {
		local, global := "-", "-"
		if at := slices.Index(first, pid); at >= 0 && (len(first) == len(u.Tasks) || len(u.Tasks) == 0 && at == 0) {
			local, global = strconv.Itoa(at), strconv.Itoa(at)
			if len(u.Tasks) > 0 {
				global = strconv.Itoa(u.Tasks[at].Task)
			}
		}
		fmt.Fprintf(s.w.Out, "%-8d %-8s %-8s %-7s %-8s\n", pid, job, step, local, global)
	}
}

// leaders are the processes that none of the others started, which are the tasks themselves. On another machine that
// cannot be seen: then it is the first.
func leaders(pids []int) (out []int) {
	pids = slices.Sorted(slices.Values(pids))
	for _, pid := range pids {
		stat, ok := procstat.Read("/proc", pid)
		if !ok {
			return pids[:1]
		}
		if !slices.Contains(pids, int(stat.Number(procstat.Parent))) {
			out = append(out, pid)
		}
	}
	return out
}
