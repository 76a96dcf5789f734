package scontrol

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// pair is one KEY=VALUE, KEY+=VALUE or KEY-=VALUE.
type pair struct {
	key, value string
	sign       byte // '+', '-' or 0
	text       string
}

func parsePair(word string) (pair, bool) {
	key, value, ok := strings.Cut(word, "=")
	p := pair{key: strings.ToLower(key), value: value, text: word}
	if n := len(p.key); n > 0 && (p.key[n-1] == '+' || p.key[n-1] == '-') {
		p.sign, p.key = p.key[n-1], p.key[:n-1]
	}
	return p, ok && p.key != ""
}

// update finds out what kind of record is meant by its key.
func (s *session) update(ctx context.Context, args []string) int {
	var pairs []pair
	if len(args) > 1 && !strings.Contains(args[0], "=") { // the entity and its name, with a blank between them
		args = append([]string{args[0] + "=" + args[1]}, args[2:]...)
	}
	for _, word := range args {
		p, ok := parsePair(word)
		if !ok {
			fmt.Fprintf(s.w.Err, "Invalid input: %s\nRequest aborted\n", word)
			return slurm.ExitError
		}
		pairs = append(pairs, p)
	}
	// a job has a reservation too
	isJob := slices.ContainsFunc(pairs, func(p pair) bool { return p.key == "jobid" || p.key == "job" })
	if !isJob && len(pairs) > 0 && (pairs[0].key == "jobname" || pairs[0].key == "name") {
		return updateByName(ctx, s, pairs)
	}
	for i, p := range pairs {
		rest := append(append([]pair{}, pairs[:i]...), pairs[i+1:]...)
		switch {
		case p.key == "jobid" || p.key == "job":
			return s.updateJobs(ctx, p.value, rest)
		case p.key == "nodename" || p.key == "node":
			return s.updateNodes(ctx, p.value, rest)
		case !isJob && len(p.key) >= 3 && strings.HasPrefix("reservationname", p.key):
			return s.updateReservation(ctx, p.value, rest)
		case !isJob && isPartition(p.key):
			return s.changePartition(ctx, p.value, rest, false)
		case p.key == "stepid":
			fmt.Fprintln(s.w.Err, "slurm_update error: Requested operation not supported on this system")
			return slurm.ExitError
		}
	}
	fmt.Fprintln(s.w.Err, "No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", "+
		"\"Reservation\", \"JobId\", or \"SlurmctldDebug\"")
	return slurm.ExitError
}

// updateByName changes all live jobs of a name, those of one user if the command says which.
func updateByName(ctx context.Context, s *session, pairs []pair) int {
	name, uid, rest := pairs[0].value, "", []pair{}
	for _, p := range pairs[1:] {
		if p.key == "userid" {
			uid = p.value
		} else {
			rest = append(rest, p)
		}
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Jobs(ctx, client.JobsQuery{Names: []string{name}})
	if err != nil {
		return s.w.LoadFailed("slurm_load_jobs error", err)
	}
	var ids []string
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if uid == "" || strconv.FormatUint(uint64(j.Spec.UID), 10) == uid || string(j.Spec.User) == uid {
			ids = append(ids, strconv.FormatInt(int64(j.ID), 10))
		}
	}
	switch {
	case len(ids) > 0:
		return s.updateJobs(ctx, strings.Join(ids, ","), rest)
	case uid != "":
		s.w.Errorf("No jobs with user ID %s and name '%s'", uid, name)
	default:
		s.w.Errorf("No jobs with name '%s'", name)
	}
	return slurm.ExitError
}

// jobKeys are keys of Slurm's update that we know but cannot change.
var jobKeys = strings.Fields("admincomment burstbuffer clusters clusterfeatures contiguous corespec delayboot extra " +
	"mcslabel " +
	"mintmpdisknode nodelist oversubscribe reboot reqcores reqsockets reqthreads resetaccruetime segmentsize " +
	"threadspec userid wait-for-switch workdir")

func (s *session) updateJobs(ctx context.Context, ids string, pairs []pair) int {
	u := &client.Update{}
	var relative *pair
	for i, p := range pairs {
		if p.sign != 0 && p.key != "timelimit" {
			s.w.Errorf("Option %s does not accept [+|-]= syntax", p.text)
			return slurm.ExitError
		}
		switch p.key {
		case "endtime":
			relative = &pairs[i]
		case "mailuser":
			u.MailUser = &pairs[i].value
		case "mailtype":
			list, ok := slurm.MailTypes(p.value)
			if !ok {
				return s.badValue(p)
			}
			u.MailTypes = &list
		case "wckey":
			u.WCKey = &pairs[i].value
		case "stdin":
			u.Stdin = &pairs[i].value
		case "stdout":
			u.Stdout = &pairs[i].value
		case "stderr":
			u.Stderr = &pairs[i].value
		case "timelimit":
			if p.sign != 0 {
				relative = &pairs[i]
				continue
			}
			limit, ok := timeLimit(p.value)
			if !ok {
				fmt.Fprintf(s.w.Err, "Invalid TimeLimit value: %s\nRequest aborted\n", p.value)
				return slurm.ExitError
			}
			u.TimeLimit = &limit
		case "nice":
			n, err := strconv.ParseInt(p.value, 10, 32)
			if err != nil {
				return s.badValue(p)
			}
			nice := int32(n)
			u.Nice = &nice
		case "priority":
			n, err := strconv.ParseUint(p.value, 10, 32)
			if err != nil {
				return s.badValue(p)
			}
			prio := uint32(n)
			if prio == 0 { // as Slurm: a priority of 0 is a hold
				hold := true
				u.Hold = &hold
				continue
			}
			u.Priority = &prio
		case "jobname", "name":
			u.Name = &pairs[i].value
		case "partition":
			part := core.ParsePartitions(p.value)
			u.Partition = &part
		case "qos":
			qos := core.QOSName(p.value)
			u.QOS = &qos
		case "sitefactor":
			n, err := strconv.ParseInt(p.value, 10, 32)
			if err != nil {
				return s.badValue(p)
			}
			site := int32(n)
			u.Site = &site
		case "comment":
			u.Comment = &pairs[i].value
		case "dependency":
			parse(&u.Dependency, p.value)
		case "reservationname", "reservation":
			u.Reservation = &pairs[i].value
		case "licenses":
			parse(&u.Licenses, p.value)
		case "timemin":
			least, ok := timeLimit(p.value)
			if !ok {
				return s.badValue(p)
			}
			u.TimeMin = &least
		case "deadline":
			t, err := grammar.ParseMoment(p.value, s.w.Now(), grammar.Upcoming)
			if err != nil {
				return s.badValue(p)
			}
			at := core.At(t)
			u.Deadline = &at
		case "starttime", "eligibletime":
			t, err := grammar.ParseMoment(p.value, s.w.Now(), grammar.Upcoming)
			if err != nil {
				return s.badValue(p)
			}
			at := core.At(t)
			u.Begin = &at
		default:
			if known, ok := ask(&p, u); ok {
				continue
			} else if known {
				return s.badValue(p)
			}
			for _, key := range jobKeys {
				if strings.EqualFold(key, p.key) {
					fmt.Fprintf(s.w.Err, "Requested operation not supported on this system for job %s\n", ids)
					return slurm.ExitError
				}
			}
			fmt.Fprintf(s.w.Err, "Update of this parameter is not supported: %s\nRequest aborted\n", p.text)
			return slurm.ExitError
		}
	}
	if relative != nil {
		if code := addTime(ctx, s, ids, relative, u); code != 0 {
			return code
		}
	}
	return s.each(ctx, []string{ids}, "", u)
}

func (s *session) badValue(p pair) int {
	fmt.Fprintf(s.w.Err, "Invalid value for %s: %s\nRequest aborted\n", p.key, p.value)
	return slurm.ExitError
}

func timeLimit(text string) (core.Seconds, bool) {
	m, err := grammar.ParseTimeLimit(text)
	switch {
	case err != nil:
		return 0, false
	case m == grammar.Unlimited:
		return core.Forever, true
	}
	return core.Seconds(m * 60), true
}

// addTime turns TimeLimit+= and -=, and EndTime of a job that runs, into a limit, from what the job has.
func addTime(ctx context.Context, s *session, id string, p *pair, u *client.Update) int {
	delta, ok := core.Seconds(0), true
	var end time.Time
	if p.key == "endtime" {
		var err error
		end, err = grammar.ParseMoment(p.value, s.w.Now(), grammar.Upcoming)
		ok = err == nil
	} else {
		delta, ok = timeLimit(p.value)
		ok = ok && delta < core.Forever
	}
	if !ok {
		return s.badValue(*p)
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Job(ctx, id)
	if err != nil || len(list.Jobs) == 0 {
		fmt.Fprintf(s.w.Err, "Invalid job id specified for job %s\n", id)
		return slurm.ExitError
	}
	j := &list.Jobs[0]
	limit := j.Spec.TimeLimit
	switch {
	case !end.IsZero() && j.State == core.Pending:
		fmt.Fprintf(s.w.Err, "Job is pending execution for job %s\n", id)
		return slurm.ExitError
	case !end.IsZero(): // in minutes, rounded up, as all limits are
		limit = max(60, core.Seconds((end.Sub(j.Start.Go())+time.Minute-1)/time.Minute*60))
	case limit < core.Forever && p.sign == '-':
		limit = max(60, limit-delta)
	case limit < core.Forever:
		limit = max(60, limit+delta)
	}
	u.TimeLimit = &limit
	return 0
}

// nodeActions are the states that can be asked for, in our words.
var nodeActions = map[string]core.NodeVerb{
	"DRAIN": core.VerbDrain, "DOWN": core.VerbDown, "FAIL": core.VerbFail, "FUTURE": core.VerbFuture,
	"RESUME": core.VerbResume, "IDLE": core.VerbResume,
	"UNDRAIN":  core.VerbUndrain,
	"POWER_UP": core.VerbPowerUp, "POWER_DOWN": core.VerbPowerDown, "POWER_DOWN_ASAP": core.VerbPowerDownASAP,
	"POWER_DOWN_FORCE": core.VerbPowerDownForce,
	"CANCEL_REBOOT":    core.VerbCancelReboot,
}

func (s *session) updateNodes(ctx context.Context, expr string, pairs []pair) int {
	u := &client.UpdateNode{}
	for _, p := range pairs {
		if p.sign != 0 {
			p.key = "" // nothing of a node is added to
		}
		switch p.key {
		case "state":
			action, ok := nodeActions[strings.ToUpper(p.value)]
			if !ok {
				fmt.Fprintf(s.w.Err, "Invalid input: %s\nRequest aborted\nValid states are: NoResp DRAIN FAIL FUTURE RESUME "+
					"POWER_DOWN POWER_UP UNDRAIN\nNot all states are valid given a node's prior state\n", p.text)
				return slurm.ExitError
			}
			u.State = action
		case "reason":
			u.Reason = p.value
		case "resumeafter":
			after, err := resumeAfter(p.value)
			if err != nil {
				fmt.Fprintf(s.w.Err, "Invalid ResumeAfter value: %s\nRequest aborted\n", p.value)
				return slurm.ExitError
			}
			u.ResumeAfter = after
		default:
			fmt.Fprintf(s.w.Err, "Update of this parameter is not supported: %s\nRequest aborted\n", p.text)
			return slurm.ExitError
		}
	}
	if u.State.NeedsReason() && u.Reason == "" {
		fmt.Fprintln(s.w.Err, "You must specify a reason when DOWNING or DRAINING a node. Request denied")
		return slurm.ExitError
	}
	return s.eachNode(ctx, expr, u, "slurm_update")
}

// resumeAfter reads seconds, or -1 or INFINITE for never.
func resumeAfter(text string) (core.Seconds, error) {
	if text == "-1" || strings.EqualFold(text, "INFINITE") {
		return -1, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err == nil && n == 0 {
		err = core.Errorf(core.Invalid, "%q: expected seconds", text)
	}
	return core.Seconds(n), err
}

// eachNode asks the same of every node of a list; call names it in errors.
func (s *session) eachNode(ctx context.Context, expr string, u *client.UpdateNode, call string) int {
	names, err := cmd.Hosts(expr)
	if err != nil || len(names) == 0 {
		fmt.Fprintln(s.w.Err, call+" error: Invalid node name specified")
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	for _, name := range names {
		if err := c.UpdateNode(ctx, core.NodeName(name), u); err != nil {
			text := slurm.ErrorText(err)
			if core.CodeOf(err) == core.NotFound {
				text = "Invalid node name specified"
			}
			fmt.Fprintf(s.w.Err, "%s error: %s\n", call, text)
			return slurm.ExitError
		}
	}
	return 0
}
