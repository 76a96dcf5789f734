package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/policy"
)

func init() { // after script_test.go's
	commands["qos"] = (*script).qos
	commands["project"] = (*script).project
	commands["member"] = (*script).member
	commands["reservation"] = (*script).reservation
	commands["change"] = (*script).change
	commands["drop"] = (*script).drop
	commands["reservations"] = (*script).reservations
	commands["want"] = (*script).want
	commands["apply"] = (*script).apply
	commands["policy"] = (*script).policy
	commands["reconfigure"] = (*script).reconfigure
}

// reconfigure [drop=PARTITION] [licenses=a:1] [nodes=LIST weight= features= cpus=] [gone=LIST] [dry=yes]: makes the
// partitions and settings said since the last time those that hold.
func (s *script) reconfigure(_ []string, o args) error {
	cfg := s.cfg
	cfg.Partitions = slices.DeleteFunc(slices.Clone(cfg.Partitions),
		func(p core.Partition) bool { return string(p.Name) == o["drop"] })
	if v, ok := o["licenses"]; ok {
		cfg.Licenses = nil
		for w := range strings.SplitSeq(v, ",") {
			name, n, _ := strings.Cut(w, ":")
			cfg.Licenses = append(cfg.Licenses, core.License{Name: name, Total: s.num(n)})
		}
	}
	if v := o["idle"]; v != "" {
		cfg.InteractiveIdle = core.Seconds(s.dur(v) / time.Second)
	}
	if o["priority"] == "age" {
		cfg.Priority = &Priority{
			Config: policy.Config{Weights: policy.Weights{Age: 1000, Partition: 1000}, MaxAge: 3600},
			Period: 60,
		}
	} else if o["priority"] == "basic" {
		cfg.Priority = nil
	}
	in := &Reconfigure{By: s.by(o), Config: cfg, Dry: o["dry"] != ""}
	names := func(list string) []string {
		out, err := hostlist.Expand(list, 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		return out
	}
	if list := o["nodes"]; list != "" {
		for _, name := range names(list) {
			n := coretest.Node(core.NodeName(name)).Build()
			n.Weight, n.Features = int32(s.num(o["weight"])), nil
			if f := o["features"]; f != "" {
				n.Features = strings.Split(f, ",")
			}
			in.Nodes = append(in.Nodes, n)
		}
	}
	if list := o["gone"]; list != "" {
		for _, name := range names(list) {
			in.GoneNodes = append(in.GoneNodes, core.NodeName(name))
		}
	}
	reply, err := s.w.do(in)
	var e *core.Error
	if errors.As(err, &e) {
		for _, f := range e.Faults {
			s.printf("  %s: %s", f.Path, f.Message)
		}
	}
	if err != nil {
		return err
	}
	for _, c := range reply.(*Reconfigured).Changes {
		s.printf("%s %s", c.Op, c.What)
		for _, f := range c.Fields {
			s.printf("  %s: %q -> %q", f.Name, f.Was, f.Is)
		}
	}
	if !in.Dry {
		s.cfg, s.w.cfg = cfg, cfg
	}
	return nil
}

// want qos NAME … | project NAME … | member PROJECT USER … : puts an entry into the policy that apply applies.
func (s *script) want(p []string, o args) error {
	w := &s.w.want
	switch p[0] {
	case "qos":
		q := core.QOS{Name: core.QOSName(p[1])}
		s.fill(&q, o)
		w.QOS = append(w.QOS, q)
	case "project":
		x := core.Project{Name: core.ProjectName(p[1])}
		s.fill(&x, o)
		w.Projects = append(w.Projects, x)
	case "member":
		m := core.Member{User: core.UserName(p[2]), Role: core.Role(o["role"])}
		s.fill(&m, o)
		i := slices.IndexFunc(w.Projects, func(x core.Project) bool { return x.Name == core.ProjectName(p[1]) })
		w.Projects[i].Members = append(w.Projects[i].Members, m)
	default:
		s.t.Fatalf("want %s?", p[0])
	}
	return nil
}

// apply [dry=yes] [prune=yes] [force=yes]: applies what was wanted since the last apply that was not dry.
func (s *script) apply(_ []string, o args) error {
	in := &ApplyPolicy{
		By: s.by(o), Policy: s.w.want, Dry: o["dry"] != "", Prune: o["prune"] != "",
		Force: o["force"] != "",
	}
	if !in.Dry {
		s.w.want = core.Policy{}
	}
	reply, err := s.w.do(in)
	var e *core.Error
	if errors.As(err, &e) {
		for _, f := range e.Faults {
			s.printf("  %s: %s", f.Path, f.Message)
		}
	}
	if err != nil {
		return err
	}
	d := reply.(*core.PolicyDiff)
	for _, c := range d.Changes {
		s.printf("%s %s", c.Op, c.What)
		for _, f := range c.Fields {
			s.printf("  %s: %q -> %q", f.Name, f.Was, f.Is)
		}
	}
	for _, x := range d.Exceeded {
		s.printf("%s has %d, %s would allow %d", x.Who, x.Has, x.Limit, x.Max)
	}
	return nil
}

// policy prints it, a line an entry.
func (s *script) policy([]string, args) error {
	p := s.w.st.Snapshot().Policy()
	for i := range p.QOS {
		p.QOS[i].ID = 0
		s.printf("qos %s", asJSON(s.t, &p.QOS[i]))
	}
	for i := range p.Projects {
		x := p.Projects[i]
		x.Members = nil
		x.ID = 0
		s.printf("project %s", asJSON(s.t, &x))
		for _, m := range p.Projects[i].Members {
			m.ID = 0
			s.printf("  member %s", asJSON(s.t, &m))
		}
	}
	return nil
}

// fill sets the fields of v that words name as its JSON does: numbers, texts, and lists where a comma stands. Limits
// and what belongs to an association go where they belong.
func (s *script) fill(v any, o args) {
	s.t.Helper()
	lists := []string{"preempt", "users", "accounts", "groups", "qos"}
	limits := []string{
		"grp_jobs", "grp_submit", "grp_tres", "grp_tres_mins", "grp_tres_run_mins", "grp_wall", "max_jobs",
		"max_submit", "max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job", "max_wall", "grp_jobs_accrue",
		"max_jobs_accrue", "min_prio_threshold",
	}
	top, lim, assoc := map[string]any{}, map[string]any{}, map[string]any{}
	for k, word := range o {
		var val any = word
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			val = n
		}
		if slices.Contains(lists, k) {
			val = strings.Split(word, ",")
		}
		switch _, isQOS := v.(*core.QOS); {
		case k == "" || k == "by" || k == "new" || k == "role":
		case (k == "start" || k == "end") && word != "":
			top[k] = int64(s.w.now.Add(s.dur(word)))
		case k == "licenses":
			var list []core.License
			for w := range strings.SplitSeq(word, ",") {
				name, n, _ := strings.Cut(w, ":")
				list = append(list, core.License{Name: name, Total: s.num(n)})
			}
			top[k] = list
		case k == "purge_comp" || k == "duration" || k == "grace" || k == "max_start_delay":
			top[k] = int64(s.dur(word) / time.Second)
		case slices.Contains(limits, k):
			lim[k] = val
		case !isQOS && (k == "qos" || k == "default_qos" || k == "priority"):
			assoc[k] = val
		default:
			top[k] = val
		}
	}
	if len(lim) > 0 {
		if _, isQOS := v.(*core.QOS); isQOS {
			top["limits"] = lim
		} else {
			assoc["limits"] = lim
		}
	}
	if len(assoc) > 0 {
		top["assoc"] = assoc
	}
	b, err := json.Marshal(top)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// qos NAME priority= flags= preempt= grp_tres= … : makes or replaces one.
func (s *script) qos(p []string, o args) error {
	q := &core.QOS{Name: core.QOSName(p[0])}
	s.fill(q, o)
	_, err := s.w.do(&PutQOS{By: s.by(o), QOS: q, New: o["new"] != ""})
	return err
}

// project NAME parent= shares= qos= grp_tres= … : makes or changes one; its members stay.
func (s *script) project(p []string, o args) error {
	x := &core.Project{Name: core.ProjectName(p[0])}
	if old, ok := s.w.st.rec.Project(x.Name); ok {
		x.Members = old.Members
	}
	s.fill(x, o)
	_, err := s.w.do(&PutProject{By: s.by(o), Project: x, New: o["new"] != ""})
	return err
}

// member PROJECT USER role=user shares= max_jobs= … : makes or changes one, or takes it out with role=none.
func (s *script) member(p []string, o args) error {
	m := core.Member{User: core.UserName(p[1])}
	s.user(m.User)
	s.fill(&m, o)
	in := &PutMember{By: s.by(o), Project: core.ProjectName(p[0]), User: m.User, Role: core.RoleUser}
	switch o["role"] {
	case "":
	case "none":
		in.Role = core.RoleNone
	default:
		in.Role = core.Role(o["role"])
	}
	if o["shares"] != "" {
		in.Shares = &m.Shares
	}
	if in.Role != core.RoleNone && in.By.Admin {
		in.Assoc = &m.Assoc
	}
	_, err := s.w.do(in)
	return err
}

// reservation NAME start=1h end=2h nodes= users= accounts= flags= … : makes one; times are from now, - is named by
// itself.
func (s *script) reservation(p []string, o args) error {
	r := &core.AdvanceReservation{Name: strings.TrimPrefix(p[0], "-")}
	s.fill(r, o)
	reply, err := s.w.do(&PutReservation{By: s.by(o), Reservation: r, New: true})
	if err == nil && p[0] == "-" {
		s.printf("reservation %s", reply.(*core.AdvanceReservation).Name)
	}
	return err
}

// change NAME start= duration= nodes= … : changes a reservation.
func (s *script) change(p []string, o args) error {
	in := &UpdateReservation{By: s.by(o), Name: p[0]}
	s.fill(&in.Change, o)
	_, err := s.w.do(in)
	return err
}

// drop qos|project|reservation NAME
func (s *script) drop(p []string, o args) error {
	var in Input
	switch p[0] {
	case "qos":
		in = &DropQOS{By: s.by(o), Name: core.QOSName(p[1])}
	case "project":
		in = &DropProject{By: s.by(o), Name: core.ProjectName(p[1])}
	case "reservation":
		in = &DropReservation{By: s.by(o), Name: p[1]}
	default:
		s.t.Fatalf("drop %s?", p[0])
	}
	_, err := s.w.do(in)
	return err
}

// reservations lists them; times are from now.
func (s *script) reservations(_ []string, _ args) error {
	for _, r := range s.w.st.rec.Reservations() {
		what := []string{strings.Join(append(texts(r.Users), texts(r.Projects)...), ","), r.Nodes}
		if r.CoreCount > 0 {
			what = append(what, fmt.Sprintf("%d cores", r.CoreCount))
		}
		for _, l := range r.Licenses {
			what = append(what, fmt.Sprintf("%d %s", l.Total, l.Name))
		}
		s.printf("%s  %s to %s  for %s  %s", r.Name, r.Start.Sub(s.w.now), r.End.Sub(s.w.now), strings.Join(what, "  "),
			r.Flags)
	}
	return nil
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
