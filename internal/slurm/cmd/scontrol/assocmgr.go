package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// assocQuery is what show assoc_mgr is asked for; an empty list is all.
type assocQuery struct {
	kinds                []string // users, assoc, qos; none: all three
	accounts, users, qos []string
}

// assocView prints who may use the cluster, under which limits, and what they use of them now.
type assocView struct {
	*session
	assocQuery
	cluster string
	tracked []string // resources, in Slurm's order
	policy  *core.Policy
	people  []core.User
	shares  []client.Share
	use     *usage
	out     strings.Builder
}

// parse reads the filters; ok is false when that is all there is to do.
func (q *assocQuery) parse(w *cmd.World, args []string) (code int, ok bool) {
	for _, arg := range args {
		key, value, given := strings.Cut(arg, "=")
		if !given {
			fmt.Fprintf(w.Err, "No value given for option %s\n", arg)
			return 0, false
		}
		list := cmd.SplitList(value)
		switch key = strings.ToLower(key); {
		case key != "" && strings.HasPrefix("accounts", key):
			q.accounts = append(q.accounts, list...)
		case key != "" && strings.HasPrefix("users", key):
			q.users = append(q.users, list...)
		case key != "" && strings.HasPrefix("qos", key):
			q.qos = append(q.qos, list...)
		case key != "" && strings.HasPrefix("flags", key):
			for _, word := range list {
				kind := ""
				for _, k := range []string{"assoc", "qos", "users"} {
					if strings.HasPrefix(k, strings.TrimSuffix(strings.ToLower(word), "s")) {
						kind = k
					}
				}
				if kind == "" {
					fmt.Fprintf(w.Err, "invalid flag '%s', valid options are 'Assoc, QOS, and/or Users'\n", word)
					return 0, false
				}
				q.kinds = append(q.kinds, kind)
			}
		default:
			fmt.Fprintf(w.Err, "invalid entity: %s for keyword:show assoc_mgr\n", arg)
			return slurm.ExitError, false
		}
	}
	return 0, true
}

func showAssocMgr(s *session, ctx context.Context, args []string) int {
	v := &assocView{session: s}
	if code, ok := v.parse(s.w, args); !ok {
		return code
	}
	if err := v.load(ctx); err != nil {
		return s.w.LoadFailed("slurm_load_assoc_mgr_info error", err)
	}
	v.out.WriteString("Current Association Manager state\n")
	v.section("users", "User Records", "users", v.userLines())
	v.section("assoc", "Association Records", "associations", v.assocBlocks())
	v.section("qos", "QOS Records", "QOS", v.qosBlocks())
	fmt.Fprint(s.w.Out, v.out.String())
	return 0
}

func (v *assocView) load(ctx context.Context) error {
	c, err := v.client()
	if err != nil {
		return err
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	v.cluster, v.tracked = info.Name, cmd.SplitList(info.Settings["AccountingStorageTRES"])
	if v.policy, err = c.Policy(ctx); err != nil {
		return err
	}
	people, err := c.Users(ctx)
	if err != nil {
		return err
	}
	v.people = people.Users
	shares, err := c.Shares(ctx)
	if err != nil {
		return err
	}
	v.shares = shares.Shares
	jobs, err := c.Jobs(ctx, client.JobsQuery{})
	if err != nil {
		return err
	}
	v.use = usageOf(jobs, v.policy)
	return nil
}

// section prints one kind of records, unless others were asked for.
func (v *assocView) section(kind, title, none string, records []string) {
	if len(v.kinds) > 0 && !slices.Contains(v.kinds, kind) {
		return
	}
	gap := "\n"
	if v.show.OneLine {
		gap = ""
	}
	if len(records) == 0 {
		fmt.Fprintf(&v.out, "%sNo %s currently cached in Slurm.\n\n", gap, none)
		return
	}
	fmt.Fprintf(&v.out, "%s%s\n%s%s", gap, title, gap, strings.Join(records, ""))
}

// wanted reports whether a filter passes a name.
func wanted(filter []string, names ...string) bool {
	return len(filter) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(filter, n) })
}

func (v *assocView) user(name core.UserName) *core.User {
	i := slices.IndexFunc(v.people, func(u core.User) bool { return u.Name == name })
	if i < 0 {
		return &core.User{Name: name}
	}
	return &v.people[i]
}

// named is a user with the number; of one that nobody knows here it is what Slurm has for none.
func named(u *core.User) string { return fmt.Sprintf("%s(%s)", u.Name, uidText(u)) }

func uidText(u *core.User) string {
	if u.UID == nil {
		return "4294967294"
	}
	return strconv.FormatUint(uint64(*u.UID), 10)
}

func (v *assocView) userLines() (lines []string) {
	for i := range v.people {
		u := &v.people[i]
		if !wanted(v.users, string(u.Name), uidText(u)) {
			continue
		}
		level := map[core.Role]string{core.RoleAdmin: "Administrator", core.RoleManager: "Operator"}[u.Role]
		lines = append(lines, fmt.Sprintf("UserName=%s DefAccount=%s DefWckey=%s AdminLevel=%s\n", named(u),
			cmp.Or(string(u.Default), "(null)"), cmp.Or(u.DefaultWCKey, "(null)"), cmp.Or(level, "Not Set")))
	}
	return lines
}

// block joins the lines of a record: below each other, or on one line.
func (v *assocView) block(lines []string) string {
	if v.show.OneLine {
		for i := range lines {
			lines[i] = strings.TrimLeft(lines[i], " ")
		}
		return strings.Join(lines, " ") + "\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// limitText is a limit and what is used of it: 5(2), N(2) where there is no limit.
func limitText(limit *int64, used int64) string {
	if limit == nil {
		return fmt.Sprintf("N(%d)", used)
	}
	return fmt.Sprintf("%d(%d)", *limit, used)
}

// countIf is limitText, and nothing where there is no limit.
func countIf(limit *int64, used int64) string {
	if limit == nil {
		return ""
	}
	return limitText(limit, used)
}

func minutesIf(limit *int64) string {
	if limit == nil {
		return ""
	}
	return strconv.FormatInt(*limit, 10)
}

// tres lists every resource with its limit and what is used of it.
func (v *assocView) tres(limit core.TRES, used func(name string) int64) string {
	words := make([]string, len(v.tracked))
	for i, name := range v.tracked {
		top := "N"
		if n, ok := limit.Get(name); ok {
			top = strconv.FormatInt(n, 10)
		}
		words[i] = fmt.Sprintf("%s=%s(%d)", name, top, used(name))
	}
	return strings.Join(words, ",")
}

// limits lists those that are set, in Slurm's order.
func (v *assocView) limits(t core.TRES) string {
	var words []string
	for _, name := range v.tracked {
		if n, ok := t.Get(name); ok {
			words = append(words, fmt.Sprintf("%s=%d", name, n))
		}
	}
	return strings.Join(words, ",")
}

// usedMinutes are the unit-minutes that an association has used.
func usedMinutes(s *client.Share) func(name string) int64 {
	return func(name string) int64 {
		if n, ok := s.UsageTRES.Get(name); ok && n > 0 || name != "billing" {
			return n
		}
		return int64(s.Usage / 60)
	}
}
