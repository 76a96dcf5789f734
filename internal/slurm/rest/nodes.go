package rest

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nodenotes"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

func ping(c *Call) (*schema.Record, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_ping_array_resp").Set("pings", []*schema.Record{
		schema.New("controller_ping").Set("hostname", info.Server).Set("pinged", "UP").Set("responding", true).
			Set("latency", 0).Set("mode", "primary").Set("primary", true),
	}), nil
}

// nodes are those that jobs run on.
func (c *Call) nodes() ([]client.Node, error) {
	list, err := c.api.Client.Nodes(c.Context)
	if err != nil {
		return nil, err
	}
	return report.ComputeNodes(list.Nodes), nil
}

func (c *Call) nodeList(list []client.Node) (*schema.Record, error) {
	o, err := c.records()
	if err != nil {
		return nil, err
	}
	records := make([]*schema.Record, 0, len(list))
	for i := range list {
		if list[i].Host.Version != "" { // programs that ask want to know whose manners to expect
			list[i].Host.Version = c.cluster.SlurmVersion
		}
		records = append(records, report.NodeRecord(&list[i], o))
	}
	return schema.New("openapi_nodes_resp").Set("nodes", records).Set("last_update", c.lastUpdate()), nil
}

func listNodes(c *Call) (*schema.Record, error) {
	if err := c.unchanged("nodes"); err != nil {
		return nil, err
	}
	list, err := c.nodes()
	if err != nil {
		return nil, err
	}
	return c.nodeList(list)
}

func showNode(c *Call) (*schema.Record, error) {
	if err := c.unchanged("nodes"); err != nil {
		return nil, err
	}
	node, err := c.api.Client.Node(c.Context, core.NodeName(c.Path("node_name")))
	if err != nil {
		return nil, badNode(err, c.Path("node_name"))
	}
	return c.nodeList([]client.Node{*node})
}

func badNode(err error, name string) error {
	if core.CodeOf(err) != core.NotFound {
		return err
	}
	return fail(http.StatusNotFound, 2018, "Invalid node name specified", "there is no node "+strconv.Quote(name))
}

// nodeVerbs are the states that can be asked for.
var nodeVerbs = map[string]core.NodeVerb{
	"DRAIN": core.VerbDrain, "DOWN": core.VerbDown, "FAIL": core.VerbFail, "FUTURE": core.VerbFuture,
	"RESUME": core.VerbResume, "IDLE": core.VerbResume, "UNDRAIN": core.VerbUndrain,
	"POWER_UP": core.VerbPowerUp, "POWER_DOWN": core.VerbPowerDown, "POWER_DRAIN": core.VerbPowerDownASAP,
	"REBOOT_CANCELED": core.VerbCancelReboot,
}

func updateNode(c *Call) (*schema.Record, error) {
	return updateNodes(c, func(schema.Input) ([]string, error) { return []string{c.Path("node_name")}, nil })
}

// updateListed changes the nodes that the body names.
func updateListed(c *Call) (*schema.Record, error) {
	return updateNodes(c, func(in schema.Input) ([]string, error) { return hosts("name", in.List("name")) })
}

// nodeFields are what a node is, which can be changed.
var nodeFields = []string{"address", "comment", "extra", "features", "features_act", "hostname", "weight"}

// nodeChange reads them; nil: none is given. An empty list or text changes nothing, for clients send all fields.
func nodeChange(in schema.Input) (*nodenotes.Change, error) {
	var c nodenotes.Change
	for name, to := range map[string]**string{"comment": &c.Comment, "extra": &c.Extra} {
		if text := in.Text(name); text != "" {
			*to = &text
		}
	}
	for name, to := range map[string]**string{"address": &c.Addr, "hostname": &c.Hostname} {
		switch list := in.List(name); len(list) {
		case 0:
		case 1:
			*to = &list[0]
		default:
			return nil, badField(name, strings.Join(list, ","))
		}
	}
	for name, to := range map[string]**[]string{"features": &c.Available, "features_act": &c.Features} {
		if list := in.List(name); len(list) > 0 {
			*to = &list
		}
	}
	if n := in.Number("weight"); n.IsSet() {
		if n.IsInfinite() || n.Whole() < 0 || n.Whole() > math.MaxInt32 {
			return nil, badField("weight", strconv.FormatInt(n.Whole(), 10))
		}
		weight := int32(n.Whole())
		c.Weight = &weight
	}
	if c == (nodenotes.Change{}) {
		return nil, nil
	}
	return &c, nil
}

func updateNodes(c *Call, which func(schema.Input) ([]string, error)) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	u := &client.UpdateNode{Reason: in.Text("reason")}
	for _, word := range in.List("state") {
		verb, ok := nodeVerbs[strings.ToUpper(word)]
		if !ok {
			return nil, fail(http.StatusBadRequest, 2028, "Invalid node state specified", "state: "+strconv.Quote(word))
		}
		u.State = verb
	}
	if n := in.Number("resume_after"); n.IsInfinite() {
		u.ResumeAfter = -1
	} else if n.IsSet() {
		u.ResumeAfter = core.Seconds(n.Whole())
	}
	used := []string{"state", "reason", "resume_after", "name", "reason_uid"}
	notes, err := nodeChange(in)
	if err != nil {
		return nil, err
	}
	u.Change = notes
	for name, value := range in {
		if !slices.Contains(used, name) && !slices.Contains(nodeFields, name) && !empty(value) {
			return nil, fail(http.StatusBadRequest, 2036, "Requested operation not supported on this system",
				"the field "+name+" of a node cannot be changed here")
		}
	}
	if u.State.NeedsReason() && u.Reason == "" {
		return nil, fail(http.StatusBadRequest, errno.Unspecified,
			"You must specify a reason when DOWNING or DRAINING a node. Request denied", "reason is not given")
	}
	names, err := which(in)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fail(http.StatusBadRequest, 2018, "Invalid node name specified", "name: no nodes are named")
	}
	for _, name := range names {
		if err := c.api.Client.UpdateNode(c.Context, core.NodeName(name), u); err != nil {
			return nil, badNode(err, name)
		}
	}
	return schema.New("openapi_resp"), nil
}

func deleteNode(c *Call) (*schema.Record, error) {
	name := c.Path("node_name")
	if _, err := c.api.Client.RemoveNode(c.Context, core.NodeName(name), ""); err != nil {
		return nil, badNode(err, name)
	}
	return schema.New("openapi_resp"), nil
}

func listPartitions(c *Call) (*schema.Record, error) { return c.partitions("") }

func showPartition(c *Call) (*schema.Record, error) { return c.partitions(c.Path("partition_name")) }

func (c *Call) partitions(name string) (*schema.Record, error) {
	info, err := c.info()
	if err == nil {
		err = info.Withheld("partitions")
	}
	if err != nil {
		return nil, err
	}
	nodes, err := c.nodes()
	if err != nil && core.CodeOf(err) != core.Denied { // partitions may be shown where nodes are private
		return nil, err
	}
	o, err := c.records()
	if err != nil {
		return nil, err
	}
	records := []*schema.Record{}
	for i := range info.Partitions {
		if p := &info.Partitions[i]; name == "" || string(p.Name) == name {
			records = append(records, report.PartitionRecord(p, nodes, o))
		}
	}
	if name != "" && len(records) == 0 {
		return nil, fail(http.StatusNotFound, 2000, "Invalid partition name specified",
			"there is no partition "+strconv.Quote(name))
	}
	return schema.New("openapi_partition_resp").Set("partitions", records).Set("last_update", c.lastUpdate()), nil
}
