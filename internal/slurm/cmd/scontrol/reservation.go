package scontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/report/record"
)

func (s *session) showReservations(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Reservations(ctx)
	if err != nil {
		return s.w.LoadFailed("slurm_load_reservations error", err)
	}
	if s.doc != nil {
		if len(args) > 0 {
			list.Reservations = slices.DeleteFunc(list.Reservations, func(r client.Reservation) bool {
				return r.Name != args[0]
			})
		}
		return s.doc.Print(s.w.Out, record.Reservations(list.Reservations, s.w.Now()), "", false)
	}
	listing{s.w.Out, s.heads}.head(s.w.Now(), len(list.Reservations))
	shown := false
	for i := range list.Reservations {
		if r := &list.Reservations[i]; len(args) == 0 || r.Name == args[0] {
			fmt.Fprint(s.w.Out, report.ShowReservation(r, s.show))
			shown = true
		}
	}
	switch {
	case shown:
		return 0
	case len(args) > 0:
		fmt.Fprintf(s.w.Out, "Reservation %s not found\n", args[0])
		return slurm.ExitError
	}
	fmt.Fprintln(s.w.Out, "No reservations in the system")
	return 0
}

// create makes what its first word names: a reservation. Partitions and nodes are the config file's.
func (s *session) create(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:create")
		return slurm.ExitError
	}
	first, _, pairs := strings.Cut(strings.ToLower(args[0]), "=")
	if isPartition(first) {
		return s.createPartition(ctx, args)
	}
	if len(first) < 3 || !strings.HasPrefix("reservationname", first) {
		s.w.Errorf("Invalid creation entity: %s", args[0])
		return slurm.ExitError
	}
	if !pairs {
		args = args[1:]
	}
	return s.createReservation(ctx, args)
}

// deleteNodes forgets nodes; those that jobs run on are refused, as Slurm does.
func (s *session) deleteNodes(ctx context.Context, list string, args []string) int {
	names, err := hostlist.Expand(list, 0)
	if err == nil && len(names) == 0 {
		err = core.Errorf(core.Invalid, "no node is named").Because("invalid_node")
	}
	var c *client.Client
	if err == nil {
		c, err = s.client()
	}
	for _, n := range names {
		if err == nil {
			_, err = c.RemoveNode(ctx, core.NodeName(n), "")
		}
	}
	if err != nil {
		fmt.Fprintf(s.w.Err, "delete_node %s: %s\n", args[0], slurm.ErrorText(err))
		return slurm.ExitError
	}
	return 0
}

// remove deletes what its word names: nodes, a partition or a reservation.
func (s *session) remove(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "too few arguments for delete keyword")
		return slurm.ExitError
	}
	key, name, pair := strings.Cut(args[0], "=")
	if !pair && len(args) == 1 {
		s.w.Errorf("Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
		return slurm.ExitError
	}
	if !pair {
		name, pair = args[1], true
	}
	if isPartition(strings.ToLower(key)) {
		return s.deletePartition(ctx, name, args)
	}
	if lower := strings.ToLower(key); pair && len(lower) > 3 && strings.HasPrefix("nodename", lower) {
		return s.deleteNodes(ctx, name, args)
	}
	if lower := strings.ToLower(key); len(lower) < 3 || !strings.HasPrefix("reservationname", lower) {
		fmt.Fprintf(s.w.Err, "Invalid deletion entity: %s\n", args[0])
		return slurm.ExitError
	}
	c, err := s.client()
	if err == nil {
		err = c.DropReservation(ctx, name)
	}
	if err != nil {
		fmt.Fprintf(s.w.Err, "delete_reservation %s: %s\n", strings.Join(args, " "), slurm.ErrorText(err))
		return slurm.ExitError
	}
	return 0
}

// reservationKeys are the keys of a reservation, in the order in which short forms find them.
var reservationKeys = strings.Fields("reservationname starttime endtime duration nodes nodecnt corecnt tres licenses " +
	"partitionname users groups " +
	"accounts features flags maxstartdelay comment burstbuffer qos allowedpartitions skip watts")

func reservationKey(word string) string {
	for _, exact := range []bool{true, false} {
		for _, k := range reservationKeys {
			if k == word || !exact && len(word) >= 3 && strings.HasPrefix(k, word) {
				return k
			}
		}
	}
	return ""
}

// hinted is an error in Slurm's words, with what would be right.
type hinted struct {
	error
	hint string
}

// request is a reservation as scontrol's words ask for it.
type request struct {
	name    string
	change  core.ReservationChange
	signed  []pair // lists that grow or shrink
	notSaid string // what nobody here can set aside
	// how many numbers of cores were given; Slurm wants one for each node that is named
	coreCounts int
}

func (s *session) readReservation(args []string) (*request, error) {
	r := &request{}
	for _, word := range args {
		p, ok := parsePair(word)
		key := reservationKey(p.key)
		if !ok || key == "" {
			return nil, fmt.Errorf("Unknown parameter %s", word)
		}
		p.key = key
		if err := s.readKey(r, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (s *session) readKey(r *request, p pair) error {
	c := &r.change
	if p.sign != 0 && (p.key == "users" || p.key == "accounts" || p.key == "groups" || p.key == "nodes") {
		r.signed = append(r.signed, p)
		return nil
	}
	switch p.key {
	case "reservationname":
		r.name = p.value
	case "starttime", "endtime":
		t, err := grammar.ParseMoment(p.value, s.w.Now(), grammar.Upcoming)
		if err != nil {
			fmt.Fprintln(s.w.Err, cmd.BadMoment(p.value, err))
			return fmt.Errorf("Invalid %s time %s", strings.TrimSuffix(p.key, "time"), p.text)
		}
		at := core.At(t)
		if p.key == "starttime" {
			c.Start = &at
		} else {
			c.End = &at
		}
	case "duration", "maxstartdelay":
		minutes, err := grammar.ParseTimeLimit(p.value)
		if err != nil {
			return fmt.Errorf("Invalid %s %s", p.key, p.value)
		}
		length := core.Seconds(minutes * 60)
		if minutes == grammar.Unlimited {
			length = 365 * 24 * 3600 // as Slurm: a year
		}
		if p.key == "duration" {
			c.Duration = &length
		} else {
			c.MaxDelay = &length
		}
	case "nodes":
		c.Nodes = &p.value
	case "nodecnt", "corecnt":
		n, err := sum(p.value)
		if err != nil {
			return fmt.Errorf("Invalid %s %s", p.key, p.value)
		}
		if p.key == "nodecnt" {
			c.NodeCount = &n
		} else {
			c.CoreCount, r.coreCounts = &n, strings.Count(p.value, ",")+1
		}
	case "tres":
		return r.readTRES(p.value)
	case "licenses":
		list, _, err := grammar.ParseLicenses(p.value)
		if err != nil {
			return fmt.Errorf("Invalid license specification %s", p.value)
		}
		r.licenses(list)
	case "partitionname":
		c.Partition = (*core.PartitionName)(&p.value)
	case "users":
		list := words[core.UserName](p.value)
		c.Users = &list
	case "accounts":
		list := words[core.ProjectName](p.value)
		c.Projects = &list
	case "groups":
		list := words[string](p.value)
		c.Groups = &list
	case "features":
		parse(&c.Features, p.value)
	case "comment":
		c.Comment = &p.value
	case "flags":
		return r.readFlags(p)
	case "skip":
	default:
		r.notSaid = p.key
	}
	return nil
}

// readFlags reads flags=a,b, flags+=a and flags-=a; PURGE_COMP may have a time.
func (r *request) readFlags(p pair) error {
	for word := range strings.SplitSeq(p.value, ",") {
		name, length, timed := strings.Cut(word, "=")
		drop := p.sign == '-' || strings.HasPrefix(name, "-")
		f, err := core.ParseReserveFlags(strings.TrimLeft(name, "+-"))
		if err != nil {
			return hinted{fmt.Errorf("Error parsing flags %s", p.value), err.Error()}
		}
		if timed {
			sec, err := grammar.ParseTimeSpan(length)
			if err != nil || sec < 0 || f != core.ReservePurgeCompleted {
				return fmt.Errorf("Error parsing flags %s", p.value)
			}
			keep := core.Seconds(sec)
			r.change.PurgeComp = &keep
		}
		if drop {
			r.change.DropFlags |= f
		} else {
			r.change.SetFlags |= f
		}
	}
	return nil
}

func (r *request) readTRES(text string) error {
	t, err := core.ParseTRES(text)
	if err != nil {
		return fmt.Errorf("Invalid TRES %s", text)
	}
	var lic []grammar.License
	for _, a := range t {
		n := int32(min(a.Count, 1<<30))
		switch name, isLic := strings.CutPrefix(a.Name, "license/"); {
		case isLic:
			lic = append(lic, grammar.License{Name: name, Count: a.Count})
		case a.Name == "node":
			r.change.NodeCount = &n
		case a.Name == "cpu":
			r.change.CoreCount = &n
		default:
			r.notSaid = a.Name
		}
	}
	if lic != nil {
		r.licenses(lic)
	}
	return nil
}

func (r *request) licenses(list []grammar.License) {
	out := []core.License{}
	for _, l := range list {
		out = append(out, core.License{Name: l.Name, Total: l.Count})
	}
	r.change.Licenses = &out
}

// sum adds up counts joined by commas.
func sum(text string) (total int32, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q is not a count", word)
		}
		total += int32(n)
	}
	return total, nil
}

func words[T ~string](text string) []T {
	out := []T{}
	for w := range strings.SplitSeq(text, ",") {
		if w != "" {
			out = append(out, T(w))
		}
	}
	return out
}

func (s *session) createReservation(ctx context.Context, args []string) int {
	refuse := func(format string, a ...any) int {
		s.w.Errorf(format+"  No reservation created.", a...)
		return slurm.ExitError
	}
	r, err := s.readReservation(args)
	switch {
	case err != nil:
		code := refuse("%s", sentence(err))
		var h hinted
		if errors.As(err, &h) {
			s.w.Hint(h.hint)
		}
		return code
	case r.notSaid != "":
		return refuse("%s cannot be reserved here.", r.notSaid)
	}
	c := &r.change
	switch {
	case c.Start == nil && (c.SetFlags&core.ReserveTimeFloat == 0):
		return refuse("A start time must be given.")
	case c.End == nil && c.Duration == nil:
		return refuse("An end time or duration must be specified.")
	case c.Users == nil && c.Projects == nil && c.Groups == nil:
		return refuse("Either Users/Groups and/or Accounts must be specified.")
	}
	if n := r.coreCounts; n > 0 && c.Nodes != nil && !strings.EqualFold(*c.Nodes, "ALL") {
		if names, err := cmd.Hosts(*c.Nodes); err == nil && len(names) > 0 && len(names) != n { // a count for each node
			fmt.Fprintln(s.w.Err, "Error creating the reservation: "+
				"Core count for reservation node list is not consistent!")
			return slurm.ExitError
		}
	}
	var in client.NewReservation
	in.Name = r.name
	in.Start = core.At(s.w.Now())
	c.Apply(&in.AdvanceReservation)
	cl, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	made, err := cl.NewReservation(ctx, &in)
	if err != nil {
		fmt.Fprintf(s.w.Err, "Error creating the reservation: %s\n", slurm.ErrorText(err))
		return slurm.ExitError
	}
	fmt.Fprintf(s.w.Out, "Reservation created: %s\n", made.Name)
	return 0
}

func (s *session) updateReservation(ctx context.Context, name string, pairs []pair) int {
	args := make([]string, len(pairs))
	for i, p := range pairs {
		args[i] = p.text
	}
	r, err := s.readReservation(args)
	if err == nil && r.notSaid != "" {
		err = fmt.Errorf("%s cannot be reserved here", r.notSaid)
	}
	if err != nil {
		s.w.Errorf("%s  No reservation update.", sentence(err))
		return slurm.ExitError
	}
	cl, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	if len(r.signed) > 0 {
		var old *client.Reservation
		if old, err = cl.Reservation(ctx, name); err == nil {
			r.grow(old)
		}
	}
	if err == nil {
		_, err = cl.UpdateReservation(ctx, name, &r.change)
	}
	if err != nil {
		fmt.Fprintf(s.w.Err, "Error updating the reservation: %s\n", slurm.ErrorText(err))
		return slurm.ExitError
	}
	fmt.Fprintln(s.w.Out, "Reservation updated.")
	return 0
}

// grow works lists with += and -= out from what the reservation has.
func (r *request) grow(old *client.Reservation) {
	users, accounts, groups := slices.Clone(old.Users), slices.Clone(old.Projects), slices.Clone(old.Groups)
	nodes := hosts(old.Nodes)
	for _, p := range r.signed {
		switch p.key {
		case "users":
			users = grown(users, p)
			r.change.Users = &users
		case "accounts":
			accounts = grown(accounts, p)
			r.change.Projects = &accounts
		case "groups":
			groups = grown(groups, p)
			r.change.Groups = &groups
		case "nodes":
			p.value = strings.Join(hosts(p.value), ",")
			nodes = grown(nodes, p)
			text := hostlist.FoldSorted(nodes)
			r.change.Nodes = &text
		}
	}
}

func grown[T ~string](list []T, p pair) []T {
	for _, w := range words[T](p.value) {
		list = slices.DeleteFunc(list, func(o T) bool { return o == w })
		if p.sign == '+' {
			list = append(list, w)
		}
	}
	return list
}

// sentence ends an error's text.
func sentence(err error) string {
	if text := err.Error(); strings.HasSuffix(text, "?") {
		return text
	}
	return err.Error() + "."
}

// hosts expands a list; one that is none stays, for the server to refuse.
func hosts(text string) []string {
	names, err := cmd.Hosts(text)
	if err != nil {
		return []string{text}
	}
	return names
}
