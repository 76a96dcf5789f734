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

// limitSetters set the limits that associations and QOS share, by key.
var limitSetters = map[string]func(l *core.Limits, v string) error{
	"grpjobs":          countTo(func(l *core.Limits) **int64 { return &l.GrpJobs }),
	"grpjobsaccrue":    countTo(func(l *core.Limits) **int64 { return &l.GrpJobsAccrue }),
	"maxjobs":          countTo(func(l *core.Limits) **int64 { return &l.MaxJobs }),
	"maxjobsaccrue":    countTo(func(l *core.Limits) **int64 { return &l.MaxJobsAccrue }),
	"minpriothreshold": countTo(func(l *core.Limits) **int64 { return &l.MinPrioThreshold }),
	"grpsubmitjobs":    countTo(func(l *core.Limits) **int64 { return &l.GrpSubmit }),
	"maxsubmitjobs":    countTo(func(l *core.Limits) **int64 { return &l.MaxSubmit }),
	"grpwall":          minutesTo(func(l *core.Limits) **int64 { return &l.GrpWall }),
	"maxwall":          minutesTo(func(l *core.Limits) **int64 { return &l.MaxWall }),
	"grptres":          tresTo("", func(l *core.Limits) *core.TRES { return &l.GrpTRES }),
	"grpcpus":          tresTo("cpu", func(l *core.Limits) *core.TRES { return &l.GrpTRES }),
	"grpnodes":         tresTo("node", func(l *core.Limits) *core.TRES { return &l.GrpTRES }),
	"grpmemory":        tresTo("mem", func(l *core.Limits) *core.TRES { return &l.GrpTRES }),
	"grptresmins":      tresTo("", func(l *core.Limits) *core.TRES { return &l.GrpTRESMins }),
	"grpcpumins":       tresTo("cpu", func(l *core.Limits) *core.TRES { return &l.GrpTRESMins }),
	"grptresrunmins":   tresTo("", func(l *core.Limits) *core.TRES { return &l.GrpTRESRunMins }),
	"grpcpurunmins":    tresTo("cpu", func(l *core.Limits) *core.TRES { return &l.GrpTRESRunMins }),
	"maxtres":          tresTo("", func(l *core.Limits) *core.TRES { return &l.MaxTRESPerJob }),
	"maxcpus":          tresTo("cpu", func(l *core.Limits) *core.TRES { return &l.MaxTRESPerJob }),
	"maxnodes":         tresTo("node", func(l *core.Limits) *core.TRES { return &l.MaxTRESPerJob }),
	"maxtrespernode":   tresTo("", func(l *core.Limits) *core.TRES { return &l.MaxTRESPerNode }),
	"maxtresmins":      tresTo("", func(l *core.Limits) *core.TRES { return &l.MaxTRESMinsPerJob }),
	"maxcpumins":       tresTo("cpu", func(l *core.Limits) *core.TRES { return &l.MaxTRESMinsPerJob }),
	"maxtresrunmins":   tresTo("", func(l *core.Limits) *core.TRES { return &l.MaxTRESRunMins }),
	"maxcpurunmins":    tresTo("cpu", func(l *core.Limits) *core.TRES { return &l.MaxTRESRunMins }),
}

func countTo(at func(*core.Limits) **int64) func(*core.Limits, string) error {
	return func(l *core.Limits, v string) (err error) { *at(l), err = count(v); return err }
}

func minutesTo(at func(*core.Limits) **int64) func(*core.Limits, string) error {
	return func(l *core.Limits, v string) (err error) { *at(l), err = minutes(v); return err }
}

// tresTo sets a list of resources, or one of it that the key names.
func tresTo(one string, at func(*core.Limits) *core.TRES) func(*core.Limits, string) error {
	return func(l *core.Limits, v string) (err error) {
		if one != "" {
			v = one + "=" + v
		}
		*at(l), err = tres(*at(l), v)
		return err
	}
}

// setLimit sets a limit if the key is one.
func setLimit(l *core.Limits, key string, it item) (known bool, err error) {
	set, ok := limitSetters[key]
	if !ok {
		return false, nil
	}
	return true, set(l, it.value)
}

// target is an association: an account, or a user in one.
type target struct {
	shares *int32
	assoc  *core.Association
}

// setAssoc sets what an association carries if the key is one of that. inherited is what it may use of QOS without an
// own list.
func (s *records) setAssoc(t target, it item, inherited []core.QOSName) (known bool, err error) {
	key, ok := match(associationKeys, it.key)
	if !ok {
		return false, nil
	}
	switch key {
	case "fairshare":
		return true, setShares(t.shares, it.value)
	case "qos":
		return true, s.setQOSList(t.assoc, it, inherited)
	case "defaultqos":
		if t.assoc.DefaultQOS = ""; it.value != "-1" && it.value != "" {
			q := s.qos(it.value)
			if q == nil {
				return true, s.badQOS(it.value)
			}
			t.assoc.DefaultQOS = q.Name
		}
		return true, nil
	case "priority":
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
	return setLimit(&t.assoc.Limits, key, it)
}

func setShares(to *int32, text string) error {
	if strings.EqualFold(text, "parent") {
		*to = core.SharesParent
		return nil
	}
	n, err := count(text)
	if err != nil {
		return err
	}
	*to = 1
	if n != nil {
		*to = int32(min(*n, core.SharesParent-1))
	}
	return nil
}

// setQOSList sets, adds to or takes from the QOS that an association may use.
func (s *records) setQOSList(a *core.Association, it item, inherited []core.QOSName) error {
	if it.value == "-1" || it.value == "" { // as the account above has it
		a.QOS = nil
		return nil
	}
	names := make([]core.QOSName, 0, 4)
	for _, name := range list(it.value) {
		op := it.op
		if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
			op, name = name[0], name[1:]
		}
		q := s.qos(name)
		if q == nil {
			return s.badQOS(name)
		}
		if op != it.op {
			a.QOS = change(a.QOS, inherited, op, []core.QOSName{q.Name})
			continue
		}
		names = append(names, q.Name)
	}
	if len(names) > 0 {
		a.QOS = change(a.QOS, inherited, it.op, names)
	}
	return nil
}

// badQOS says which QOS there are.
func (s *records) badQOS(name string) error {
	var names []core.QOSName
	for i := range s.policy.QOS {
		names = append(names, s.policy.QOS[i].Name)
	}
	return &badValue{fmt.Sprintf("You gave a bad qos '%s'. Valid QOS's are %s", name, joined(names))}
}

// badValue is an error that is printed as it is.
type badValue struct{ text string }

func (e *badValue) Error() string { return e.text }

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
