package sacctmgr

import (
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// qosAmounts and qosCounts are limits that only a QOS has.
var (
	qosAmounts = map[string]func(q *core.QOS) (at *core.TRES, one string){
		"maxtresperuser":           func(q *core.QOS) (*core.TRES, string) { return &q.MaxTRESPerUser, "" },
		"maxcpusperuser":           func(q *core.QOS) (*core.TRES, string) { return &q.MaxTRESPerUser, "cpu" },
		"maxnodesperuser":          func(q *core.QOS) (*core.TRES, string) { return &q.MaxTRESPerUser, "node" },
		"maxtresperaccount":        func(q *core.QOS) (*core.TRES, string) { return &q.MaxTRESPerProject, "" },
		"maxtresrunminsperuser":    func(q *core.QOS) (*core.TRES, string) { return &q.MaxRunMinsPerUser, "" },
		"maxcpurunminsperuser":     func(q *core.QOS) (*core.TRES, string) { return &q.MaxRunMinsPerUser, "cpu" },
		"maxtresrunminsperaccount": func(q *core.QOS) (*core.TRES, string) { return &q.MaxRunMinsPerAcct, "" },
		"mintres":                  func(q *core.QOS) (*core.TRES, string) { return &q.MinTRESPerJob, "" },
		"mincpus":                  func(q *core.QOS) (*core.TRES, string) { return &q.MinTRESPerJob, "cpu" },
	}
	qosCounts = map[string]func(q *core.QOS) **int64{
		"maxjobsperaccount":       func(q *core.QOS) **int64 { return &q.MaxJobsPerProject },
		"maxsubmitperaccount":     func(q *core.QOS) **int64 { return &q.MaxSubmitPerProject },
		"maxjobsaccrueperaccount": func(q *core.QOS) **int64 { return &q.MaxAccruePerProject },
	}
)

// setQOS sets a key of a QOS.
func (s *records) setQOS(q *core.QOS, it item) (known bool, err error) {
	key, ok := match(qosKeys, it.key)
	if !ok {
		return false, nil
	}
	if amounts, ok := qosAmounts[key]; ok {
		at, one := amounts(q)
		value := it.value
		if one != "" {
			value = one + "=" + value
		}
		*at, err = tres(*at, value)
		return true, err
	}
	if counts, ok := qosCounts[key]; ok {
		*counts(q), err = count(it.value)
		return true, err
	}
	switch key {
	case "description":
		q.Description = strings.ToLower(it.value)
	case "priority":
		n, err := count(it.value)
		if err != nil {
			return true, err
		}
		if q.Priority = 0; n != nil {
			q.Priority = uint32(*n)
		}
	case "flags":
		return true, setFlags(q, it)
	case "gracetime":
		return true, setSpan(&q.Grace, it.value, 1)
	case "preemptexempttime":
		return true, setSpan(&q.PreemptExempt, it.value, 60)
	case "preempt":
		return true, s.setPreempt(q, it)
	case "preemptmode":
		return true, setPreemptMode(q, it.value)
	case "usagefactor":
		var f float64
		if err = setNumber(&f, it.value); err == nil {
			if q.UsageFactor = &f; it.value == "-1" {
				q.UsageFactor = nil
			}
		}
		return true, err
	case "usagethreshold":
		return true, setNumber(&q.UsageThreshold, it.value)
	case "limitfactor":
		return true, setNumber(&q.LimitFactor, it.value)
	default:
		return setLimit(&q.Limits, key, it)
	}
	return true, nil
}

func setFlags(q *core.QOS, it item) error {
	if it.value == "-1" {
		q.Flags = 0
		return nil
	}
	f, err := core.ParseQOSFlags(it.value)
	if err != nil {
		return err
	}
	switch it.op {
	case '+':
		q.Flags |= f
	case '-':
		q.Flags &^= f
	default:
		q.Flags = f
	}
	return nil
}

// setSpan reads a time; a number alone counts in units of so many seconds.
func setSpan(at *core.Seconds, text string, unit int64) error {
	if text == "-1" {
		*at = 0
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if n *= unit; err != nil {
		n, err = grammar.ParseTimeSpan(text)
	}
	*at = core.Seconds(max(0, n))
	return err
}

func setNumber(at *float64, text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < -1 {
		return fmt.Errorf("%q is not a number", text)
	}
	*at = max(0, v)
	return nil
}

func (s *records) setPreempt(q *core.QOS, it item) error {
	var names []core.QOSName
	if it.value != "-1" {
		for _, n := range list(it.value) {
			other := s.qos(n)
			if other == nil {
				return s.badQOS(n)
			}
			names = append(names, other.Name)
		}
	}
	q.Preempt = change(q.Preempt, nil, it.op, names)
	return nil
}

func setPreemptMode(q *core.QOS, text string) error {
	switch mode := core.PreemptMode(strings.ToLower(text)); mode {
	case "cluster", "-1":
		q.PreemptMode = ""
	case core.PreemptOff, core.PreemptCancel, core.PreemptRequeue, core.PreemptSuspend, core.PreemptWithin:
		q.PreemptMode = mode
	default:
		return fmt.Errorf("%q is none of cluster, off, cancel, requeue, suspend, within", text)
	}
	return nil
}
