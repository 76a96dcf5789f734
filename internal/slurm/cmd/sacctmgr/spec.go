package sacctmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// item is one KEY=VALUE of a command line; a name that stands alone has no key.
type item struct {
	key   string // lower case
	op    byte   // '=', '+' or '-'
	value string
	raw   string
}

func parseItem(text string) item {
	at := strings.IndexByte(text, '=')
	if at < 0 {
		return item{value: text, op: '=', raw: text}
	}
	it := item{op: '=', raw: text, value: strings.Trim(text[at+1:], `"'`)}
	if at > 0 && (text[at-1] == '+' || text[at-1] == '-') {
		it.op = text[at-1]
		at--
	}
	it.key = strings.ToLower(text[:at])
	return it
}

// items splits the arguments of a verb: what is to be found, and what is to be set.
func items(args []string) (where, set []item) {
	into := &where
	for _, a := range args {
		switch strings.ToLower(a) {
		case "where":
			into = &where
			continue
		case "set":
			into = &set
			continue
		}
		*into = append(*into, parseItem(a))
	}
	return where, set
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// is reports whether a key is one of some names, any of which may be cut short as long as it stays clear.
func (it item) is(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return it.key == n })
}

// count reads a limit on a number; -1 takes it away.
func count(text string) (*int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	if n == -1 {
		return nil, nil
	}
	return &n, nil
}

// minutes reads a limit on time; -1 takes it away.
func minutes(text string) (*int64, error) {
	if text == "-1" || text == "" {
		return nil, nil
	}
	n, err := grammar.ParseTimeLimit(text)
	if err != nil {
		return nil, err
	}
	if n == grammar.Unlimited {
		return nil, nil
	}
	return &n, nil
}

// tres lays named resources over a limit; a count of -1 takes one away.
func tres(old core.TRES, text string) (core.TRES, error) {
	if text == "" || text == "-1" {
		return nil, nil
	}
	out := slices.Clone(old)
	for _, part := range list(text) {
		name, value, _ := strings.Cut(part, "=")
		if value == "-1" {
			out = slices.DeleteFunc(out, func(a core.Amount) bool { return a.Name == strings.ToLower(name) })
			continue
		}
		one, err := core.ParseTRES(part)
		if err != nil {
			return nil, err
		}
		for _, a := range one {
			out = slices.DeleteFunc(out, func(b core.Amount) bool { return a.Name == b.Name })
			out = core.TRESOf(append(out, a)...)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// limitKeys are the limits that associations and QOS share, by all the names they are known under.
var limitKeys = []struct {
	names []string
	set   func(l *core.Limits, v string) error
}{
	{[]string{"grpjobs"}, func(l *core.Limits, v string) (err error) { l.GrpJobs, err = count(v); return }},
	{[]string{"grpjobsaccrue"}, func(l *core.Limits, v string) (err error) { l.GrpJobsAccrue, err = count(v); return }},
	{[]string{"maxjobsaccrue", "maxjobsaccrueperuser", "maxjobsaccruepu"}, func(l *core.Limits, v string) (err error) {
		l.MaxJobsAccrue, err = count(v)
		return
	}},
	{[]string{"minpriothreshold", "minpriothresh"}, func(l *core.Limits, v string) (err error) {
		l.MinPrioThreshold, err = count(v)
		return
	}},
	{[]string{"grpsubmitjobs", "grpsubmit"}, func(l *core.Limits, v string) (err error) {
		l.GrpSubmit, err = count(v)
		return
	}},
	{[]string{"grptres"}, func(l *core.Limits, v string) (err error) { l.GrpTRES, err = tres(l.GrpTRES, v); return }},
	{[]string{"grpcpus"}, func(l *core.Limits, v string) (err error) {
		l.GrpTRES, err = tres(l.GrpTRES, "cpu="+v)
		return
	}},
	{[]string{"grpnodes"}, func(l *core.Limits, v string) (err error) {
		l.GrpTRES, err = tres(l.GrpTRES, "node="+v)
		return
	}},
	{[]string{"grpmem", "grpmemory"}, func(l *core.Limits, v string) (err error) {
		l.GrpTRES, err = tres(l.GrpTRES, "mem="+v)
		return
	}},
	{[]string{"grptresmins"}, func(l *core.Limits, v string) (err error) {
		l.GrpTRESMins, err = tres(l.GrpTRESMins, v)
		return
	}},
	{[]string{"grpcpumins"}, func(l *core.Limits, v string) (err error) {
		l.GrpTRESMins, err = tres(l.GrpTRESMins, "cpu="+v)
		return
	}},
	{[]string{"grptresrunmins", "grptresrunmin"}, func(l *core.Limits, v string) (err error) {
		l.GrpTRESRunMins, err = tres(l.GrpTRESRunMins, v)
		return
	}},
	{[]string{"grpwall"}, func(l *core.Limits, v string) (err error) { l.GrpWall, err = minutes(v); return }},
	{[]string{"maxjobs", "maxjobsperuser", "maxjobspu"}, func(l *core.Limits, v string) (err error) {
		l.MaxJobs, err = count(v)
		return
	}},
	{[]string{
		"maxsubmitjobs", "maxsubmit", "maxsubmitjobsperuser", "maxsubmitjobspu", "maxsubmitperuser",
		"maxsubmitpu",
	}, func(l *core.Limits, v string) (err error) { l.MaxSubmit, err = count(v); return }},
	{[]string{"maxtres", "maxtresperjob", "maxtrespj"}, func(l *core.Limits, v string) (err error) {
		l.MaxTRESPerJob, err = tres(l.MaxTRESPerJob, v)
		return
	}},
	{[]string{"maxcpus", "maxcpusperjob"}, func(l *core.Limits, v string) (err error) {
		l.MaxTRESPerJob, err = tres(l.MaxTRESPerJob, "cpu="+v)
		return
	}},
	{[]string{"maxnodes", "maxnodesperjob"}, func(l *core.Limits, v string) (err error) {
		l.MaxTRESPerJob, err = tres(l.MaxTRESPerJob, "node="+v)
		return
	}},
	{[]string{"maxtrespernode", "maxtrespn"}, func(l *core.Limits, v string) (err error) {
		l.MaxTRESPerNode, err = tres(l.MaxTRESPerNode, v)
		return
	}},
	{[]string{"maxtresmins", "maxtresminsperjob", "maxtresminspj"}, func(l *core.Limits, v string) (err error) {
		l.MaxTRESMinsPerJob, err = tres(l.MaxTRESMinsPerJob, v)
		return
	}},
	{[]string{"maxcpumins", "maxcpuminsperjob"}, func(l *core.Limits, v string) (err error) {
		l.MaxTRESMinsPerJob, err = tres(l.MaxTRESMinsPerJob, "cpu="+v)
		return
	}},
	{[]string{"maxwall", "maxwalldurationperjob", "maxwallperjob"}, func(l *core.Limits, v string) (err error) {
		l.MaxWall, err = minutes(v)
		return
	}},
}

// setLimit sets a limit if the key is one.
func setLimit(l *core.Limits, it item) (known bool, err error) {
	for _, k := range limitKeys {
		if it.is(k.names...) {
			return true, k.set(l, it.value)
		}
	}
	return false, nil
}

// target is an association: an account, or a user in one.
type target struct {
	shares *int32
	assoc  *core.Association
}

// setAssoc sets what an association carries if the key is one of that. inherited is what it may use of QOS without an
// own list.
func (s *run) setAssoc(t target, it item, inherited []core.QOSName) (known bool, err error) {
	switch {
	case it.is("fairshare", "shares", "share", "rawshares"):
		if strings.EqualFold(it.value, "parent") {
			return true, fmt.Errorf("fairshare=parent is not supported; give a number")
		}
		n, err := count(it.value)
		if err != nil {
			return true, err
		}
		*t.shares = 1
		if n != nil {
			*t.shares = int32(min(*n, 1<<31-1))
		}
		return true, nil
	case it.is("qos", "qoslevel"):
		names := make([]core.QOSName, 0, 4)
		for _, name := range list(it.value) {
			op := it.op
			if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
				op, name = name[0], name[1:]
			}
			q := s.qos(name)
			if q == nil {
				return true, fmt.Errorf("%w: %s", errUnknownQOS, name)
			}
			if op != it.op {
				if t.assoc.QOS, err = change(t.assoc.QOS, inherited, op, []core.QOSName{q.Name}), nil; err != nil {
					return true, err
				}
				continue
			}
			names = append(names, q.Name)
		}
		if len(names) > 0 || it.value == "" {
			t.assoc.QOS = change(t.assoc.QOS, inherited, it.op, names)
		}
		return true, nil
	case it.is("defaultqos", "defqos"):
		t.assoc.DefaultQOS = core.QOSName(it.value)
		if it.value == "-1" {
			t.assoc.DefaultQOS = ""
		}
		return true, nil
	case it.is("priority"):
		n, err := count(it.value)
		if err != nil {
			return true, err
		}
		t.assoc.Priority = 0
		if n != nil {
			t.assoc.Priority = uint32(*n)
		}
		return true, nil
	}
	return setLimit(&t.assoc.Limits, it)
}

var errUnknownQOS = fmt.Errorf("there is no QOS of that name")

// change adds to a list, takes from it, or replaces it.
func change(own, inherited []core.QOSName, op byte, names []core.QOSName) []core.QOSName {
	base := own
	if len(base) == 0 {
		base = inherited
	}
	out := slices.Clone(base)
	switch op {
	case '+':
		out = append(out, names...)
	case '-':
		out = slices.DeleteFunc(out, func(q core.QOSName) bool { return slices.Contains(names, q) })
	default:
		out = names
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// setQOS sets a key of a QOS.
func setQOS(q *core.QOS, it item) (known bool, err error) {
	accounts := func(at **int64) (bool, error) { *at, err = count(it.value); return true, err }
	amounts := func(at *core.TRES) (bool, error) { *at, err = tres(*at, it.value); return true, err }
	number := func(at *float64) (bool, error) {
		v, err := strconv.ParseFloat(it.value, 64)
		if err != nil || v < -1 {
			return true, fmt.Errorf("%q is not a number", it.value)
		}
		*at = max(0, v)
		return true, nil
	}
	span := func(at *core.Seconds) (bool, error) {
		if it.value == "-1" {
			*at = 0
			return true, nil
		}
		read := grammar.ParseTimeSpan
		if !strings.ContainsAny(it.value, ":-") { // seconds, unlike time limits
			read = func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
		}
		n, bad := read(it.value)
		*at = core.Seconds(max(0, n))
		return true, bad
	}
	switch {
	case it.is("description", "descr", "desc"):
		q.Description = it.value
	case it.is("priority"):
		n, err := count(it.value)
		if err != nil {
			return true, err
		}
		q.Priority = 0
		if n != nil {
			q.Priority = uint32(*n)
		}
	case it.is("flags", "flag"):
		if it.value == "-1" {
			q.Flags = 0
			return true, nil
		}
		f, err := core.ParseQOSFlags(it.value)
		if err != nil {
			return true, err
		}
		switch it.op {
		case '+':
			q.Flags |= f
		case '-':
			q.Flags &^= f
		default:
			q.Flags = f
		}
	case it.is("gracetime", "grace"):
		return span(&q.Grace)
	case it.is("preemptexempttime", "preemptexempt"):
		return span(&q.PreemptExempt)
	case it.is("preempt"):
		var names []core.QOSName
		for _, n := range list(it.value) {
			names = append(names, core.QOSName(n))
		}
		q.Preempt = change(q.Preempt, nil, it.op, names)
	case it.is("preemptmode"):
		switch mode := core.PreemptMode(strings.ToLower(it.value)); mode {
		case "cluster":
			q.PreemptMode = ""
		case core.PreemptOff, core.PreemptCancel, core.PreemptRequeue, core.PreemptSuspend, core.PreemptWithin:
			q.PreemptMode = mode
		default:
			return true, fmt.Errorf("%q is none of cluster, off, cancel, requeue, suspend, within", it.value)
		}
	case it.is("usagefactor"):
		var f float64
		if known, err = number(&f); err == nil {
			if q.UsageFactor = &f; it.value == "-1" {
				q.UsageFactor = nil
			}
		}
		return known, err
	case it.is("usagethreshold", "usagethres"):
		return number(&q.UsageThreshold)
	case it.is("limitfactor"):
		return number(&q.LimitFactor)
	case it.is("maxjobsperaccount", "maxjobspa"):
		return accounts(&q.MaxJobsPerProject)
	case it.is("maxsubmitjobsperaccount", "maxsubmitperaccount", "maxsubmitpa"):
		return accounts(&q.MaxSubmitPerProject)
	case it.is("maxjobsaccrueperaccount", "maxjobsaccruepa"):
		return accounts(&q.MaxAccruePerProject)
	case it.is("maxtresperuser", "maxtrespu"):
		return amounts(&q.MaxTRESPerUser)
	case it.is("maxtresperaccount", "maxtrespa"):
		return amounts(&q.MaxTRESPerProject)
	case it.is("maxtresrunminsperuser", "maxtresrunminspu"):
		return amounts(&q.MaxRunMinsPerUser)
	case it.is("maxtresrunminsperaccount", "maxtresrunminspa"):
		return amounts(&q.MaxRunMinsPerAcct)
	case it.is("mintres", "mintresperjob"):
		return amounts(&q.MinTRESPerJob)
	default:
		return setLimit(&q.Limits, it)
	}
	return true, nil
}
