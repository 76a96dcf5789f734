package state

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

func init() { // after script_test.go's
	commands["usage"] = (*script).usage
	commands["factors"] = (*script).factors
	commands["shares"] = (*script).shares
}

// words splits a list; nothing is no list.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func splitNames[T ~string](text string) (out []T) {
	for _, w := range words(text) {
		out = append(out, T(w))
	}
	return out
}

// access reads who may use a partition: qos= allowqos= denyqos= allowaccounts= denyaccounts= allowgroups= rootonly=
// factor=
func (s *script) access(p *core.Partition, o args) {
	p.QOS, p.RootOnly = core.QOSName(o["qos"]), o["rootonly"] != ""
	p.AllowQOS, p.DenyQOS = splitNames[core.QOSName](o["allowqos"]), splitNames[core.QOSName](o["denyqos"])
	p.AllowProjects, p.DenyProjects = splitNames[core.ProjectName](o["allowaccounts"]),
		splitNames[core.ProjectName](o["denyaccounts"])
	p.AllowGroups = words(o["allowgroups"])
	if v := o["factor"]; v != "" {
		p.PriorityFactor = int32(s.num(v))
	}
}

// limitConfig reads settings of limits, usage and priorities.
func (s *script) limitConfig(k, v string) bool {
	seconds := func() core.Seconds { return core.Seconds(s.dur(v) / time.Second) }
	prio := func() *Priority {
		if s.cfg.Priority == nil {
			s.cfg.Priority = &Priority{}
		}
		return s.cfg.Priority
	}
	switch k {
	case "enforce": // associations,qos,safe,nolimits
		for _, w := range words(v) {
			s.cfg.EnforceProjects = s.cfg.EnforceProjects || w == "associations"
			s.cfg.EnforceQOS = s.cfg.EnforceQOS || w == "qos"
			s.cfg.Safe = s.cfg.Safe || w == "safe"
			s.cfg.NoLimits = s.cfg.NoLimits || w == "nolimits"
		}
	case "halflife":
		s.cfg.Charges.HalfLife = seconds()
	case "reset":
		p, err := policy.ParseResetPeriod(v)
		if err != nil {
			s.t.Fatal(err)
		}
		s.cfg.Charges.Reset = p
	case "weights": // age:1000,qos:500
		for _, w := range words(v) {
			name, n, _ := strings.Cut(w, ":")
			to := map[string]*uint32{
				"age": &prio().Weights.Age, "assoc": &prio().Weights.Assoc, "fairshare": &prio().Weights.FairShare,
				"size":      &prio().Weights.JobSize,
				"partition": &prio().Weights.Partition, "qos": &prio().Weights.QOS,
			}[name]
			if to == nil {
				s.t.Fatalf("weight %s?", name)
			}
			*to = uint32(s.num(n))
		}
	case "tresweights": // cpu:100,gres/gpu:5000
		list, err := policy.ParseWeights(strings.ReplaceAll(v, ":", "="))
		if err != nil {
			s.t.Fatal(err)
		}
		prio().Weights.TRES = list
	case "billing": // of the partition main
		list, err := policy.ParseWeights(strings.ReplaceAll(v, ":", "="))
		if err != nil {
			s.t.Fatal(err)
		}
		s.cfg.Charges.Billing = map[core.PartitionName][]policy.Weight{"main": list}
	case "flags":
		f, err := policy.ParseFlags(v)
		if err != nil {
			s.t.Fatal(err)
		}
		prio().Flags, s.cfg.Charges.Flags = f, f
	case "runweight":
		s.cfg.RunWeight = s.num(v)
	case "period":
		prio().Period = seconds()
	default:
		return false
	}
	return true
}

// usage shows what everybody used: minutes of jobs and of resources, in all and with each QOS.
func (s *script) usage(_ []string, _ args) error {
	show := func(who string, r *policy.Reading) {
		t := ""
		for _, f := range r.TRES {
			t += " " + f.Name + "=" + fmtMinutes(f.Seconds)
		}
		s.printf("%s  wall=%s billing=%s%s", who, fmtMinutes(r.Wall), fmtMinutes(r.Raw), t)
	}
	for _, m := range s.w.st.rec.Usage().List() {
		m = s.w.st.rec.Usage().Decay.Read(m, s.w.now)
		show(string(m.User)+" in "+string(m.Project), &m.All)
		for i := range m.QOS {
			show("  with "+string(m.QOS[i].Name), &m.QOS[i].Reading)
		}
	}
	return nil
}

func fmtMinutes(seconds float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(seconds/60, 'f', 2, 64), "0"), ".")
}

// factors JOB…: what a job's priority is made of.
func (s *script) factors(p []string, _ args) error {
	v := s.w.st.Snapshot()
	for _, id := range p {
		j, err := s.w.st.rec.LiveJob(s.id(id))
		if err != nil {
			return err
		}
		f := v.Factors(j)
		t := fmt.Sprintf("%s  %d", label(j), j.Priority)
		if f.Fixed {
			t += " set"
		}
		if f.Base != 0 {
			t += fmt.Sprintf(" base %d", f.Base)
		}
		for _, x := range f.List {
			if x.Weight != 0 {
				t += fmt.Sprintf(" %s %.4g×%g", x.Name, x.Value, x.Weight)
			}
		}
		for _, x := range []struct {
			name string
			n    int64
		}{{"run", f.Run}, {"site", f.Site}, {"nice", f.Nice}} {
			if x.n != 0 {
				t += fmt.Sprintf(" %s %d", x.name, x.n)
			}
		}
		s.printf("%s", t)
	}
	return nil
}

// shares shows how everybody stands.
func (s *script) shares(_ []string, _ args) error {
	for _, x := range s.w.st.Snapshot().Shares(s.w.now) {
		who := "project " + string(x.Project)
		if x.User != "" {
			who = "  " + string(x.User)
		}
		s.printf("%s  shares %d norm %.3f  used %s effective %.3f  level %.3f  factor %.3f", who, x.Shares, x.Norm,
			fmtMinutes(x.Used.Raw), x.Effective, x.Level, x.Factor)
	}
	return nil
}

// rank reads a run's priority: runprio=
func (s *script) rank(x *core.Extra, o args) bool {
	if v := o["runprio"]; v != "" {
		x.RunPriority = int32(s.num(v))
	}
	return x.RunPriority != 0
}
