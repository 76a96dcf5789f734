package scontrol

import (
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
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "too few arguments for update keyword")
		return slurm.ExitError
	}
	for i := 0; i < len(args); i++ {
		word := args[i]
		alone := strings.EqualFold(word, "Nice") || strings.EqualFold(word, "ResetAccrueTime")
		switch {
		case strings.Contains(word, "="):
		case alone:
			word += "="
		case i+1 < len(args): // KEY VALUE
			i++
			word += "=" + args[i]
		case len(args) > 1 || strings.EqualFold(word, "job") || strings.EqualFold(word, "jobid"):
			fmt.Fprintf(s.w.Err, "Invalid input: %s\nRequest aborted\n", word)
			return slurm.ExitError
		}
		p, _ := parsePair(word)
		pairs = append(pairs, p)
	}
	// a job has a reservation too
	isJob := slices.ContainsFunc(pairs, func(p pair) bool { return p.key == "jobid" || p.key == "job" })
	if !isJob && len(pairs) > 0 && pairs[0].key == "jobname" {
		return jobVerbs{s}.updateByName(ctx, pairs)
	}
	for i, p := range pairs {
		rest := append(append([]pair{}, pairs[:i]...), pairs[i+1:]...)
		switch {
		case p.key == "jobid" || p.key == "job":
			return jobVerbs{s}.updateJobs(ctx, p.value, rest)
		case p.key == "nodename" || p.key == "node":
			return s.updateNodes(ctx, p.value, rest)
		case !isJob && len(p.key) >= 3 && strings.HasPrefix("reservationname", p.key):
			return s.updateReservation(ctx, p.value, rest)
		case !isJob && isPartition(p.key):
			return s.changePartition(ctx, p.value, rest, false)
		case p.key == "stepid":
			return jobVerbs{s}.updateStep(ctx, p, rest)
		}
	}
	fmt.Fprintln(s.w.Err, "No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", "+
		"\"Reservation\", \"JobId\", or \"SlurmctldDebug\"")
	return slurm.ExitError
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
			if strings.EqualFold(p.value, "NORESP") { // whether a node answers is seen
				continue
			}
			word := strings.ToUpper(p.value)
			u.Strict = word == "RESUME" || strings.HasPrefix(word, "POWER_")
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
			known, lines := nodeKey(u, p)
			if known && len(lines) == 0 {
				continue
			}
			if !known {
				lines = []string{fmt.Sprintf("Update of this parameter is not supported: %s\nRequest aborted", p.text)}
			}
			for _, l := range lines {
				fmt.Fprintln(s.w.Err, l)
			}
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
