package sreport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report/table"
)

// jobReport adds up jobs by their size.
func (s *session) jobReport(args []string) int {
	name := args[0]
	var by sizeKey
	switch {
	case match(name, "SizesByAccount", 1):
		by = byAccountSize
	case match(name, "SizesByAccountAndWckey", 15):
		by = byAccountWCKey
	case match(name, "SizesByWckey", 8):
		by = byWCKeySize
	default:
		return s.refuseReport(name, "job", `"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"`)
	}
	if len(s.tres) > 1 || slices.Contains(s.tres, "all") {
		fmt.Fprint(s.w.Err, " Job report only supports a single --tres type.\n"+
			" Generate a separate report for each TRES type.\n")
		return slurm.ExitError
	}
	c := s.parse(jobWords, "accounts", args[1:])
	ids, bad := cmd.GroupIDs(c.values["groups"])
	if bad != "" {
		s.w.Errorf("Invalid group id: %s", bad)
		return slurm.ExitError
	}
	nodes, ok := s.nodes(&c)
	if !ok {
		return slurm.ExitError
	}
	f, ok := s.load(&c, client.UsageQuery{
		IDs: c.values["jobs"], Groups: ids, Nodes: nodes, Partitions: c.values["partitions"],
	})
	if !ok {
		return slurm.ExitError
	}
	return s.printSizes(&c, f, by)
}

// nodes are those that a condition names; ok is false when a list does not expand: without it the report would be about
// all nodes.
func (s *session) nodes(c *condition) (out []string, ok bool) {
	if len(c.values["nodes"]) == 0 {
		return nil, true
	}
	text := strings.Join(c.values["nodes"], ",")
	out, err := cmd.Hosts(text)
	if err != nil || len(out) == 0 {
		s.w.Errorf("Invalid hostlist: %s", text)
		return nil, false
	}
	return out, true
}

// sizeKey says what jobs are added up by.
type sizeKey int

const (
	byAccountSize sizeKey = iota
	byAccountWCKey
	byWCKeySize
)

// group is the accounts that one row stands for: root, or those named; with acctasparent those below them.
func (f *facts) group(c *condition, p core.ProjectName) (string, bool) {
	if c.flags["flatview"] {
		return string(p), c.has("accounts", string(p))
	}
	tops := c.values["accounts"]
	if len(tops) == 0 {
		tops = []string{"root"}
	}
	for _, top := range tops {
		at := core.ProjectName(strings.ToLower(top))
		if !f.under(p, at) {
			continue
		}
		if !c.flags["acctasparent"] {
			return string(at), true
		}
		for k := p; k != at; k = f.parent(k) {
			if f.parent(k) == at {
				return string(k), true
			}
		}
		return "", false
	}
	return "", false
}

// printSizes makes the rows of a report by size: of each account or WCKey what its jobs of each size used.
func (s *session) printSizes(c *condition, f *facts, by sizeKey) int {
	limits := s.sizeGroups(c, f)
	rows := map[pair]*row{}
	var all int64
	for i := range f.usage.Rows {
		u := &f.usage.Rows[i]
		if u.Jobs == 0 || !c.has("users", string(u.User)) || !c.has("wckeys", u.WCKey) {
			continue
		}
		k, ok := pair{second: u.WCKey}, by == byWCKeySize
		if by != byWCKeySize {
			if k.first, ok = f.group(c, u.Project); by == byAccountSize {
				k.second = ""
			}
		}
		if !ok {
			continue
		}
		n := u.TRES.Count(f.names[0])
		if c.flags["printjobcount"] {
			n = u.Jobs
		}
		r := rows[k]
		if r == nil {
			r = &row{cluster: f.cluster, account: k.first, wckey: k.second, sizes: make([]int64, len(limits))}
			if by == byAccountWCKey {
				r.account = k.first + ":" + k.second
			}
			rows[k] = r
		}
		at := 0
		for at+1 < len(limits) && int64(u.CPUs) >= limits[at+1] {
			at++
		}
		r.sizes[at] += n
		r.sum += n
		all += n
	}
	list := make([]row, 0, len(rows))
	for _, r := range rows {
		r.all = all
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b row) int {
		return cmp.Or(strings.Compare(a.account, b.account), strings.Compare(a.wckey, b.wckey))
	})
	title, format := "Job Sizes", "Cluster,Account"
	if by == byWCKeySize {
		title, format = "Job Sizes by Wckey", "Cluster,Wckey"
	}
	columns := append(s.columns(c, sizeFields(by), format), s.sizeColumns(c, limits)...)
	return s.print(c, title, s.sizeUnits(c), true, columns, list)
}

func (s *session) sizeUnits(c *condition) string {
	text := "Time reported in " + s.time.units("")
	if c.flags["printjobcount"] {
		text = "Units are in number of jobs ran"
	}
	if len(s.tres) > 0 {
		text = "TRES type is " + s.tres[0] + "\n" + text
	}
	return text
}

func sizeFields(by sizeKey) []field {
	acct := field{Name: "Account", Width: 9, Value: func(r *row) string { return r.account }}
	if by == byAccountWCKey {
		acct.Width = -20
	}
	return []field{acct, clusterField, {Name: "Wckey", Width: 9, Value: func(r *row) string { return r.wckey }}}
}

// sizeGroups are the least numbers of CPUs of each group, ascending; those below the first are a group, too.
func (s *session) sizeGroups(c *condition, f *facts) (limits []int64) {
	text := c.grouping
	if text == "" {
		text = "50,250,500,1000"
	}
	if strings.EqualFold(text, "individual") {
		for i := range f.usage.Rows {
			if u := &f.usage.Rows[i]; u.Jobs > 0 {
				limits = append(limits, int64(u.CPUs))
			}
		}
		slices.Sort(limits)
		return slices.Compact(limits)
	}
	limits = []int64{0}
	for _, word := range cmd.SplitList(text) {
		if n, err := strconv.ParseInt(word, 10, 32); err == nil && n > 0 {
			limits = append(limits, n)
		}
	}
	slices.Sort(limits)
	return slices.Compact(limits)
}

// sizeColumns are those of the groups, and each row's part of all.
func (s *session) sizeColumns(c *condition, limits []int64) (out cols) {
	unit := "CPUs"
	if len(s.tres) > 0 {
		unit = "TRES"
	}
	individual := strings.EqualFold(c.grouping, "individual")
	for i, least := range limits {
		title := fmt.Sprintf(">= %d %s", least, unit)
		switch {
		case individual:
			title = fmt.Sprintf("%d %s", least, unit)
		case i+1 < len(limits):
			title = fmt.Sprintf("%d-%d %s", least, limits[i+1]-1, unit)
		}
		f := &field{Name: title, Width: s.time.width(13, 20), Value: func(r *row) string {
			if c.flags["printjobcount"] {
				return strconv.FormatInt(r.sizes[i], 10)
			}
			return s.time.text(r.sizes[i], r.sum)
		}}
		out = append(out, table.Column[row]{Field: f, Width: f.Width})
	}
	part := &field{Name: "% of cluster", Width: 12, Value: func(r *row) string {
		return timeFormat{percent: true}.text(r.sum, r.all)
	}}
	return append(out, table.Column[row]{Field: part, Width: part.Width})
}

// reservationReport tells what was used of reservations.
func (s *session) reservationReport(args []string) int {
	name := args[0]
	if !match(name, "Utilization", 1) {
		return s.refuseReport(name, "reservation", `"Utilization"`)
	}
	c := s.parse(reservationWords, "clusters", args[1:])
	nodes, ok := s.nodes(&c)
	if !ok {
		return slurm.ExitError
	}
	f, ok := s.load(&c, client.UsageQuery{})
	if !ok {
		return slurm.ExitError
	}
	if len(s.tres) == 0 {
		f.names = []string{"cpu", "node"}
	}
	var rows []row
	for i := range f.usage.Reservations {
		r := &f.usage.Reservations[i]
		on := func(n string) bool { return slices.Contains(nodes, n) }
		its, _ := cmd.Hosts(r.Nodes) // the server's own list
		if !c.has("names", r.Name) || len(nodes) > 0 && !slices.ContainsFunc(its, on) {
			continue
		}
		for _, tres := range f.names {
			if n := r.Total.Count(tres); n > 0 && (tres == "cpu" || tres == "node") {
				used := min(r.Used.Count(tres), n)
				rows = append(rows, row{cluster: f.cluster, tres: tres, used: used, total: n, resv: r})
			}
		}
	}
	columns := s.columns(&c, s.reservationFields(), "Cluster,Name,Start,End,TresName,Allocated,Idle")
	return s.print(&c, "Reservation Utilization", "Usage reported in "+s.time.units("TRES"), false, columns, rows)
}

func (s *session) reservationFields() []field {
	text := func(name, title string, width int, value func(r *client.ReservationUsage) string) field {
		return field{Name: name, Title: title, Width: width, Value: func(r *row) string { return value(r.resv) }}
	}
	moment := func(t core.Time) string { return t.Go().Format(layout) }
	count := func(name string) field {
		return field{Name: name, Title: "TRES count", Width: 10, Value: func(r *row) string {
			return strconv.FormatInt(r.resv.Size.Count(r.tres), 10)
		}}
	}
	clock := func(name, title string, seconds func(r *row) int64) field {
		return field{Name: name, Title: title, Width: 9, Value: func(r *row) string {
			return grammar.FormatClock(seconds(r))
		}}
	}
	length := func(r *row) int64 { return int64(r.resv.End-r.resv.Start) / 1e6 }
	return []field{
		s.amount("Allocated", "", 20, 29, func(r *row) (int64, int64) { return r.used, r.total }),
		text("Associations", "", 15, func(r *client.ReservationUsage) string {
			var names []string
			for _, p := range r.Projects {
				names = append(names, string(p))
			}
			for _, u := range r.Users {
				names = append(names, string(u))
			}
			return strings.Join(names, ",")
		}),
		clusterField, count("Count"), count("TresCount"),
		text("End", "", 19, func(r *client.ReservationUsage) string { return moment(r.End) }),
		text("Flags", "", 20, func(r *client.ReservationUsage) string { return strings.Join(r.Flags.Words(), ",") }),
		s.amount("Idle", "", 20, 29, func(r *row) (int64, int64) { return r.total - r.used, r.total }),
		text("Name", "", 9, func(r *client.ReservationUsage) string { return r.Name }),
		text("Nodes", "", 15, func(r *client.ReservationUsage) string { return r.Nodes }),
		text("ReservationId", "Id", 8, func(r *client.ReservationUsage) string { return strconv.FormatInt(r.ID, 10) }),
		text("Start", "", 19, func(r *client.ReservationUsage) string { return moment(r.Start) }),
		clock("TotalTime", "", length), tresField,
		clock("CPUTime", "TRES Time", func(r *row) int64 { return length(r) * r.resv.Size.Count(r.tres) }),
		clock("TresTime", "TRES Time", func(r *row) int64 { return length(r) * r.resv.Size.Count(r.tres) }),
	}
}
