package rest

import (
	"net/http"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// tresNames are the resources that are always counted.
var tresNames = core.TRESOf(core.Amount{Name: "billing"}, core.Amount{Name: "cpu"}, core.Amount{Name: "energy"},
	core.Amount{Name: "mem"}, core.Amount{Name: "node"})

// tres lists what is counted: the resources of nodes too.
func (c accounting) tres() ([]*schema.Record, core.TRES, []string, error) {
	nodes, err := c.nodes()
	if err != nil && core.CodeOf(err) != core.Denied {
		return nil, nil, nil, err
	}
	all, total, names := tresNames, core.TRES{}, []string{}
	for i := range nodes {
		n := &nodes[i]
		names = append(names, string(n.Name))
		total = total.Plus(core.TRESOf(core.Amount{Name: "cpu", Count: int64(n.Hardware.CPUs)},
			core.Amount{Name: "mem", Count: int64(n.Hardware.Memory / core.MiB)}, core.Amount{Name: "node", Count: 1}), 1)
		for _, g := range n.Hardware.Gres {
			total = total.Plus(core.TRESOf(core.Amount{Name: "gres/" + g.Name, Count: g.Count}), 1)
			all = all.Plus(core.TRESOf(core.Amount{Name: "gres/" + g.Name}), 1)
		}
	}
	return report.TRESRecords(all), total, names, nil
}

func listTRES(c accounting) (*schema.Record, error) {
	list, _, _, err := c.tres()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_tres_resp").Set("TRES", list), nil
}

func (c accounting) clusters() ([]*schema.Record, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	_, total, names, err := c.tres()
	if err != nil {
		return nil, err
	}
	return []*schema.Record{schema.New("cluster_rec").Set("name", info.Name).Set("controller.host", info.Server).
		Set("nodes", hostlist.FoldSorted(names)).Set("select_plugin", "select/cons_tres").Set("rpc_version", 9728).
		Set("tres", report.TRESRecords(total)).
		Set("associations.root", schema.New("assoc_short").Set("account", "root").Set("cluster", info.Name).
			Set("id", rootID))}, nil
}

func listClusters(c accounting) (*schema.Record, error) {
	list, err := c.clusters()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_clusters_resp").Set("clusters", list), nil
}

func showCluster(c accounting) (*schema.Record, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	if name := c.Path("cluster_name"); name != info.Name {
		return nil, nothingFound("cluster", name)
	}
	return listClusters(c)
}

func (b *books) keys() []*schema.Record {
	list := []*schema.Record{}
	for i := range b.users {
		list = append(list, b.keysOf(&b.users[i])...)
	}
	return list
}

func listKeys(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_wckey_resp").Set("wckeys", b.keys()), nil
}

func showKey(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := []*schema.Record{}
	for _, r := range b.keys() {
		if r.Get("name") == c.Path("id") {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil, nothingFound("wckey", c.Path("id"))
	}
	return schema.New("openapi_wckey_resp").Set("wckeys", list), nil
}

// listInstances is empty: nodes are not instances of a cloud.
func listInstances(accounting) (*schema.Record, error) {
	return schema.New("openapi_instances_resp"), nil
}

func showConfig(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	clusters, err := c.clusters()
	if err != nil {
		return nil, err
	}
	tres, _, _, err := c.tres()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_slurmdbd_config_resp").Set("clusters", clusters).Set("tres", tres).
		Set("accounts", b.accounts("")).Set("users", b.userRecords("")).Set("qos", b.allQOS("")).
		Set("wckeys", b.keys()).Set("associations", b.assocs(nil, nil)), nil
}

func diagnoseDatabase(c accounting) (*schema.Record, error) {
	d, err := c.api.Client.Diag(c.Context)
	if err != nil {
		return nil, err
	}
	calls, users := []*schema.Record{}, []*schema.Record{}
	for i := range d.Calls {
		k := &d.Calls[i]
		calls = append(calls, schema.New("stats_rpc").Set("rpc", k.Name).Set("count", small(k.Count)).
			Set("time.total", k.Total).Set("time.average", k.Total/max(1, k.Count)))
	}
	for i := range d.Users {
		k := &d.Users[i]
		users = append(users, schema.New("stats_user").Set("user", k.Name).Set("count", small(k.Count)).
			Set("time.total", k.Total).Set("time.average", k.Total/max(1, k.Count)))
	}
	return schema.New("openapi_slurmdbd_stats_resp").Set("statistics", schema.New("stats_rec").
		Set("time_start", d.Since.Unix()).Set("RPCs", calls).Set("users", users)), nil
}

func pingDatabase(c accounting) (*schema.Record, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_slurmdbd_ping_resp").Set("pings", []*schema.Record{
		schema.New("slurmdbd_ping").Set("hostname", info.Server).Set("responding", true).Set("primary", true),
	}), nil
}

// unsupported refuses what Slurm's database has and this server keeps in its settings, or not at all.
func unsupported(why string) func(accounting) (*schema.Record, error) {
	return func(accounting) (*schema.Record, error) {
		return nil, fail(http.StatusBadRequest, 2036, "Requested operation not supported on this system", why)
	}
}
