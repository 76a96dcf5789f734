package policyfile

import "bireme.dev/bireme/internal/core"

// field is a key of an entry; at gives a pointer to what it sets, of a type that value.go knows.
type field[T any] struct {
	name string
	at   func(*T) any
}

// Pointers to what is written in a way of its own.
type (
	minutes struct{ n **int64 } // as a length of time
	part    struct{ n *int32 }  // as shares, or parent
	// budget is so many minutes of a resource, told in hours; the rest of the amounts are told in minutes.
	budget struct {
		all  *core.TRES
		name string
	}
	rest struct{ all *core.TRES }
)

// budgets are the resources whose minutes may be told in hours.
var budgets = map[string]string{"gres/gpu": "gpu_hours", "cpu": "cpu_hours"}

func limitFields[T any](of func(*T) *core.Limits) []field[T] {
	return []field[T]{
		{"gpu_hours", func(v *T) any { return budget{&of(v).GrpTRESMins, "gres/gpu"} }},
		{"cpu_hours", func(v *T) any { return budget{&of(v).GrpTRESMins, "cpu"} }},
		{"grp_jobs", func(v *T) any { return &of(v).GrpJobs }},
		{"grp_submit", func(v *T) any { return &of(v).GrpSubmit }},
		{"grp_jobs_accrue", func(v *T) any { return &of(v).GrpJobsAccrue }},
		{"grp_tres", func(v *T) any { return &of(v).GrpTRES }},
		{"grp_tres_mins", func(v *T) any { return rest{&of(v).GrpTRESMins} }},
		{"grp_tres_run_mins", func(v *T) any { return &of(v).GrpTRESRunMins }},
		{"grp_wall", func(v *T) any { return minutes{&of(v).GrpWall} }},
		{"max_jobs", func(v *T) any { return &of(v).MaxJobs }},
		{"max_submit", func(v *T) any { return &of(v).MaxSubmit }},
		{"max_jobs_accrue", func(v *T) any { return &of(v).MaxJobsAccrue }},
		{"max_tres_per_job", func(v *T) any { return &of(v).MaxTRESPerJob }},
		{"max_tres_per_node", func(v *T) any { return &of(v).MaxTRESPerNode }},
		{"max_tres_mins_per_job", func(v *T) any { return &of(v).MaxTRESMinsPerJob }},
		{"max_tres_run_mins", func(v *T) any { return &of(v).MaxTRESRunMins }},
		{"max_wall", func(v *T) any { return minutes{&of(v).MaxWall} }},
		{"min_prio_threshold", func(v *T) any { return &of(v).MinPrioThreshold }},
	}
}

func assocFields[T any](of func(*T) *core.Association) []field[T] {
	return append([]field[T]{
		{"priority", func(v *T) any { return &of(v).Priority }},
		{"qos", func(v *T) any { return &of(v).QOS }},
		{"default_qos", func(v *T) any { return &of(v).DefaultQOS }},
	}, limitFields(func(v *T) *core.Limits { return &of(v).Limits })...)
}

var qosFields = append([]field[core.QOS]{
	{"description", func(q *core.QOS) any { return &q.Description }},
	{"priority", func(q *core.QOS) any { return &q.Priority }},
	{"flags", func(q *core.QOS) any { return &q.Flags }},
	{"preempt", func(q *core.QOS) any { return &q.Preempt }},
	{"preempt_mode", func(q *core.QOS) any { return &q.PreemptMode }},
	{"grace", func(q *core.QOS) any { return &q.Grace }},
	{"preempt_exempt", func(q *core.QOS) any { return &q.PreemptExempt }},
	{"usage_factor", func(q *core.QOS) any { return &q.UsageFactor }},
	{"usage_threshold", func(q *core.QOS) any { return &q.UsageThreshold }},
	{"limit_factor", func(q *core.QOS) any { return &q.LimitFactor }},
	{"max_jobs_per_account", func(q *core.QOS) any { return &q.MaxJobsPerProject }},
	{"max_submit_per_account", func(q *core.QOS) any { return &q.MaxSubmitPerProject }},
	{"max_jobs_accrue_per_account", func(q *core.QOS) any { return &q.MaxAccruePerProject }},
	{"max_tres_per_user", func(q *core.QOS) any { return &q.MaxTRESPerUser }},
	{"max_tres_per_account", func(q *core.QOS) any { return &q.MaxTRESPerProject }},
	{"max_tres_run_mins_per_user", func(q *core.QOS) any { return &q.MaxRunMinsPerUser }},
	{"max_tres_run_mins_per_account", func(q *core.QOS) any { return &q.MaxRunMinsPerAcct }},
	{"min_tres_per_job", func(q *core.QOS) any { return &q.MinTRESPerJob }},
}, limitFields(func(q *core.QOS) *core.Limits { return &q.Limits })...)

var projectFields = append([]field[core.Project]{
	{"description", func(p *core.Project) any { return &p.Description }},
	{"organization", func(p *core.Project) any { return &p.Organization }},
	{"runtime", func(p *core.Project) any { return &p.Runtime }},
	{"trusted", func(p *core.Project) any { return &p.Trusted }},
	{"shares", func(p *core.Project) any { return part{&p.Shares} }},
}, assocFields(func(p *core.Project) *core.Association { return &p.Assoc })...)

var memberFields = append([]field[core.Member]{
	{"role", func(m *core.Member) any { return &m.Role }},
	{"shares", func(m *core.Member) any { return part{&m.Shares} }},
}, assocFields(func(m *core.Member) *core.Association { return &m.Assoc })...)

func names[T any](fields []field[T], more ...string) []string {
	out := make([]string, 0, len(fields)+len(more))
	for _, f := range fields {
		out = append(out, f.name)
	}
	return append(out, more...)
}
