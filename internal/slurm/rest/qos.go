package rest

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// qosWords are the flags of a QOS by the words that clients know.
var qosWords = map[string]core.QOSFlag{
	"DENY_LIMIT": core.DenyOnLimit, "ENFORCE_USAGE_THRESHOLD": core.EnforceUsageThreshold, "NO_DECAY": core.NoDecay,
	"OVERRIDE_PARTITION_QOS": core.OverPartQOS, "RELATIVE": core.Relative, "NO_RESERVE": core.NoReserve,
	"REQUIRED_RESERVATION": core.RequiresReservation, "PARTITION_MAXIMUM_NODE": core.PartitionMaxNodes,
	"PARTITION_MINIMUM_NODE": core.PartitionMinNodes, "PARTITION_TIME_LIMIT": core.PartitionTimeLimit,
	"USAGE_FACTOR_SAFE": core.UsageFactorSafe,
}

func qosRecord(q *core.QOS) *schema.Record {
	flags, preempt := []string{}, []string{}
	for word, f := range qosWords {
		if q.Flags&f != 0 {
			flags = append(flags, word)
		}
	}
	slices.Sort(flags)
	for _, name := range q.Preempt {
		preempt = append(preempt, string(name))
	}
	mode := []string{"DISABLED"}
	switch q.PreemptMode {
	case core.PreemptCancel, core.PreemptRequeue, core.PreemptSuspend:
		mode = []string{strings.ToUpper(string(q.PreemptMode))}
	default:
	}
	l := &q.Limits
	return schema.New("qos").Set("name", string(q.Name)).Set("id", small(q.ID)).Set("description", q.Description).
		Set("flags", flags).Set("priority", schema.Int(q.Priority)).Set("usage_factor", schema.Float(q.Factor())).
		Set("usage_threshold", positiveFloat(q.UsageThreshold)).Set("preempt.list", preempt).Set("preempt.mode", mode).
		Set("preempt.exempt_time", schema.Positive(int64(q.PreemptExempt))).Set("limits.grace_time", int64(q.Grace)).
		Set("limits.factor", positiveFloat(q.LimitFactor)).
		Set("limits.max.active_jobs.accruing", limit(l.GrpJobsAccrue)).
		Set("limits.max.active_jobs.count", limit(l.GrpJobs)).Set("limits.max.jobs.count", limit(l.GrpSubmit)).
		Set("limits.max.tres.total", report.TRESRecords(l.GrpTRES)).
		Set("limits.max.tres.minutes.total", report.TRESRecords(l.GrpTRESMins)).
		Set("limits.max.tres.minutes.per.qos", report.TRESRecords(l.GrpTRESRunMins)).
		Set("limits.max.tres.minutes.per.job", report.TRESRecords(l.MaxTRESMinsPerJob)).
		Set("limits.max.tres.minutes.per.account", report.TRESRecords(q.MaxRunMinsPerAcct)).
		Set("limits.max.tres.minutes.per.user", report.TRESRecords(q.MaxRunMinsPerUser)).
		Set("limits.max.tres.per.account", report.TRESRecords(q.MaxTRESPerProject)).
		Set("limits.max.tres.per.job", report.TRESRecords(l.MaxTRESPerJob)).
		Set("limits.max.tres.per.node", report.TRESRecords(l.MaxTRESPerNode)).
		Set("limits.max.tres.per.user", report.TRESRecords(q.MaxTRESPerUser)).
		Set("limits.max.wall_clock.per.qos", limit(l.GrpWall)).Set("limits.max.wall_clock.per.job", limit(l.MaxWall)).
		Set("limits.max.jobs.active_jobs.per.account", limit(q.MaxJobsPerProject)).
		Set("limits.max.jobs.active_jobs.per.user", limit(l.MaxJobs)).
		Set("limits.max.jobs.per.account", limit(q.MaxSubmitPerProject)).
		Set("limits.max.jobs.per.user", limit(l.MaxSubmit)).
		Set("limits.max.accruing.per.account", limit(q.MaxAccruePerProject)).
		Set("limits.max.accruing.per.user", limit(l.MaxJobsAccrue)).
		Set("limits.min.priority_threshold", limit(l.MinPrioThreshold)).
		Set("limits.min.tres.per.job", report.TRESRecords(q.MinTRESPerJob))
}

func positiveFloat(f float64) schema.Number {
	if f <= 0 {
		return schema.Number{}
	}
	return schema.Float(f)
}

func (b *books) allQOS(name string) []*schema.Record {
	list := []*schema.Record{}
	for i := range b.policy.QOS {
		if q := &b.policy.QOS[i]; name == "" || string(q.Name) == name {
			list = append(list, qosRecord(q))
		}
	}
	return list
}

func listQOS(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := []*schema.Record{}
	for _, name := range orAll(words(c.Query, "name")) {
		list = append(list, b.allQOS(name)...)
	}
	return schema.New("openapi_slurmdbd_qos_resp").Set("qos", list), nil
}

func showQOS(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := b.allQOS(c.Path("qos"))
	if len(list) == 0 {
		return nil, nothingFound("QOS", c.Path("qos"))
	}
	return schema.New("openapi_slurmdbd_qos_resp").Set("qos", list), nil
}
