package scontrol

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

// entities are what show knows, in the order in which short forms find them.
var entities = []struct {
	names []string
	run   func(s *session, ctx context.Context, args []string) int
}{
	{[]string{"jobs", "jobid", "job"}, (*session).showJobs},
	{[]string{"nodes", "nodename", "node"}, (*session).showNodes},
	{[]string{"partitions", "partitionname", "partition"}, (*session).showPartitions},
	{[]string{"steps", "stepid", "step"}, (*session).showSteps},
	{[]string{"config"}, config(siteConfig.showConfig)},
	{[]string{"hostnames"}, (*session).showHostnames},
	{[]string{"hostlistsorted"}, func(s *session, _ context.Context, a []string) int { return s.showHostlist(a, true) }},
	{[]string{"hostlist"}, func(s *session, _ context.Context, a []string) int { return s.showHostlist(a, false) }},
	{[]string{"reservations", "reservationname"}, (*session).showReservations},
	{[]string{"licenses"}, (*session).showLicenses},
	{[]string{"burstbuffer"}, says("No burst buffers on the system")},
	{[]string{"federation"}, func(*session, context.Context, []string) int { return 0 }},
	{[]string{"topology"}, (*session).showTopology},
}

func says(text string) func(*session, context.Context, []string) int {
	return func(s *session, _ context.Context, _ []string) int {
		fmt.Fprintln(s.w.Out, text)
		return 0
	}
}

func (s *session) showEntity(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:show")
		return slurm.ExitError
	}
	word, value, given := strings.Cut(args[0], "=")
	rest := args[1:]
	if given {
		rest = append([]string{value}, rest...)
	}
	word = strings.ToLower(word)
	for _, exact := range []bool{true, false} {
		for _, e := range entities {
			for _, n := range e.names {
				if n == word || !exact && strings.HasPrefix(n, word) {
					return e.run(s, ctx, rest)
				}
			}
		}
	}
	fmt.Fprintf(s.w.Err, "invalid entity:%s for keyword:show \n", args[0])
	return slurm.ExitError
}

func (s *session) showJobs(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	var list *client.JobList
	if len(args) > 0 {
		list, err = c.Job(ctx, args[0])
		if core.CodeOf(err) == core.NotFound {
			err = core.Errorf(core.NotFound, "no such job").Because(slurm.ReasonInvalidJobID)
		}
	} else {
		list, err = c.Jobs(ctx, client.JobsQuery{History: true, Since: s.w.Now().Add(-cmd.MinJobAge)})
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_jobs error", err)
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(j client.Job) bool { return j.Spec == nil })
	// An array shows the tasks that wait first, then those that started, the last one first.
	slices.SortStableFunc(list.Jobs, func(a, b client.Job) int {
		if base(&a) != base(&b) || a.Array == nil || b.Array == nil {
			return cmp.Compare(base(&a), base(&b))
		}
		return cmp.Or(cmp.Compare(len(b.Array.Tasks.Ranges()), len(a.Array.Tasks.Ranges())), cmp.Compare(b.ID, a.ID))
	})
	s.show.Now = cmp.Or(list.Now, core.At(s.w.Now()))
	out := bufio.NewWriter(s.w.Out)
	defer out.Flush()
	if s.json {
		info, err := c.Cluster(ctx)
		if err != nil {
			return s.w.LoadFailed("slurm_load_jobs error", err)
		}
		jobs := []report.JobJSON{}
		for i := range list.Jobs {
			jobs = append(jobs, report.JobToJSON(&list.Jobs[i], info.Name))
		}
		return cmd.PrintJSON(out, "jobs", jobs)
	}
	if len(list.Jobs) == 0 {
		fmt.Fprintln(out, "No jobs in the system")
	}
	derived := map[core.JobID]core.Exit{}
	for i := range list.Steps {
		derived[list.Steps[i].Job] = report.Worse(derived[list.Steps[i].Job], list.Steps[i].Exit)
	}
	for i := range list.Jobs {
		s.show.Derived = derived[list.Jobs[i].ID]
		out.WriteString(report.ShowJob(&list.Jobs[i], s.show))
	}
	return 0
}

func base(j *client.Job) core.JobID {
	if j.Array != nil {
		return j.Array.Base
	}
	return j.ID
}

func (s *session) nodes(ctx context.Context) ([]client.Node, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	list, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Nodes { // programs that ask want to know whose manners to expect
		list.Nodes[i].Host.Version = cmd.Version
	}
	return report.ComputeNodes(list.Nodes), nil
}

func (s *session) showNodes(ctx context.Context, args []string) int {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return s.w.LoadFailed("slurm_load_node error", err)
	}
	if len(args) > 0 {
		names, err := cmd.Hosts(args[0])
		if err != nil {
			fmt.Fprintf(s.w.Err, "Invalid hostlist: %s\n", args[0])
			return slurm.ExitError
		}
		var found []client.Node
		for _, name := range names {
			i := slices.IndexFunc(nodes, func(n client.Node) bool { return string(n.Name) == name })
			if i < 0 {
				fmt.Fprintf(s.w.Err, "Node %s not found\n", name)
				return slurm.ExitError
			}
			found = append(found, nodes[i])
		}
		nodes = found
	}
	if s.json {
		list := []report.NodeJSON{}
		for i := range nodes {
			list = append(list, report.NodeToJSON(&nodes[i]))
		}
		return cmd.PrintJSON(s.w.Out, "nodes", list)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(s.w.Out, "No nodes in the system")
	}
	for i := range nodes {
		fmt.Fprint(s.w.Out, report.ShowNode(&nodes[i], s.show))
	}
	return 0
}

func (s *session) showPartitions(ctx context.Context, args []string) int {
	nodes, err := s.nodes(ctx)
	if err != nil && core.CodeOf(err) != core.Denied { // partitions may be shown where nodes are private
		return s.w.LoadFailed("slurm_load_partitions error", err)
	}
	info, err := s.c.Cluster(ctx)
	if err == nil {
		err = info.Withheld("partitions")
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_partitions error", err)
	}
	if n, err := strconv.ParseInt(info.Settings["DefMemPerCPU"], 10, 64); err == nil {
		s.show.DefMem = core.Bytes(n) * core.MiB
	}
	shown := false
	for i := range info.Partitions {
		p := &info.Partitions[i]
		if len(args) == 0 || string(p.Name) == args[0] {
			fmt.Fprint(s.w.Out, report.ShowPartition(p, nodes, s.show))
			shown = true
		}
	}
	switch {
	case shown:
		return 0
	case len(args) > 0:
		fmt.Fprintf(s.w.Err, "Partition %s not found\n", args[0])
		return slurm.ExitError
	}
	fmt.Fprintln(s.w.Out, "No partitions in the system")
	return 0
}

func (s *session) showSteps(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	var list *client.JobList
	if len(args) > 0 {
		job, _, _ := strings.Cut(args[0], ".")
		list, err = c.Job(ctx, job)
	} else {
		list, err = c.Jobs(ctx, client.JobsQuery{})
	}
	if err != nil {
		return s.w.LoadFailed("slurm_get_job_steps error", err)
	}
	rows, err := cmd.Steps(ctx, c, list)
	if err != nil {
		return s.w.LoadFailed("slurm_get_job_steps error", err)
	}
	shown := false
	for i := range rows {
		r := &rows[i]
		if r.State().Final() || len(args) > 0 && strings.Contains(args[0], ".") && r.ID() != args[0] {
			continue
		}
		fmt.Fprint(s.w.Out, report.ShowStep(r, s.show))
		shown = true
	}
	if !shown {
		fmt.Fprintln(s.w.Out, "No job steps in the system")
	}
	return 0
}

func (s *session) showHostnames(_ context.Context, args []string) int {
	expr := s.w.Getenv("SLURM_JOB_NODELIST")
	if len(args) > 0 {
		expr = args[0]
	}
	names, err := cmd.Hosts(expr)
	if err != nil {
		fmt.Fprintf(s.w.Err, "Invalid hostlist: %s\n", expr)
		return slurm.ExitError
	}
	for _, n := range names {
		fmt.Fprintln(s.w.Out, n)
	}
	return 0
}

func (s *session) showHostlist(args []string, sorted bool) int {
	text := strings.Join(args, ",")
	switch {
	case text == "-":
		data, _ := io.ReadAll(s.w.In)
		text = string(data)
	case strings.HasPrefix(text, "/"):
		data, err := os.ReadFile(text)
		if err != nil {
			s.w.Errorf("Unable to open file %s", text)
			return slurm.ExitError
		}
		text = string(data)
	}
	names, err := cmd.Hosts(strings.Join(strings.Fields(text), ","))
	if err != nil {
		fmt.Fprintf(s.w.Err, "Invalid hostlist: %s\n", text)
		return slurm.ExitError
	}
	if sorted {
		fmt.Fprintln(s.w.Out, hostlist.FoldSorted(names))
	} else {
		fmt.Fprintln(s.w.Out, hostlist.Fold(names))
	}
	return 0
}

func (s *session) showTopology(ctx context.Context, _ []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	info, err := c.Cluster(ctx)
	if err == nil {
		err = info.Withheld("nodes")
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_topo error", err)
	}
	lines := slurm.TopologyLines(info.Topology)
	if len(lines) == 0 {
		s.w.Errorf("No topology information available")
	}
	for _, line := range lines {
		fmt.Fprintln(s.w.Out, line)
	}
	return 0
}
