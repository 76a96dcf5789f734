package scontrol

import (
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// reboot has nodes restart when their jobs have ended: reboot [ASAP] [nextstate=RESUME|DOWN] [reason=TEXT] NODES.
func (s *session) reboot(ctx context.Context, words []string) int {
	u := &client.UpdateNode{State: core.VerbReboot}
	nodes := ""
	for _, word := range words {
		key, value, named := strings.Cut(word, "=")
		switch key = strings.ToLower(key); {
		case !named && key == "asap":
			u.State = core.VerbRebootASAP
		case named && key == "nextstate":
			if u.Next = core.NodeVerb(strings.ToLower(value)); u.Next != core.VerbResume && u.Next != core.VerbDown {
				fmt.Fprintf(s.w.Err, "Invalid nextstate %q: expected RESUME or DOWN\n", value)
				return slurm.ExitError
			}
		case named && key == "reason":
			u.Reason = strings.Trim(value, `"'`)
		case !named && nodes == "":
			nodes = word
		default:
			fmt.Fprintf(s.w.Err, "Invalid reboot option: %s\n", word)
			return slurm.ExitError
		}
	}
	if nodes == "" {
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:reboot")
		return slurm.ExitError
	}
	return s.eachNode(ctx, nodes, u, "scontrol_reboot_nodes")
}

func (s *session) cancelReboot(ctx context.Context, words []string) int {
	if len(words) == 0 {
		fmt.Fprintln(s.w.Err, "missing argument for keyword:cancel_reboot")
		return slurm.ExitError
	}
	if s.tooMany(words, 1) {
		return slurm.ExitError
	}
	return s.eachNode(ctx, words[0], &client.UpdateNode{State: core.VerbCancelReboot}, "slurm_update")
}

// power is power up|down [asap|force] NODES.
func (s *session) power(ctx context.Context, words []string) int {
	if len(words) < 2 {
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:power")
		return slurm.ExitError
	}
	action := "power_" + strings.ToLower(words[0])
	for _, word := range words[1 : len(words)-1] {
		action += "_" + strings.ToLower(word)
	}
	switch verb := core.NodeVerb(action); verb {
	case core.VerbPowerUp, core.VerbPowerDown, core.VerbPowerDownASAP, core.VerbPowerDownForce:
		return s.eachNode(ctx, words[len(words)-1], &client.UpdateNode{State: verb}, "slurm_update")
	default:
	}
	fmt.Fprintf(s.w.Err, "Invalid power option: %s\n", strings.Join(words[:len(words)-1], " "))
	return slurm.ExitError
}
