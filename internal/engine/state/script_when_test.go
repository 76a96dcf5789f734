package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/sched"
)

func init() {
	commands["start"] = (*script).start
	commands["het"] = (*script).het
	commands["offer"] = (*script).offer
	commands["grow"] = (*script).grow
	commands["make"] = (*script).make
}

// start tells when each pending job should start, as squeue --start does: after how long, where if that is known, and
// "about" if it is a forecast.
func (s *script) start(_ []string, _ args) error {
	plan := s.w.p.Pass(s.w.now)
	f := s.w.p.Forecast(plan)
	for !f.Step(1000) {
	}
	plan = plan.WithForecast(f)
	for j := range s.w.st.Snapshot().Jobs() {
		if j.State != core.Pending {
			continue
		}
		w := plan.Reason(j)
		text := "not known"
		switch {
		case slices.ContainsFunc(plan.Starts, func(st sched.Start) bool { return st.Job == j.ID }):
			text = "now"
		case w.Estimate:
			text = "in about " + w.Expected.Sub(s.w.now).String()
		case w.Expected != 0:
			text = "in " + w.Expected.Sub(s.w.now).String()
		}
		if on := plan.Nodes(j.ID); on != nil {
			text += fmt.Sprint(" on ", on)
		}
		s.printf("%s  %s  (%s)", label(j), text, w.Code)
	}
	return nil
}

// het NAME … 1=cpus:2,time:1h 2=…: a het job; the numbered options are those of its other components.
func (s *script) het(p []string, o args) error {
	first, parts := args{}, map[string]args{}
	for k, v := range o {
		if _, err := strconv.Atoi(k); err != nil {
			first[k] = v
			continue
		}
		parts[k] = args{"user": o["user"]}
		for item := range strings.SplitSeq(v, ",") {
			name, value, _ := strings.Cut(item, ":")
			parts[k][name] = value
		}
	}
	lead := s.spec(p[0], first)
	in := &Submit{By: core.Identity{User: lead.User, UID: lead.UID}, Spec: lead, Strict: o["strict"] != ""}
	for k := 1; parts[strconv.Itoa(k)] != nil; k++ {
		in.Components = append(in.Components, s.spec(p[0], parts[strconv.Itoa(k)]))
	}
	reply, err := s.w.do(in)
	if err == nil {
		s.printf("job %d with %d components", reply.(*Submitted).ID, 1+len(in.Components))
	}
	return err
}

// offer NAME cpus= mem= gres= features= price= max= powerup= partition= project=
func (s *script) offer(p []string, o args) error {
	x := core.Offer{Name: p[0], Hardware: core.Hardware{CPUs: 4, Memory: 8 * core.GiB}, Max: 4, PowerUp: 300}
	for k, v := range o {
		switch k {
		case "cpus":
			x.Hardware.CPUs = int32(s.num(v))
		case "mem":
			x.Hardware.Memory = s.mem(v)
		case "gres":
			x.Hardware.Gres = s.gres(v)
		case "features":
			x.Features = strings.Split(v, ",")
		case "price":
			x.Price = core.Price(s.num(v) * 1_000_000)
		case "max":
			x.Max = int32(s.num(v))
		case "powerup":
			x.PowerUp = core.Seconds(s.dur(v) / time.Second)
		case "partition":
			x.Partitions = []core.PartitionName{core.PartitionName(v)}
		case "project":
			x.Projects = []core.ProjectName{core.ProjectName(v)}
		}
	}
	s.cfg.Offers = append(s.cfg.Offers, x)
	return nil
}

// grow tells what nodes the plan wishes for.
func (s *script) grow(_ []string, _ args) error {
	plan := s.w.p.Pass(s.w.now)
	for _, x := range plan.Provision {
		what := "power up " + string(x.Node)
		if x.Offer != "" {
			what = fmt.Sprintf("provision %d of offer %s at %d an hour", x.Count, x.Offer, x.Price/1_000_000)
		}
		s.printf("%s for job %d, ready in %v", what, x.For, x.Ready.Sub(s.w.now))
	}
	if len(plan.Provision) == 0 {
		s.printf("nothing")
	}
	return nil
}

// make NAMES offer=X: nodes of an offer are being made.
func (s *script) make(p []string, o args) error {
	names, err := hostlist.Expand(p[0], 100)
	if err != nil {
		return err
	}
	for _, n := range names {
		if _, err := s.w.do(&PutNode{Node: &core.Node{
			Name: core.NodeName(n), Roles: core.Compute, Weight: 1,
			Offer: o["offer"],
		}}); err != nil {
			return err
		}
	}
	return nil
}
