package live

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Share is how an association stands: what it may use of what is above it, what it used, and what that makes.
type Share struct {
	policy.Standing
	Parent core.ProjectName
	Shares int64 // core.SharesParent: its parent's
	Used   policy.Usage
	Part   float64   // of all that was used
	Ahead  core.TRES // unit-minutes that running jobs may still use
	Limit  core.TRES // unit-minutes that may be used in all; what is not named is not limited
}

// Shares lists all associations as they stand at a moment, projects by name, each followed by its users. The flags are
// those priorities are worked out by.
func (v *Snapshot) Shares(now core.Time) []Share {
	var flags policy.Flag
	damp := int64(1)
	if v.ranking != nil {
		flags, damp = v.ranking.Config.Flags, v.ranking.Config.Damp
	}
	t := v.FairShareTree(now)
	t.FairShare(flags, damp)
	ahead := v.minutesAhead(now)
	all := 0.0
	var out []Share
	for a := range t.Associations() {
		s := Share{
			Standing: a.Standing, Parent: a.Parent, Shares: a.Shares, Used: a.Used,
			Ahead: ahead[usage.Key{Project: a.Assoc.Project, User: a.Assoc.User}], Limit: a.Limits.GrpTRESMins,
		}
		if a.ShareParent {
			s.Shares = core.SharesParent
		}
		if s.Project == policy.Root && s.User == "" {
			all = s.Used.Raw
		}
		out = append(out, s)
	}
	for i := range out {
		if all > 0 {
			out[i].Part = out[i].Used.Raw / all
		}
	}
	slices.SortStableFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
}

// minutesAhead is what running jobs may still use, in unit-minutes: of each user in a project, and of all projects
// above.
func (v *Snapshot) minutesAhead(now core.Time) map[usage.Key]core.TRES {
	users := map[usage.Key]core.TRES{}
	for j := range v.Jobs() {
		limit := j.Spec.TimeLimit
		if j.State != core.Running || j.Alloc == nil || limit <= 0 || limit >= core.Forever {
			continue
		}
		if left := int64((limit.Duration() - j.Elapsed(now)).Minutes()); left > 0 {
			at := usage.Key{Project: j.Spec.Project, User: j.Spec.User}
			held, _ := alloc.AllocatedTRES(j.Alloc)
			users[at] = users[at].Plus(held, left)
		}
	}
	out := map[usage.Key]core.TRES{}
	for at, t := range users {
		out[at] = t
		for up := at.Project; ; {
			k := usage.Key{Project: up}
			out[k] = out[k].Plus(t, 1)
			p, ok := v.Project(up)
			if !ok || up == policy.Root {
				break
			}
			up = cmp.Or(p.Parent, policy.Root)
		}
	}
	return out
}
