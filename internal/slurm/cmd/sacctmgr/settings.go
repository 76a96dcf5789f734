package sacctmgr

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// assocSettings are the lines of what is set of an association, under the names that Slurm prints; parent is left out
// if it is empty.
func assocSettings(shares int32, a *core.Association, parent string) (lines []string) {
	put := func(name, value string) {
		if value != "" {
			lines = append(lines, fmt.Sprintf("  %-14s= %s", name, value))
		}
	}
	l := &a.Limits
	put("Fairshare", sharesText(shares))
	put("GrpJobs", num(l.GrpJobs))
	if l.GrpJobsAccrue != nil {
		lines = append(lines, fmt.Sprintf("  %-24s = %d", "GrpJobsAccrue", *l.GrpJobsAccrue))
	}
	put("GrpSubmitJobs", num(l.GrpSubmit))
	put("GrpTRES", amounts(l.GrpTRES))
	put("GrpTRESMins", amounts(l.GrpTRESMins))
	put("GrpTRESRunMins", amounts(l.GrpTRESRunMins))
	put("GrpWall", wall(l.GrpWall))
	put("MaxJobs", num(l.MaxJobs))
	put("MaxJobsPrioAcc", num(l.MaxJobsAccrue))
	put("MaxSubmitJobs", num(l.MaxSubmit))
	put("MaxTRES", amounts(l.MaxTRESPerJob))
	put("MaxTRESPerNode", amounts(l.MaxTRESPerNode))
	put("MaxTRESMins", amounts(l.MaxTRESMinsPerJob))
	put("MaxTRESRUNMins", amounts(l.MaxTRESRunMins))
	put("MaxWall", wall(l.MaxWall))
	put("MinPrioThresh", num(l.MinPrioThreshold))
	put("Parent", parent)
	if a.Priority > 0 {
		put("Priority", fmt.Sprint(a.Priority))
	}
	put("QOS", joined(a.QOS))
	put("DefQOS", string(a.DefaultQOS))
	return lines
}

// sharesText writes shares that were set.
func sharesText(n int32) string {
	switch n {
	case 0:
		return ""
	case core.SharesParent:
		return "parent"
	}
	return fmt.Sprint(n)
}

// qosSettings are the lines of what is set of a QOS.
func qosSettings(q *core.QOS) (lines []string) {
	put := func(name, value string) {
		if value != "" {
			lines = append(lines, fmt.Sprintf("  %-24s = %s", name, value))
		}
	}
	number := func(name string, v float64) {
		if v > 0 {
			put(name, fmt.Sprintf("%.4f", v))
		}
	}
	l := &q.Limits
	put("Flags", flagsText(q.Flags))
	if q.Grace > 0 {
		put("GraceTime", fmt.Sprint(int64(q.Grace)))
	}
	put("GrpJobs", num(l.GrpJobs))
	put("GrpJobsAccrue", num(l.GrpJobsAccrue))
	put("GrpSubmitJobs", num(l.GrpSubmit))
	put("GrpTRES", amounts(l.GrpTRES))
	put("GrpTRESMins", amounts(l.GrpTRESMins))
	put("GrpTRESRunMins", amounts(l.GrpTRESRunMins))
	put("GrpWall", wall(l.GrpWall))
	put("MaxJobsAccruePerAccount", num(q.MaxAccruePerProject))
	put("MaxJobsAccruePerUser", num(l.MaxJobsAccrue))
	put("MaxJobsPerAccount", num(q.MaxJobsPerProject))
	if l.MaxJobs != nil {
		lines = append(lines, fmt.Sprintf("  %-14s = %d", "MaxJobsPerUser", *l.MaxJobs))
	}
	put("MaxSubmitJobsPerAccount", num(q.MaxSubmitPerProject))
	put("MaxSubmitJobsPerUser", num(l.MaxSubmit))
	put("MaxTRESPerAccount", amounts(q.MaxTRESPerProject))
	put("MaxTRESPerJob", amounts(l.MaxTRESPerJob))
	put("MaxTRESPerNode", amounts(l.MaxTRESPerNode))
	put("MaxTRESPerUser", amounts(q.MaxTRESPerUser))
	put("MinPrioThresh", num(l.MinPrioThreshold))
	put("MinTRESPerJob", amounts(q.MinTRESPerJob))
	put("MaxTRESMins", amounts(l.MaxTRESMinsPerJob))
	put("MaxTRESRUNMinsPerAccount", amounts(q.MaxRunMinsPerAcct))
	put("MaxTRESRUNMinsPerUser", amounts(q.MaxRunMinsPerUser))
	put("MaxWall", wall(l.MaxWall))
	put("Preempt", joined(q.Preempt))
	put("PreemptMode", strings.ToUpper(string(q.PreemptMode)))
	if q.PreemptExempt > 0 {
		put("PreemptExemptTime", seconds(q.PreemptExempt))
	}
	if q.Priority > 0 {
		put("Priority", fmt.Sprint(q.Priority))
	}
	if q.UsageFactor != nil {
		put("UsageFactor", fmt.Sprintf("%.4f", *q.UsageFactor))
	}
	number("UsageThreshold", q.UsageThreshold)
	number("LimitFactor", q.LimitFactor)
	return lines
}
