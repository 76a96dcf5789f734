package sacctmgr

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/cmd"
)

var (
	eventWords = []keyword{
		{"Names", 1, "names"},
		{"Nodes", 2, "nodes"},
		{"Clusters", 1, "clusters"},
		{"States", 2, "states"},
		{"Reason", 1, "reasons"},
		{"Users", 1, "users"},
		{"Events", 2, "events"},
		{"Start", 4, "start"},
		{"TimeStart", 5, "start"},
		{"End", 3, "end"},
		{"TimeEnd", 5, "end"},
		{"All_Time", 5, "all_time"},
		{"All_Clusters", 5, "all_clusters"},
	}
	transactionWords = []keyword{
		{"Actors", 4, "users"},
		{"Actions", 4, "actions"},
		{"Accounts", 3, "accounts"},
		{"Clusters", 1, "clusters"},
		{"Users", 1, "about"},
	}
)

// The ids of the account root and its user, which may be there without a record.
const (
	rootAccountID = 1
	rootUserID    = 2
)

// assocID is the id of an account's association, or of a member's.
func (s *records) assocID(p *core.Project, m *core.Member) int64 {
	switch {
	case p.Name == "root" && m == nil:
		return rootAccountID
	case p.Name == "root" && m.User == "root":
		return rootUserID
	case m != nil:
		return m.ID
	}
	return p.ID
}

// qosID is the id of a QOS; normal is there without a record.
func (s *records) qosID(q *core.QOS) int64 {
	if q.ID == 0 && q.Name == "normal" {
		return 1
	}
	return q.ID
}

// place gives the left or right number of an association in the tree: those below one lie between its two.
func place(r *row, side int) string {
	if !r.assoc {
		return ""
	}
	if r.s.places == nil {
		r.s.places = map[int64][2]int{}
		next := 0
		take := func() int { next++; return next }
		var number func(p *core.Project, depth int)
		number = func(p *core.Project, depth int) {
			left := take()
			r.s.walk(p.Name, 0, func(k *core.Project, d int) {
				if d == 1 && depth < len(r.s.policy.Projects) {
					number(k, depth+1)
				}
			})
			for i := range p.Members {
				at := take()
				r.s.places[r.s.assocID(p, &p.Members[i])] = [2]int{at, take()}
			}
			r.s.places[r.s.assocID(p, nil)] = [2]int{left, take()}
		}
		if root := r.s.account("root"); root != nil {
			number(root, 0)
		}
	}
	return strconv.Itoa(r.s.places[r.s.assocID(r.p, r.m)][side])
}

func (*lister) noRows(*condition) ([]row, error) { return nil, nil }

func (s *lister) clusterRows(c *condition) ([]row, error) {
	if !c.has("names", s.name) {
		return nil, nil
	}
	nodes, err := s.c.Nodes(s.ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	total := map[string]int64{}
	var order []string
	count := func(name string, n int64) {
		if _, there := total[name]; !there {
			order = append(order, name)
		}
		total[name] += n
	}
	for _, name := range []string{"cpu", "mem", "node"} {
		count(name, 0)
	}
	for i := range nodes.Nodes {
		n := &nodes.Nodes[i]
		names = append(names, string(n.Name))
		count("cpu", int64(n.Hardware.CPUs))
		count("mem", int64(n.Hardware.Memory/core.MiB))
		count("node", 1)
		for _, g := range n.Hardware.Gres {
			count("gres/"+g.Name, int64(g.Count))
		}
	}
	count("billing", total["cpu"])
	tres := make(core.TRES, 0, len(order))
	for _, name := range order {
		tres = append(tres, core.Amount{Name: name, Count: total[name]})
	}
	text := map[string]string{
		"nodecount": strconv.Itoa(len(names)), "clusternodes": hostlist.Fold(names), "tres": amounts(tres),
	}
	return []row{{p: &core.Project{Name: "root", Assoc: s.account("root").Assoc}, text: text}}, nil
}

func (s *lister) tresRows(c *condition) (rows []row, _ error) {
	names := []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages", "gres/gpu"}
	for i, name := range names {
		class, sub, _ := strings.Cut(name, "/")
		id := i + 1
		if class == "gres" {
			id = 1001 + i - 8
		}
		if c.has("types", class) && c.has("names", sub) && c.has("ids", strconv.Itoa(id)) {
			rows = append(rows, row{text: map[string]string{"type": class, "name": sub, "id": strconv.Itoa(id)}})
		}
	}
	return rows, nil
}

func (s *lister) wckeyRows(c *condition) (rows []row, _ error) {
	for i := range s.users {
		u := &s.users[i]
		for _, k := range u.WCKeys {
			if c.has("names", k) && c.has("users", string(u.Name)) && c.has("clusters", s.name) {
				rows = append(rows, row{u: u, text: map[string]string{"wckey": k}})
			}
		}
	}
	return rows, nil
}

// problemRows are accounts that nobody can use, and users without an account.
func (s *lister) problemRows(c *condition) (rows []row, _ error) {
	problem := func(p *core.Project, u *core.User, text string) {
		rows = append(rows, row{p: p, u: u, text: map[string]string{"problem": text}})
	}
	for _, p := range s.accountsByName() {
		used := false
		s.walk(p.Name, 0, func(k *core.Project, _ int) { used = used || len(k.Members) > 0 })
		if !used && s.accountIs(c, p) {
			problem(p, nil, "Account has no users")
		}
	}
	for i := range s.users {
		u := &s.users[i]
		has := false
		for k := range s.policy.Projects {
			has = has || member(&s.policy.Projects[k], string(u.Name)) != nil
		}
		if !has && c.has("users", string(u.Name)) {
			problem(nil, u, "User has no Associations")
		}
	}
	return rows, nil
}

// moment writes a time as Slurm's listings do.
func moment(t core.Time) string {
	if t == 0 {
		return "Unknown"
	}
	return t.Go().Format("2006-01-02T15:04:05")
}

// eventRows are the times in which nodes were not in service: those of the last day, of the time that start and end
// give, or with all_time all that are known.
func (s *lister) eventRows(c *condition) (rows []row, _ error) {
	now := core.At(s.w.Now())
	from, until := now.Add(-24*time.Hour), now
	if c.flags["all_time"] {
		from = 0
	}
	for key, to := range map[string]*core.Time{"start": &from, "end": &until} {
		if len(c.values[key]) > 0 {
			text := c.values[key][0]
			if text[0] >= '0' && text[0] <= '9' {
				text = strings.ToUpper(text) // conditions are kept in lower case
			}
			t, err := grammar.ParseMoment(text, s.w.Now(), grammar.Recent)
			if err != nil {
				return nil, err
			}
			*to = core.At(t)
		}
	}
	nodes, _ := cmd.Hosts(strings.Join(c.values["nodes"], ",")) // what does not expand names no node
	list, err := s.c.Outages(s.ctx, from, until)
	if err != nil {
		return nil, err
	}
	for i := range list.Outages {
		o := &list.Outages[i]
		state := strings.ToUpper(o.State)
		if len(c.values["nodes"]) > 0 && !slices.Contains(nodes, strings.ToLower(string(o.Node))) ||
			!c.has("names", string(o.Node)) || !c.has("clusters", s.name) ||
			!c.has("reasons", o.Reason) || !c.has("users", string(o.By)) || !c.has("states", state) {
			continue
		}
		rows = append(rows, row{text: map[string]string{
			"nodename": string(o.Node), "start": moment(o.Start), "end": moment(o.End), "state": state, "reason": o.Reason,
			"user": string(o.By),
		}})
	}
	return rows, nil
}

func (s *lister) reservationRows(c *condition) (rows []row, _ error) {
	list, err := s.c.Reservations(s.ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Reservations {
		r := &list.Reservations[i]
		if c.has("names", r.Name) && c.has("clusters", s.name) {
			rows = append(rows, row{text: map[string]string{
				"name": r.Name, "start": moment(r.Start), "end": moment(r.End), "tres": fmt.Sprintf("cpu=%d", r.CoreCount),
			}})
		}
	}
	return rows, nil
}

// transactionRows are the changes of accounting records that the audit log holds, oldest first; what was refused is
// none.
func (s *lister) transactionRows(c *condition) (rows []row, _ error) {
	names := map[string]string{
		"user.create": "Add Users", "user.update": "Modify Users", "user.delete": "Remove Users",
		"project.create": "Add Accounts", "project.update": "Modify Accounts", "project.delete": "Remove Accounts",
		"project.member": "Modify Associations", "policy.apply": "Modify Associations",
		"qos.put": "Modify QOS", "qos.update": "Modify QOS", "qos.create": "Add QOS", "qos.delete": "Remove QOS",
	}
	query := url.Values{}
	for {
		page, err := s.c.Audit(s.ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range page.Entries {
			e := &page.Entries[i]
			action, ok := names[e.Action]
			if !ok || e.Answer != core.AuditOK || !c.has("users", string(e.User)) || !c.has("actions", action) {
				continue
			}
			rows = append([]row{{text: map[string]string{
				"time": moment(e.At), "action": action, "user": string(e.User), "where": e.Object,
			}}}, rows...)
		}
		if !page.More || len(page.Entries) == 0 {
			return rows, nil
		}
		query.Set("before", strconv.FormatInt(page.Entries[len(page.Entries)-1].Seq, 10))
	}
}
