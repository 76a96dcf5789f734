package sreport

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/report/table"
)

// row is a line of a report: the parts that its kind has.
type row struct {
	cluster, account, login, wckey string
	depth                          int // of an account in the tree
	tres                           string
	used, energy                   int64 // of tres × seconds
	total                          int64 // all there was, for parts of it
	energyTotal                    int64
	util                           *utilization
	resv                           *client.ReservationUsage
	sizes                          []int64 // by group of sizes
	sum, all                       int64   // of sizes, and of those of all rows
}

// utilization is what became of the time of one resource.
type utilization struct {
	count                                             int64 // of it there is
	allocated, down, planned, idle, waiting, reported int64
}

type (
	field = table.Field[row]
	cols  = []table.Column[row]
)

// properName is a person's name, as the account has it.
func properName(login string) string {
	if login == "" {
		return ""
	}
	if u, err := account.ByName(login); err == nil && u.FullName != "" {
		return u.FullName
	}
	return login
}

// Fields that several reports have.
var (
	clusterField = field{Name: "Cluster", Width: 9, Value: func(r *row) string { return r.cluster }}
	loginField   = field{Name: "Login", Width: 9, Value: func(r *row) string { return r.login }}
	properField  = field{Name: "Proper", Title: "Proper Name", Width: 15, Value: func(r *row) string {
		return properName(r.login)
	}}
	tresField  = field{Name: "TresName", Title: "TRES Name", Width: 14, Value: func(r *row) string { return r.tres }}
	wckeyField = field{Name: "WCKey", Width: 15, Value: func(r *row) string { return r.wckey }}
)

func (s *session) accountField(tree bool) field {
	f := field{Name: "Account", Width: 15, Value: func(r *row) string { return r.account }}
	if tree {
		f.Width, f.Value = -20, func(r *row) string { return strings.Repeat(" ", r.depth) + r.account }
	}
	return f
}

// amount is a column of times.
func (s *session) amount(name, title string, plain, both int, of func(r *row) (seconds, all int64)) field {
	return field{Name: name, Title: title, Width: s.time.width(plain, both), Value: func(r *row) string {
		return s.time.text(of(r))
	}}
}

// usageFields are those of the reports by accounts, users and WCKeys.
func (s *session) usageFields(tree bool) []field {
	acct := s.accountField(tree)
	return []field{
		acct,
		{Name: "Accounts", Title: "Account", Width: acct.Width, Value: acct.Value},
		{Name: "Acct", Title: "Account", Width: acct.Width, Value: acct.Value},
		clusterField,
		{Name: "Count", Title: "TRES Count", Width: 10, Value: func(*row) string { return "0" }},
		s.amount("Energy", "Energy", 8, 17, func(r *row) (int64, int64) { return r.energy, r.energyTotal }),
		loginField, properField, tresField,
		s.amount("Used", "Used", 8, 17, func(r *row) (int64, int64) { return r.used, r.total }),
		wckeyField,
	}
}

func (s *session) utilFields() []field {
	of := func(name, title string, value func(u *utilization) int64) field {
		return s.amount(name, title, 8, 17, func(r *row) (int64, int64) { return value(r.util), r.util.reported })
	}
	count := func(name string) field {
		return field{Name: name, Title: "TRES Count", Width: 10, Value: func(r *row) string {
			return strconv.FormatInt(r.util.count, 10)
		}}
	}
	return []field{
		of("Allocated", "Allocated", func(u *utilization) int64 { return u.allocated }),
		clusterField, count("Count"), count("CPUCount"), count("TresCount"),
		of("Down", "Down", func(u *utilization) int64 { return u.down }),
		of("Energy", "Energy", func(*utilization) int64 { return 0 }),
		of("Idle", "Idle", func(u *utilization) int64 { return u.idle }),
		of("Overcommitted", "Over Comm", func(*utilization) int64 { return 0 }),
		of("PlannedDown", "PLND Down", func(u *utilization) int64 { return u.planned }),
		// Slurm reads "Planned" as PlannedDown cut short; what waits is Reserved.
		of("Reserved", "Planned", func(u *utilization) int64 { return u.waiting }),
		of("Reported", "Reported", func(u *utilization) int64 { return u.reported }),
		tresField,
	}
}

// columns reads a format. Fields that are not known are named and left out, and the command fails.
func (s *session) columns(c *condition, fields []field, format string) (out cols) {
	if c.format != "" {
		format = c.format
	}
	for name := range strings.SplitSeq(format, ",") {
		list, bad := table.ParseFormat(fields, name)
		if bad != "" {
			word, _, _ := strings.Cut(name, "%")
			fmt.Fprintf(s.w.Err, " Unknown field '%s'\n", strings.TrimSpace(word))
			c.failed = true
		}
		out = append(out, list...)
	}
	return out
}

// widen makes the columns of amounts as wide as their largest number of seconds.
func widen(list cols, seconds map[string]int64) {
	for i := range list {
		if n := len(strconv.FormatInt(seconds[list[i].Name], 10)); n > list[i].Width && list[i].Width > 0 {
			list[i].Width = n
		}
	}
}

const layout = "2006-01-02T15:04:05"

// print writes a report: what it is about, and its table.
func (s *session) print(c *condition, title, units string, length bool, list cols, rows []row) int {
	out := bufio.NewWriter(s.w.Out)
	defer out.Flush()
	if !s.noHeader {
		line := strings.Repeat("-", 80)
		fmt.Fprintf(out, "%s\n%s %s - %s", line, title, c.start.Go().Format(layout),
			c.end.Add(-time.Second).Go().Format(layout))
		if length {
			fmt.Fprintf(out, " (%d secs)", (c.end-c.start)/1e6)
		}
		fmt.Fprintf(out, "\n%s\n%s\n", units, line)
	}
	table := table.Table[row]{
		Columns: list, NoHeader: s.noHeader, Parsable: s.parsable, Parsable2: s.parsable2,
	}
	table.Print(out, rows)
	return c.exit()
}

// usageUnits tells what the amounts of a report are in.
func (s *session) usageUnits(what string) string {
	if len(s.tres) > 0 {
		what = "TRES"
	}
	return "Usage reported in " + s.time.units(what)
}

// tresNames are the resources that are reported on; ok is false when one that was asked for is not known.
func (s *session) tresNames(all core.TRES) (names []string, ok bool) {
	if len(s.tres) == 0 {
		return []string{"cpu"}, true
	}
	known := []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
	for _, a := range all {
		if !slices.Contains(known, a.Name) {
			known = append(known, a.Name)
		}
	}
	for _, name := range known {
		if slices.Contains(s.tres, name) || slices.Contains(s.tres, "all") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		fmt.Fprintf(s.w.Err, "%s: fatal: No valid TRES given\n", s.w.Name)
	}
	return names, len(names) > 0
}
