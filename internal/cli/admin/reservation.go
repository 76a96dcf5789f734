package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// reservations are the commands on advance reservations.
type reservations struct{ *app.App }

func (a reservations) command() *cobra.Command {
	c := &cobra.Command{
		Use: "reservation", Aliases: []string{"reservations"},
		Short: "reserve nodes, cores or licenses for users and times",
		Args:  app.NoSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.create(), a.list(), a.show(), a.update(), a.delete())
	return c
}

// reservationFlags are what create and update have in common, as they were typed.
type reservationFlags struct {
	start, end, duration, nodes, partition, features string
	users, accounts, groups, licenses                string
	flags, drop, purge, delay, comment               string
	nodeCount, cores                                 int32
	asJSON                                           bool
}

func (o *reservationFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.start, "start", "", "`TIME` it begins: now, now+2hours, 14:00, tomorrow, 2027-01-31T08:00")
	f.StringVar(&o.end, "end", "", "`TIME` it ends")
	f.StringVar(&o.duration, "duration", "", "how long it lasts, instead of --end: 90 (minutes), 2-00:00:00, 36h, 2d")
	f.StringVar(&o.nodes, "nodes", "", "`LIST` of nodes, or ALL")
	f.Int32Var(&o.nodeCount, "node-count", 0, "`N` nodes, chosen from those that are free")
	f.Int32Var(&o.cores, "cores", 0, "`N` cores of its nodes instead of whole ones")
	f.StringVar(&o.partition, "partition", "", "`PARTITION` the nodes are of")
	f.StringVar(&o.features, "features", "", "`CONSTRAINT` on the nodes")
	f.StringVar(&o.users, "users", "", "`USERS` it is for; with - before each, those it is not for")
	f.StringVar(&o.accounts, "accounts", "", "`PROJECTS` it is for; with - before each, those it is not for")
	f.StringVar(&o.groups, "groups", "", "unix `GROUPS` it is for")
	f.StringVar(&o.licenses, "licenses", "", "`NAME:COUNT,...` licenses it has")
	f.StringVar(&o.flags, "flags", "", "maint, daily, weekly, weekday, weekend, hourly, overlap, ignore_jobs, flex, "+
		"replace, replace_down, static, magnetic, time_float, user_delete, no_hold_jobs_after_end")
	f.StringVar(&o.purge, "purge", "", "remove it when it was idle for so long; without a length, 5 minutes")
	f.Lookup("purge").NoOptDefVal = "5m"
	f.StringVar(&o.delay, "max-start-delay", "", "jobs submitted with --signal=R:… may reach so far into it")
	f.StringVar(&o.comment, "comment", "", "a remark")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
}

// change reads the flags that were given into what is to change.
func (o *reservationFlags) change(now time.Time, f *pflag.FlagSet) (*core.ReservationChange, error) {
	c := &core.ReservationChange{}
	var bad error
	given := func(name string, read func() error) {
		if f.Changed(name) && bad == nil {
			if err := read(); err != nil {
				bad = app.Usagef("--%s: %v", name, err)
			}
		}
	}
	moment := func(text string, to **core.Time) func() error {
		return func() error {
			t, err := grammar.ParseMoment(text, now, grammar.Upcoming)
			at := core.At(t)
			*to = &at
			return err
		}
	}
	length := func(text string, to **core.Seconds) func() error {
		return func() error {
			n, err := grammar.ParseSpan(text)
			sec := core.Seconds(n)
			*to = &sec
			return err
		}
	}
	word := func(set func()) func() error { return func() error { set(); return nil } }
	given("start", moment(o.start, &c.Start))
	given("end", moment(o.end, &c.End))
	given("duration", length(o.duration, &c.Duration))
	given("nodes", word(func() { c.Nodes = &o.nodes }))
	given("node-count", word(func() { c.NodeCount = &o.nodeCount }))
	given("cores", word(func() { c.CoreCount = &o.cores }))
	given("partition", word(func() { c.Partition = (*core.PartitionName)(&o.partition) }))
	given("features", word(func() {
		features, _ := core.ParseConstraint(o.features) // the server refuses what does not parse
		c.Features = &features
	}))
	given("users", word(func() { c.Users = wordsOf[core.UserName](o.users) }))
	given("accounts", word(func() { c.Projects = wordsOf[core.ProjectName](o.accounts) }))
	given("groups", word(func() { c.Groups = wordsOf[string](o.groups) }))
	given("licenses", func() (err error) { c.Licenses, err = licensesOf(o.licenses); return err })
	given("flags", func() (err error) { c.SetFlags, err = core.ParseReserveFlags(o.flags); return err })
	given("drop-flags", func() (err error) { c.DropFlags, err = core.ParseReserveFlags(o.drop); return err })
	given("purge", length(o.purge, &c.PurgeComp))
	if c.PurgeComp != nil {
		c.SetFlags |= core.ReservePurgeCompleted
	}
	given("max-start-delay", length(o.delay, &c.MaxDelay))
	given("comment", word(func() { c.Comment = &o.comment }))
	if bad == nil && c.End != nil && c.Duration != nil {
		bad = app.Usagef("--end and --duration cannot be used together")
	}
	return c, bad
}

func wordsOf[T ~string](text string) *[]T {
	list := []T{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		list = append(list, T(w))
	}
	return &list
}

func licensesOf(text string) (*[]core.License, error) {
	out := []core.License{}
	if text == "" {
		return &out, nil
	}
	list, either, err := grammar.ParseLicenses(text)
	if err == nil && either {
		err = fmt.Errorf("a reservation cannot have alternatives (|): separate licenses with commas")
	}
	for _, l := range list {
		out = append(out, core.License{Name: l.Name, Total: l.Count})
	}
	return &out, err
}

func (a reservations) create() *cobra.Command {
	var o reservationFlags
	c := &cobra.Command{
		Use: "create [NAME]", Short: "make a reservation", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := o.change(a.Now(), cmd.Flags())
			if err != nil {
				return err
			}
			if change.End == nil && change.Duration == nil {
				return app.Usagef("reservation create: needs --end or --duration")
			}
			var in client.NewReservation
			in.Start = core.At(a.Now())
			change.Apply(&in.AdvanceReservation)
			if len(args) > 0 {
				in.Name = args[0]
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			r, err := cl.NewReservation(cmd.Context(), &in)
			if err != nil {
				return err
			}
			return a.print(r, o.asJSON)
		},
	}
	o.add(c.Flags())
	return c
}

func (a reservations) update() *cobra.Command {
	var o reservationFlags
	c := &cobra.Command{
		Use: "update NAME", Short: "change a reservation; what is not said stays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := o.change(a.Now(), cmd.Flags())
			if err != nil {
				return err
			}
			if *change == (core.ReservationChange{}) {
				return app.Usagef("reservation update %s: nothing to change; see --help", args[0])
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			r, err := cl.UpdateReservation(cmd.Context(), args[0], change)
			if err != nil {
				return err
			}
			return a.print(r, o.asJSON)
		},
	}
	o.add(c.Flags())
	c.Flags().StringVar(&o.drop, "drop-flags", "", "`FLAGS` it no longer has")
	return c
}

func (a reservations) delete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Short: "remove reservations; jobs that wait for one are held", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := cl.DropReservation(cmd.Context(), name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a reservations) show() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show NAME", Short: "print a reservation", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			r, err := cl.Reservation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(r, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a reservations) list() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "list reservations", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.printAll(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a reservations) printAll(ctx context.Context, asJSON bool) error {
	cl, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := cl.Reservations(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	t := app.Table{{"NAME", "STATE", "START", "END", "FOR", "WHAT", "FLAGS"}}
	for i := range list.Reservations {
		r := &list.Reservations[i]
		t.Row(r.Name, strings.ToLower(r.State), app.Clock(r.Start), app.Clock(r.End), strings.Join(reservedFor(r), " "),
			strings.Join(reservedWhat(r), " "), strings.ToLower(r.Flags.String()))
	}
	return t.Write(a.Out)
}

func reservedFor(r *client.Reservation) (out []string) {
	for _, list := range []struct {
		what  string
		names []string
	}{{"", textsOf(r.Users)}, {"project ", textsOf(r.Projects)}, {"group ", r.Groups}} {
		if len(list.names) > 0 {
			out = append(out, list.what+strings.Join(list.names, ","))
		}
	}
	return out
}

func textsOf[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func reservedWhat(r *client.Reservation) (out []string) {
	if r.Nodes != "" {
		out = append(out, r.Nodes)
	}
	if r.CoreCount > 0 {
		out = append(out, app.Plural(r.CoreCount, "core"))
	}
	for _, l := range r.Licenses {
		out = append(out, fmt.Sprintf("%s:%d", l.Name, l.Total))
	}
	return out
}

// print tells everything of one, a line each.
func (a reservations) print(r *client.Reservation, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(r)
	}
	t := app.Table{
		{"name", r.Name},
		{"state", strings.ToLower(r.State)},
		{"start", app.Clock(r.Start)},
		{"end", app.Clock(r.End) + " (" + app.Span(r.End.Sub(r.Start)) + ")"},
		{"for", strings.Join(reservedFor(r), ", ")},
		{"what", strings.Join(reservedWhat(r), ", ")},
	}
	for _, more := range [][2]string{
		{"partition", string(r.Partition)},
		{"features", r.Features.String()},
		{"flags", strings.ToLower(r.Flags.String())},
		{"comment", r.Comment},
	} {
		if more[1] != "" {
			t.Row(more[0], more[1])
		}
	}
	return t.Write(a.Out)
}
