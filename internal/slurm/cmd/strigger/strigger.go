// Package strigger is the command that has programs run when something has happened to nodes, jobs or the server.
package strigger

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "set"},
	{Long: "get"},
	{Long: "clear"},
	{Long: "burst_buffer"},
	{Long: "front_end"},
	{Long: "primary_slurmctld_failure", Short: 'a'},
	{Long: "primary_slurmctld_resumed_operation", Short: 'A'},
	{Long: "primary_slurmctld_resumed_control", Short: 'b'},
	{Long: "backup_slurmctld_failure", Short: 'B'},
	{Long: "backup_slurmctld_resumed_operation", Short: 'c'},
	{Long: "backup_slurmctld_assumed_control", Short: 'C'},
	{Long: "down", Short: 'd'},
	{Long: "drained", Short: 'D'},
	{Long: "primary_slurmctld_acct_buffer_full", Short: 'e'},
	{Long: "fail", Short: 'F'},
	{Long: "fini", Short: 'f'},
	{Long: "flags", Arg: getopt.RequiredArg},
	{Long: "primary_slurmdbd_failure", Short: 'g'},
	{Long: "primary_slurmdbd_resumed_operation", Short: 'G'},
	{Long: "primary_database_failure", Short: 'h'},
	{Long: "primary_database_resumed_operation", Short: 'H'},
	{Long: "id", Short: 'i', Arg: getopt.RequiredArg},
	{Long: "idle", Short: 'I'},
	{Long: "jobid", Short: 'j', Arg: getopt.RequiredArg},
	{Key: "cluster", Long: "cluster", Short: 'M', Arg: getopt.RequiredArg},
	{Key: "cluster", Long: "clusters", Arg: getopt.RequiredArg},
	{Long: "node", Short: 'n', Arg: getopt.OptionalArg},
	{Long: "noheader", Short: 'N'},
	{Long: "offset", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "program", Short: 'p', Arg: getopt.RequiredArg},
	{Long: "quiet", Short: 'Q'},
	{Long: "reconfig", Short: 'r'},
	{Long: "time", Short: 't'},
	{Long: "up", Short: 'u'},
	{Long: "user", Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "help"},
	{Long: "usage"},
}}

// resources are where events come from, in the order in which an event decides what a trigger is about.
var resources = []string{
	client.TriggerOther, client.TriggerController, client.TriggerAccounting, client.TriggerDatabase,
}

// noEvent lists what --set takes, in Slurm's words.
const noEvent = `You must specify a trigger (--down, --up, --reconfig, --time, --fini, --burst_buffer,
--primary_slurmctld_failure,
--primary_slurmctld_resumed_operation,
--primary_slurmctld_resumed_control,
--primary_slurmctld_acct_buffer_full,
--backup_slurmctld_failure,
--backup_slurmctld_resumed_operation,
--backup_slurmctld_as_ctrl,
--primary_slurmdbd_failure,
--primary_slurmdbd_resumed_operation,
--primary_database_failure, or 
--primary_database_resumed_operation)
`

// maxOffset is in seconds.
const maxOffset = 32000

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// request is what the command line says.
type request struct {
	client.Trigger
	f       cmd.Flags
	verb    string // set, get or clear
	hasUser bool
	quiet   bool
	verbose bool
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	r := &request{f: f, quiet: f.Has("quiet"), verbose: f.Has("verbose")}
	if err := r.read(); err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	if _, ok := w.OnlyOurs(ctx, c, f.List("cluster")); !ok {
		return slurm.ExitError
	}
	switch r.verb {
	case "set":
		return r.set(ctx, w, c)
	case "clear":
		return r.clear(ctx, w, c)
	}
	return r.get(ctx, w, c)
}

// read checks the command line. The texts are Slurm's.
func (r *request) read() error {
	for _, step := range []func() error{r.readValues, r.readVerb, r.readEvents, r.readProgram} {
		if err := step(); err != nil {
			return err
		}
	}
	if r.verb == "clear" && r.ID == 0 && r.Job == 0 && !r.hasUser {
		return complain("You must specify a --id, --jobid, or --user to clear")
	}
	return nil
}

func (r *request) readValues() error {
	f := r.f
	if f.Has("flags") {
		if !strings.HasPrefix(strings.ToLower(f.Get("flags")), "perm") {
			return complain("Invalid flags %s", f.Get("flags"))
		}
		r.Perm = true
	}
	if f.Has("jobid") {
		n := leadingNumber(f.Get("jobid"))
		if n <= 0 {
			return complain("Invalid jobid %s", f.Get("jobid"))
		}
		r.Job = core.JobID(n)
	}
	r.ID = max(0, leadingNumber(f.Get("id")))
	offset := leadingNumber(f.Get("offset"))
	if offset > maxOffset || offset < -maxOffset {
		return complain("The --offset parameter must be between +/-%d", maxOffset)
	}
	r.Offset = int32(offset)
	if f.Has("user") {
		uid, ok := userID(f.Get("user"))
		if !ok {
			return complain("Invalid user %s", f.Get("user"))
		}
		r.UID, r.hasUser = uid, true
	}
	return nil
}

func (r *request) readVerb() error {
	for _, verb := range []string{"set", "get", "clear"} {
		if !r.f.Has(verb) {
			continue
		}
		if r.verb != "" {
			r.verb = ""
			break
		}
		r.verb = verb
	}
	if r.verb == "" {
		return complain("You must use exactly one of the following options: --set, --get or --clear")
	}
	return nil
}

// readEvents finds out which events are named and what they happen to.
func (r *request) readEvents() error {
	for i := range parser.Options {
		o := &parser.Options[i]
		event := o.Long
		for _, res := range []string{client.TriggerNode, client.TriggerJob} {
			if r.f.Has(event) && client.HasEvent(res, event) && !slices.Contains(r.Events, event) {
				r.Events, r.Resource = append(r.Events, event), client.TriggerNode
			}
		}
	}
	for _, res := range resources {
		for i := range parser.Options {
			if event := parser.Options[i].Long; r.f.Has(event) && client.HasEvent(res, event) {
				r.Events, r.Resource = append(r.Events, event), res
			}
		}
	}
	slices.Sort(r.Events)
	switch {
	case r.f.Has("front_end"):
		r.Resource = client.TriggerFrontEnd
	case r.Job != 0:
		r.Resource = client.TriggerJob
	}
	if r.Resource == client.TriggerNode && r.f.Get("node") != "*" {
		r.Nodes = r.f.Get("node")
	}
	ofJobs := slices.Contains(r.Events, client.EventTime) || slices.Contains(r.Events, client.EventFini)
	switch {
	case r.verb == "set" && len(r.Events) == 0:
		return complain(noEvent)
	case ofJobs && r.Job == 0:
		return complain("You must specify a --jobid value")
	}
	return nil
}

func (r *request) readProgram() error {
	r.Program = r.f.Get("program")
	if !r.f.Has("program") {
		if r.verb == "set" {
			return complain("You must specify a --program value")
		}
		return nil
	}
	if !strings.HasPrefix(r.Program, "/") {
		return complain(`The --program value must start with "/"`)
	}
	if _, err := os.Stat(strings.Fields(r.Program)[0]); err != nil {
		return complain("Invalid --program value, file not found")
	}
	return nil
}

// complaint is a text of Slurm's, which begins with a capital.
type complaint string

func (c complaint) Error() string { return string(c) }

func complain(format string, args ...any) error { return complaint(fmt.Sprintf(format, args...)) }

// leadingNumber reads the number a text begins with, as C's atoi does; 0 where there is none.
func leadingNumber(text string) int64 {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil && end > 1 { // more digits than fit
		return 1 << 62
	}
	return n
}

func userID(text string) (uint32, bool) {
	if u, err := account.ByName(text); err == nil {
		return u.UID, true
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

// failed tells of a call that failed, unless nobody wants to know.
func (r *request) failed(w *cmd.World, what, text string) int {
	if r.quiet {
		return 0
	}
	fmt.Fprintf(w.Err, "%s: %s\n", what, text)
	return slurm.ExitError
}

func (r *request) say(w *cmd.World, format string, args ...any) {
	if r.verbose {
		fmt.Fprintf(w.Err, w.Name+": "+format+"\n", args...)
	}
}

func (r *request) set(ctx context.Context, w *cmd.World, c *client.Client) int {
	const what = "slurm_set_trigger"
	if unix.Access(strings.Fields(r.Program)[0], unix.X_OK) != nil {
		return r.failed(w, what, "Access/permission denied")
	}
	t := r.Trigger
	t.ID, t.UID = 0, 0
	if _, err := c.SetTrigger(ctx, &t); err != nil {
		if core.ReasonOf(err) == "trigger_exists" {
			return r.failed(w, what, "Duplicate event trigger")
		}
		code := r.failed(w, what, slurm.ErrorText(err))
		if core.CodeOf(err) == core.Exhausted && !r.quiet {
			w.Hint(err.Error())
		}
		return code
	}
	r.say(w, "trigger set")
	return 0
}

func (r *request) clear(ctx context.Context, w *cmd.World, c *client.Client) int {
	which := &client.ClearTriggers{ID: r.ID, Job: r.Job}
	if r.hasUser {
		which.UID = &r.UID
	}
	if _, err := c.ClearTriggers(ctx, which); err != nil {
		if core.ReasonOf(err) == "no_such_trigger" {
			return r.failed(w, "slurm_clear_trigger", "No such process")
		}
		return r.failed(w, "slurm_clear_trigger", slurm.ErrorText(err))
	}
	switch {
	case r.ID != 0:
		r.say(w, "trigger %d cleared", r.ID)
	case r.Job != 0:
		r.say(w, "triggers for job %d cleared", r.Job)
	default:
		r.say(w, "triggers for user %d cleared", r.UID)
	}
	return 0
}

func (r *request) get(ctx context.Context, w *cmd.World, c *client.Client) int {
	list, err := c.Triggers(ctx)
	if err != nil {
		return r.failed(w, "slurm_get_triggers", slurm.ErrorText(err))
	}
	r.say(w, "Read %d trigger records", len(list))
	header := !r.f.Has("noheader")
	for i := range list {
		if !r.matches(&list[i]) {
			continue
		}
		if header {
			fmt.Fprintln(w.Out, "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM")
			header = false
		}
		printRow(w, &list[i])
	}
	return 0
}

// matches reports whether --get shows a trigger.
func (r *request) matches(t *client.Trigger) bool {
	switch {
	case r.ID != 0 && t.ID != r.ID, r.Job != 0 && t.Job != r.Job, r.hasUser && t.UID != r.UID:
		return false
	case len(r.Events) > 0 && (t.Resource != r.Resource || !slices.Equal(t.Events, r.Events)):
		return false
	case r.f.Has("node") && r.Resource != client.TriggerJob && t.Resource != client.TriggerNode:
		return false
	}
	return true
}

func printRow(w *cmd.World, t *client.Trigger) {
	id, event, flags := t.Nodes, "unknown", ""
	switch {
	case t.Resource == client.TriggerJob:
		id = strconv.FormatInt(int64(t.Job), 10)
	case t.Resource == client.TriggerOther || t.Resource == client.TriggerFrontEnd:
		id = "(null)"
	case id == "":
		id = "*"
	}
	if len(t.Events) == 1 {
		event = t.Events[0]
	}
	if t.Perm {
		flags = "PERM"
	}
	user := string(t.User)
	if u, err := account.ByUID(t.UID); err == nil {
		user = u.Name
	}
	fmt.Fprintf(w.Out, "%7d %-9s %7s %-35s %6d %-8s %-5s %s\n", t.ID, t.Resource, id, event, t.Offset, user, flags,
		t.Program)
}
