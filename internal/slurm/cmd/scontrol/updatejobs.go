package scontrol

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
)

// updateByName changes all live jobs of a name, those of one user if the command says which.
func (s jobVerbs) updateByName(ctx context.Context, pairs []pair) int {
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

func (s jobVerbs) updateJobs(ctx context.Context, ids string, pairs []pair) int {
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
		if code := s.addTime(ctx, ids, relative, u); code != 0 {
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
func (s jobVerbs) addTime(ctx context.Context, id string, p *pair, u *client.Update) int {
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
