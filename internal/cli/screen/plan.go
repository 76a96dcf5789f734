package screen

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Properties are the lines of a plan that say what is asked for, a name and a value each.
func Properties(plan *wire.RunPlan, s *convert.Spec, verbose bool) app.Table {
	var t app.Table
	c, p := &s.Configuration, s.Policy()
	t.Row("Project", plan.ProjectName)
	t.Row("User", plan.User)
	kind := string(c.Kind)
	if c.Task != nil {
		kind = fmt.Sprintf("task (nodes=%d)", s.Nodes())
	}
	t.Row("Type", kind)
	for i, g := range groupsOf(c) {
		name := "Resources"
		if len(groupsOf(c)) > 1 {
			name = fmt.Sprintf("Resources %d", i)
		}
		t.Row(name, Wanted(g))
	}
	if in := runsIn(plan); in != "" {
		t.Row("Runs in", in)
	}
	t.Row("Spot policy", orText(config.Value(p.SpotPolicy), "on-demand"))
	price := "off"
	if p.MaxPrice != nil {
		price = Price(wire.Dollars(*p.MaxPrice))
	}
	t.Row("Max price", price)
	t.Row("Retry policy", retry(p.Retry))
	if v := config.Value(p.CreationPolicy); v != "" && v != "reuse-or-create" || verbose {
		t.Row("Creation policy", orText(v, "reuse-or-create"))
	}
	idle := int64(300)
	if p.IdleDuration != nil {
		idle = *p.IdleDuration
	}
	t.Row("Idle duration", offable(idle))
	limit := "off"
	if d := p.MaxDuration; d != nil && !d.Off {
		limit = Duration(d.Seconds)
	}
	t.Row("Max duration", limit)
	if d := c.DevEnvironment; d != nil {
		inactivity := int64(-1)
		if d.Inactivity != nil {
			inactivity = *d.Inactivity
		}
		t.Row("Inactivity duration", offable(inactivity))
	}
	if v := config.Value(p.Reservation); v != "" || verbose {
		t.Row("Reservation", orText(v, "-"))
	}
	for _, a := range additions(c) {
		t.Row(a[0], a[1])
	}
	return t
}

// groupsOf are the resources of a run, those of each group where it has some.
func groupsOf(c *config.Configuration) []*config.Resources {
	if t := c.Task; t != nil && len(t.Groups) > 0 {
		list := make([]*config.Resources, len(t.Groups))
		for i := range t.Groups {
			list[i] = &t.Groups[i].Resources
		}
		return list
	}
	return []*config.Resources{&c.Run().Resources}
}

// runsIn is what a run runs in, as the server decides it; empty: it did not say.
func runsIn(plan *wire.RunPlan) string {
	if len(plan.JobPlans) == 0 || plan.JobPlans[0].JobSpec == nil {
		return ""
	}
	image := plan.JobPlans[0].JobSpec.ImageName
	switch image {
	case "":
		return ""
	case ImageProcess:
		return "processes of its nodes"
	}
	return "a container of " + image
}

// ImageProcess is what a plan has in place of an image for a run of processes.
const ImageProcess = "process"

// additions are the keys that only Bireme has, as the server's tags name them.
func additions(c *config.Configuration) (out [][2]string) {
	a := &c.Additions
	add := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, value})
		}
	}
	add("Partition", a.Partition)
	add("QOS", a.QOS)
	add("Account", a.Account)
	add("Constraint", a.Constraint.String())
	add("Switches", a.Switches.String())
	if a.Array != nil {
		add("Array", a.Array.String())
	}
	if text, err := a.Dependencies.Text(func(run string) (string, error) { return run, nil }); err == nil {
		add("Depends on", text)
	}
	switch {
	case a.Time == core.Forever:
		add("Time limit", "off")
	case a.Time > 0:
		add("Time limit", Duration(int64(a.Time)))
	}
	add("Begin", a.Begin)
	add("Deadline", a.Deadline)
	if a.Requeue != nil {
		add("Requeue", map[bool]string{true: "on", false: "off"}[*a.Requeue])
	}
	add("Checkpoint", checkpoint(a.Checkpoint))
	return out
}

// checkpoint is how a run saves its state: USR1, grace 30s, saved file state.pt.
func checkpoint(c *config.Checkpoint) string {
	if c == nil {
		return ""
	}
	var parts []string
	if c.Signal > 0 {
		parts = append(parts, "signal "+grammar.SignalName(c.Signal))
	}
	if c.Grace > 0 {
		parts = append(parts, "grace "+Duration(int64(c.Grace)))
	}
	if c.SavedFile != "" {
		parts = append(parts, "saved file "+c.SavedFile)
	}
	return orText(strings.Join(parts, ", "), "on")
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func offable(seconds int64) string {
	if seconds < 0 {
		return "off"
	}
	return Duration(seconds)
}

func retry(r *config.Retry) string {
	events, seconds := r.Acts()
	if len(events) == 0 {
		return "off"
	}
	return Duration(seconds) + "[" + strings.Join(events, ", ") + "]"
}

// Offers is the table of a plan's offers, at most as many as the plan has; it names nodes where the server does.
func Offers(p *wire.JobPlan) app.Table {
	named := len(p.Offers) > 0 && p.Offers[0].Node != ""
	head := []string{"#", "BACKEND", "RESOURCES", "INSTANCE TYPE", "PRICE", " "}
	if named {
		head = []string{"#", "BACKEND", "NODE", "RESOURCES", "INSTANCE TYPE", "PRICE", " "}
	}
	t := app.Table{head}
	for i := range p.Offers {
		o := &p.Offers[i]
		kind := o.Instance.Name
		if o.TotalBlocks > 1 {
			kind += fmt.Sprintf(" (%d/%d)", o.Blocks, o.TotalBlocks)
		}
		row := []string{
			fmt.Sprint(i + 1), Backend(o.Backend, o.Region), Machine(&o.Instance.Resources), kind, Price(o.Price),
			Availability(o.Availability),
		}
		if named {
			row = append(row[:2], append([]string{o.Node}, row[2:]...)...)
		}
		t.Row(row...)
	}
	return t
}

// Shown says how many offers there are beside those of the table; empty: none.
func Shown(p *wire.JobPlan) string {
	if p.TotalOffers <= len(p.Offers) {
		return ""
	}
	most := wire.Dollars(0)
	if p.MaxPrice != nil {
		most = *p.MaxPrice
	}
	return fmt.Sprintf("Shown %d of %d offers, %s max", len(p.Offers), p.TotalOffers, Price(most))
}

// Availability is how soon an offer can be used; that it can at once, without more, is not said.
func Availability(a string) string {
	if a == wire.OfferAvailable {
		return " "
	}
	return strings.ReplaceAll(a, "_", " ")
}
