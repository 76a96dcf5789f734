package view

import (
	"math"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Shares lists how the projects and users whom the viewer sees stand, projects by name, each followed by its users.
func (v *Viewer) Shares(now core.Time) []client.Share {
	list := []client.Share{}
	for _, s := range v.Snap.Shares(now) {
		if !v.seesShare(s.Project, s.User) {
			continue
		}
		out := client.Share{
			Project: s.Project, User: s.User, Parent: s.Parent, Shares: s.Shares, Norm: s.Norm, Effective: s.Effective,
			NormUsage: s.Part, Level: s.Level, Factor: s.Factor, Usage: s.Used.Raw, RunTRES: s.Ahead, GrpTRESMins: s.Limit,
		}
		if math.IsInf(out.Level, 0) {
			out.Level = -1 // JSON has no infinity
		}
		for i := range s.Used.TRES {
			u := &s.Used.TRES[i]
			out.UsageTRES = append(out.UsageTRES, core.Amount{Name: u.Name, Count: int64(u.Seconds / 60)})
		}
		list = append(list, out)
	}
	return list
}

// seesShare reports whether the viewer sees how somebody stands. A project's standing shows no single user's usage.
func (v *Viewer) seesShare(p core.ProjectName, u core.UserName) bool {
	if u == "" {
		return v.SeesProject(p)
	}
	return v.isSelf(u) || v.SeesProject(p) && v.SeesUser(u) && v.SeesUsage(u, p)
}
