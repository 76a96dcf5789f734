package golden

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// masks are what differs from run to run, in both texts.
var masks = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d(:\d\d)?( \d{4})?\b`), "DATE"},
	{
		regexp.MustCompile(
			`\b(RunTime|CPULoad|FreeMem|BootTime|SlurmdStartTime|LastBusyTime|Version|SubmitTime|AccrueTime|` +
				`EligibleTime|StartTime|EndTime|LastSchedEval|SuspendTime|PreemptEligibleTime|Priority|AllocNode:Sid)=\S+`), "$1=…",
	},
	{regexp.MustCompile(`\bOS=[^=]*@\S+`), "OS=…"},
	{regexp.MustCompile(`\bNodeAddr=\S+ NodeHostName=\S+( Port=\d+)?`), "NodeAddr=…"},
	{regexp.MustCompile(`\bslurmstepd-\w+:`), "slurmstepd:"}, // several of them on the recorder's host
	{regexp.MustCompile(`\b(SLURM_(\w+_(PORT|IPADDR|COMM_HOST|TIME)|TASK_PID))=\S*`), "$1=…"},
}

var (
	tokens = regexp.MustCompile(`\d+:\d\d(?::\d\d)?(?:\.\d+)?|\d+|[^\d\s]+`)
	clock  = regexp.MustCompile(`^\d+:\d\d(:\d\d)?(\.\d+)?$`)
)

// reader compares two texts token by token. Job numbers may differ as long as the same stands for the same throughout.
type reader struct {
	names [][2]string // host names and directories of this run, and what the recording calls them
	ids   map[string]string
	taken map[string]string
}

// rules are what waived.txt says of a recording.
type rules struct {
	drop []*regexp.Regexp // lines that need not be there
	edit []edit           // parts of lines that need not be the same
	any  bool             // its lines come in any order
	once bool             // lines that say the same count once
}

type edit struct {
	re   *regexp.Regexp
	with string
}

func (r rules) and(o rules) rules {
	return rules{
		drop: append(slices.Clone(r.drop), o.drop...), edit: append(slices.Clone(r.edit), o.edit...),
		any: r.any || o.any, once: r.once || o.once,
	}
}

// alike lists the lines in which got says something else than want.
func (r *reader) alike(want, got string, waived rules) []string {
	r.ids, r.taken = map[string]string{}, map[string]string{}
	for _, n := range r.names {
		got = strings.ReplaceAll(got, n[0], n[1])
	}
	w, g := r.lines(want, waived), r.lines(got, waived)
	if waived.any {
		anyOrder(w)
		anyOrder(g)
	}
	if waived.once {
		w, g = slices.Compact(w), slices.Compact(g)
	}
	var out []string
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(g):
			out = append(out, "missing: "+w[i])
		case i >= len(w):
			out = append(out, "too much: "+g[i])
		case !r.same(w[i], g[i]):
			out = append(out, fmt.Sprintf("recorded %q\n     got %q", w[i], g[i]))
		}
	}
	return out
}

// lines masks and splits; waived lines and blanks at the end go.
func (r *reader) lines(text string, waived rules) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if slices.ContainsFunc(waived.drop, func(re *regexp.Regexp) bool { return re.MatchString(line) }) {
			continue
		}
		for _, m := range masks {
			line = m.re.ReplaceAllString(line, m.with)
		}
		for _, e := range waived.edit {
			line = e.re.ReplaceAllString(line, e.with)
		}
		out = append(out, line)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// anyOrder sorts lines by what they say besides numbers, and those that say the same by those.
func anyOrder(lines []string) {
	words := regexp.MustCompile(`[^\d\s]+`)
	key := func(line string) string { return strings.Join(words.FindAllString(line, -1), " ") }
	numbers := regexp.MustCompile(`\d+`)
	count := func(line string) []int {
		var list []int
		for _, n := range numbers.FindAllString(line, -1) {
			i, _ := strconv.Atoi(n)
			list = append(list, i)
		}
		return list
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), slices.Compare(count(a), count(b)))
	})
}

func (r *reader) same(want, got string) bool {
	a, b := tokens.FindAllString(want, -1), tokens.FindAllString(got, -1)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] && r.ids[a[i]] == "" {
			continue
		}
		limit := i > 0 && strings.Contains(a[i-1], "imit")
		switch {
		case clock.MatchString(a[i]) && clock.MatchString(b[i]) && !limit:
		case r.ids[a[i]] != "" && r.ids[a[i]] == b[i]:
		case number(a[i]) && number(b[i]):
			// A number of a job, or an amount: the first that differs decides which.
			if was, ok := r.ids[a[i]]; ok && was != b[i] && a[i] != b[i] {
				return false
			}
			if was, ok := r.taken[b[i]]; ok && was != a[i] && a[i] != b[i] {
				return false
			}
			if a[i] != b[i] {
				if !jobNumber(a, i) {
					return false
				}
				r.ids[a[i]], r.taken[b[i]] = b[i], a[i]
			}
		default:
			return false
		}
	}
	return true
}

func number(s string) bool { _, err := strconv.Atoi(s); return err == nil }

// before are the words after which a number is a job's.
var before = regexp.MustCompile(
	`(?i)(job|jobid=|job_id=|jobid|id=|allocation|hetjobid=|afterok:|afterany:|slurm-|out\.|aenv\.|error:|arrayjobid=|` +
		`het_job_id=|_id\w*=|jobid_\w+=|sinfo|StepId=|physics_|step\s*creation|step|for)$`)

var component = regexp.MustCompile(`JOB_?ID_(HET|PACK)_GROUP_$`)

// jobNumber reports whether the token at i may be a job's number: it begins its line, or follows a word that says so.
func jobNumber(line []string, i int) bool {
	return i == 0 || before.MatchString(line[i-1]) || i > 1 && line[i-1] == "|" ||
		i > 2 && line[i-1] == "=" && component.MatchString(line[i-3]) // SLURM_JOB_ID_HET_GROUP_1=
}
