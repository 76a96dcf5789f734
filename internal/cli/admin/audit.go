package admin

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
)

type auditOptions struct {
	app                                            *app.App
	user, token, action, object, answer, from, end string
	limit                                          int
	json                                           bool
}

func auditCommand(a *app.App) *cobra.Command {
	o := &auditOptions{app: a}
	c := &cobra.Command{
		Use: "audit", Short: "show the audit log: who asked for what, with which answer (administrators)", Args: cobra.NoArgs,
		Long: "Show the audit log, oldest first: sign-ins, refusals, acts of administrators, acts on and looks at " +
			"other people's things, changes of " +
			"policy and tokens. Only administrators may, and each look is in the log itself.",
		Example: "  bireme audit --since 24h --answer denied\n  bireme audit --user mia --action job.cancel\n  " +
			"bireme audit --object 'user *' --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVarP(&o.user, "user", "u", "", "what `USER` asked for")
	f.StringVar(&o.token, "by-token", "", "what was asked with the token of this id or `NAME`")
	f.StringVar(&o.action, "action", "", "such as job.cancel, or job for all that begins with job.")
	f.StringVar(&o.object, "object", "", "such as 'job 12'; 'job *' for all that begins so")
	f.StringVar(&o.answer, "answer", "", "ok, denied, unknown_user, invalid, not_found, …")
	f.StringVar(&o.from, "since", "", "from `TIME` on: 2h, 7d (ago), 2027-01-31, 2027-01-31T12:00:00")
	f.StringVar(&o.end, "until", "", "before `TIME`")
	f.IntVar(&o.limit, "limit", 100, "at most so many, the newest")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// auditAnswers are what the audit log has for an answer.
var auditAnswers = []string{
	core.AuditOK, string(core.Denied), string(core.Unknown), string(core.Invalid), string(core.NotFound),
	string(core.Conflict), string(core.Exhausted), string(core.Unavailable), string(core.Gone), string(core.TooLarge),
	string(core.Internal), "several",
}

func (o *auditOptions) query() (url.Values, error) {
	if o.answer != "" && !slices.Contains(auditAnswers, o.answer) {
		return nil, app.Usagef("--answer %s: expected one of %s%s", o.answer, strings.Join(auditAnswers, ", "),
			nearest.Hint(o.answer, auditAnswers))
	}
	v := url.Values{}
	for name, value := range map[string]string{
		"user": o.user, "token": o.token, "action": o.action, "object": o.object,
		"answer": o.answer,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for _, x := range [][2]string{{"since", o.from}, {"until", o.end}} {
		if x[1] == "" {
			continue
		}
		at, err := moment(x[0], x[1], o.app.Now())
		if err != nil {
			return nil, err
		}
		v.Set(x[0], strconv.FormatInt(int64(at), 10))
	}
	if o.limit < 1 || o.limit > 5000 {
		return nil, app.Usagef("--limit %d: expected 1 to 5000", o.limit)
	}
	v.Set("limit", strconv.Itoa(o.limit))
	return v, nil
}

// moment reads a time of the past: a date, or how long ago.
func moment(option, text string, now time.Time) (core.Time, error) {
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return core.At(at), nil
		}
	}
	ago, err := lengthOf(option, text)
	if err != nil {
		return 0, app.Usagef("--%s %q: expected a time such as 2027-01-31T12:00:00, or an age such as 12h or 30d",
			option, text)
	}
	return core.At(now.Add(-ago.Duration())), nil
}

func (o *auditOptions) run(ctx context.Context) error {
	v, err := o.query()
	if err != nil {
		return err
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	list, err := c.Audit(ctx, v)
	if err != nil {
		return err
	}
	slices.Reverse(list.Entries) // as they happened
	if o.json {
		if list.Entries == nil {
			list.Entries = []core.AuditEntry{}
		}
		return o.app.PrintJSON(list)
	}
	t := app.Table{{"TIME", "USER", "FROM", "TOKEN", "ACTION", "OBJECT", "ANSWER", "TIMES", "SAID"}}
	for i := range list.Entries {
		e := &list.Entries[i]
		times := ""
		if e.Count > 1 {
			times = strconv.FormatInt(e.Count, 10)
		}
		token := e.TokenName
		if token == "" {
			token = e.Token
		}
		t.Row(app.Clock(e.At), string(e.User), cameFrom(e), token, e.Action, objectText(e), e.Answer, times, said(e))
	}
	if err := t.Write(o.app.Out); err != nil {
		return err
	}
	if list.More {
		o.app.Note("there are more entries: raise --limit or give an earlier --until")
	}
	return nil
}

// cameFrom is the node and address a call came from.
func cameFrom(e *core.AuditEntry) string {
	if e.Node != "" {
		return string(e.Node)
	}
	return e.Addr
}

func objectText(e *core.AuditEntry) string {
	if e.Owner == "" {
		return e.Object
	}
	return strings.TrimSpace(e.Object + " of " + string(e.Owner))
}

// said is what the caller was told, or else what they sent.
func said(e *core.AuditEntry) string {
	text := e.Message
	if text == "" {
		text = e.Detail
	}
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:99]) + "…"
	}
	return text
}
