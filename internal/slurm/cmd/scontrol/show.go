package scontrol

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// entities are what show knows, in the order in which short forms find them.
var entities = []struct {
	names []string
	run   verb
}{
	{[]string{"jobs", "jobid", "job"}, ofJobs(jobVerbs.showJobs)},
	{[]string{"nodes", "nodename", "node"}, (*session).showNodes},
	{[]string{"partitions", "partitionname", "partition"}, (*session).showPartitions},
	{[]string{"steps", "stepid", "step"}, ofJobs(jobVerbs.showSteps)},
	{[]string{"config"}, config(siteConfig.showConfig)},
	{[]string{"hostnames"}, ofHosts(hostVerbs.showHostnames)},
	{[]string{"hostlistsorted"}, ofHosts(hostVerbs.showHostlistSorted)},
	{[]string{"hostlist"}, ofHosts(hostVerbs.showHostlist)},
	{[]string{"reservations", "reservationname"}, (*session).showReservations},
	{[]string{"licenses"}, (*session).showLicenses},
	{[]string{"burstbuffer", "bbstat", "dwstat", "federation"}, nothing},
	{[]string{"aliases"}, (*session).showAliases},
	{[]string{"daemons"}, ofHost(hostView.showDaemons)},
	{[]string{"frontend"}, (*session).showFrontEnds},
	{[]string{"slurmd"}, ofHost(hostView.showAgent)},
	{[]string{"topology"}, (*session).showTopology},
	{[]string{"assoc_mgr", "cache"}, showAssocMgr},
}

// nothing is what there is of things that this cluster does not have.
func nothing(*session, context.Context, []string) int { return 0 }

// showAliases lists the nodes whose machine has one of the names.
func (s *session) showAliases(ctx context.Context, args []string) int {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return s.w.LoadFailed("slurm_load_node error", err)
	}
	host := s.w.Host
	if len(args) > 0 {
		host = args[0]
	}
	var names []string
	for i := range nodes {
		if isHost(nodes[i].Host.Hostname, host) {
			names = append(names, string(nodes[i].Name))
		}
	}
	if len(names) > 0 {
		fmt.Fprintln(s.w.Out, strings.Join(names, " "))
	}
	return 0
}

// showFrontEnds answers for front end nodes, which there are none of.
func (s *session) showFrontEnds(_ context.Context, args []string) int {
	if len(args) > 0 {
		fmt.Fprintf(s.w.Err, "Node %s not found\n", args[0])
		return slurm.ExitError
	}
	fmt.Fprintln(s.w.Out, "No nodes in the system")
	return 0
}

func (s *session) showEntity(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:show")
		return slurm.ExitError
	}
	word, value, given := strings.Cut(args[0], "=")
	rest := args[1:]
	if word = strings.ToLower(word); len(rest) > 1 && !strings.HasPrefix("assoc_mgr", word) && word != "cache" {
		fmt.Fprintln(s.w.Err, "too many arguments for keyword:show")
		return slurm.ExitError
	}
	if given { // as in Slurm, what follows is not looked at
		rest = []string{value}
	}
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
	all := len(nodes)
	var missing []string
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
				missing = append(missing, name)
				continue
			}
			found = append(found, nodes[i])
		}
		nodes = found
	}
	if s.doc != nil {
		info, err := s.c.Cluster(ctx)
		if err != nil {
			return s.w.LoadFailed("slurm_load_node error", err)
		}
		return s.doc.Print(s.w.Out, cmd.NodesDocument(nodes, cmd.RecordOptions(info.Name), s.w.Now()), info.Name, false)
	}
	listing{s.w.Out, s.heads}.head(s.w.Now(), all)
	if all == 0 {
		fmt.Fprintln(s.w.Out, "No nodes in the system")
	}
	for i := range nodes {
		fmt.Fprint(s.w.Out, report.ShowNode(&nodes[i], s.show))
	}
	for _, name := range missing {
		fmt.Fprintf(s.w.Out, "Node %s not found\n", name)
	}
	return min(len(missing), slurm.ExitError)
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
	if err == nil && !s.all {
		err = cmd.HidePartitions(ctx, s.c, info)
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_partitions error", err)
	}
	if n, err := strconv.ParseInt(info.Settings["DefMemPerCPU"], 10, 64); err == nil {
		s.show.DefMem = core.Bytes(n) * core.MiB
	}
	if s.doc != nil {
		var records []*schema.Record
		for i := range info.Partitions {
			if p := &info.Partitions[i]; len(args) == 0 || string(p.Name) == args[0] {
				records = append(records, report.PartitionRecord(p, nodes, cmd.RecordOptions(info.Name)))
			}
		}
		body := schema.New("openapi_partition_resp").Set("partitions", records).
			Set("last_update", schema.Int(s.w.Now().Unix()))
		return s.doc.Print(s.w.Out, body, info.Name, false)
	}
	listing{s.w.Out, s.heads}.head(s.w.Now(), len(info.Partitions))
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
		fmt.Fprintf(s.w.Out, "Partition %s not found\n", args[0])
		return slurm.ExitError
	}
	fmt.Fprintln(s.w.Out, "No partitions in the system")
	return 0
}

func (s *session) showTopology(ctx context.Context, args []string) int {
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
	switch {
	case len(lines) == 0 && len(args) > 0:
		s.w.Errorf("Topology information contains no switch or node named %s", args[0])
	case len(lines) == 0:
		s.w.Errorf("No topology information available")
	}
	for _, line := range lines {
		fmt.Fprintln(s.w.Out, line)
	}
	return 0
}
