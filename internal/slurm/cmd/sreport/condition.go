package sreport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// condition is what a report is to be about.
type condition struct {
	values     map[string][]string
	flags      map[string]bool
	format     string
	start, end core.Time
	top        int
	grouping   string
	failed     bool // something was not understood: the report is made, and the command fails
}

// word is a key of a condition; its value is a list unless set does something else with it.
type word struct {
	name  string
	least int
	key   string
}

// The words that all reports know, and those of each kind. A word without a value names what bare says.
var (
	common = []word{
		{"Clusters", 2, "clusters"},
		{"End", 1, "end"},
		{"Format", 1, "format"},
		{"Start", 1, "start"},
		{"All_Clusters", 4, "all_clusters"},
	}
	clusterWords = []word{
		{"Accounts", 1, "accounts"},
		{"Acct", 4, "accounts"},
		{"Tree", 4, "tree"},
		{"Users", 1, "users"},
		{"Wckeys", 1, "wckeys"},
	}
	jobWords = []word{
		{"Accounts", 2, "accounts"},
		{"Acct", 4, "accounts"},
		{"AcctAsParent", 5, "acctasparent"},
		{"FlatView", 2, "flatview"},
		{"GID", 2, "groups"},
		{"Groups", 4, "groups"},
		{"Grouping", 6, "grouping"},
		{"Jobs", 1, "jobs"},
		{"Nodes", 1, "nodes"},
		{"Partitions", 2, "partitions"},
		{"PrintJobCount", 2, "printjobcount"},
		{"Users", 1, "users"},
		{"Wckeys", 2, "wckeys"},
	}
	reservationWords = []word{{"Names", 1, "names"}, {"Nodes", 2, "nodes"}}
	userWords        = []word{
		{"Accounts", 1, "accounts"},
		{"Acct", 4, "accounts"},
		{"Group", 1, "group"},
		{"TopCount", 1, "topcount"},
		{"Users", 1, "users"},
	}
)

// flagWords are the words that have no value.
var flagWords = []string{"tree", "flatview", "acctasparent", "printjobcount", "group", "all_clusters"}

// parse reads the words after a report's name.
func (s *session) parse(known []word, bare string, args []string) condition {
	c := condition{values: map[string][]string{}, flags: map[string]bool{}, top: 10}
	var from, until string
	for _, arg := range args {
		key, value, hasValue := strings.Cut(arg, "=")
		key = strings.TrimRight(key, "+-")
		found := ""
		for _, w := range slices.Concat(known, common) {
			if match(key, w.name, w.least) {
				found = w.key
				break
			}
		}
		flag := slices.Contains(flagWords, found)
		switch {
		case strings.EqualFold(arg, "where"), strings.EqualFold(arg, "set"):
		case flag:
			c.flags[found] = true
		case !hasValue && bare != "":
			c.add(bare, arg)
		case found == "":
			fmt.Fprintf(s.w.Err, " Unknown condition: %s\nUse keyword set to modify value\n", arg)
			c.failed = true
		case found == "start":
			from = value
		case found == "end":
			until = value
		case found == "format":
			c.format = value
		case found == "grouping":
			c.grouping = value
		case found == "topcount":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 {
				c.top = n
				break
			}
			fmt.Fprintf(s.w.Err, " Bad value for topcount=%s\n", value)
			c.failed = true
		default:
			c.add(found, value)
		}
	}
	c.setWindow(s, from, until)
	return c
}

func (c *condition) add(key, value string) {
	c.values[key] = append(c.values[key], cmd.SplitList(strings.Trim(value, `"'`))...)
}

// has reports whether a condition lets a name pass.
func (c *condition) has(key, name string) bool {
	list := c.values[key]
	return len(list) == 0 || slices.ContainsFunc(list, func(v string) bool { return strings.EqualFold(v, name) })
}

// setWindow gives the whole hours that a report is about: yesterday where nobody says. The present hour is in no
// report, and each is about one hour at least.
func (c *condition) setWindow(s *session, from, until string) {
	now := s.w.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	start, end := midnight.AddDate(0, 0, -1), midnight
	set := func(to *time.Time, text string) {
		if text == "" {
			return
		}
		t, err := grammar.ParseMoment(text, now, grammar.Recent)
		if err != nil {
			fmt.Fprintf(s.w.Err, "Invalid time specification (pos=0): %s\n", text)
			return
		}
		*to = t
	}
	set(&start, from)
	set(&end, until)
	if end.After(now) {
		end = now
	}
	hour := func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, t.Location())
	}
	start, end = hour(start), hour(end)
	if end.Sub(start) < time.Hour {
		end = start.Add(time.Hour)
	}
	c.start, c.end = core.At(start), core.At(end)
}

// exit is what a report leaves with.
func (c *condition) exit() int {
	if c.failed {
		return slurm.ExitError
	}
	return 0
}
