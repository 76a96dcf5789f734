package scontrol

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// isPartition reports whether a word, in small letters, means a partition.
func isPartition(word string) bool { return len(word) >= 3 && strings.HasPrefix("partitionname", word) }

// changePartition makes or changes a partition. Before says what its complaints begin with.
func (s *session) changePartition(ctx context.Context, name string, pairs []pair, made bool) int {
	u := &client.PartitionChange{New: made}
	before := "slurm_update error"
	if made {
		before = "slurm_create_partition error"
	}
	for i := range pairs {
		known, good := partitionKey(u, &pairs[i])
		switch {
		case pairs[i].sign != 0 || !known:
			s.w.Errorf("Update of this parameter is not supported: %s\n", pairs[i].text)
			s.w.Errorf("Request aborted")
		case !good:
			s.w.Errorf("Invalid input %s", pairs[i].text)
		default:
			continue
		}
		fmt.Fprintf(s.w.Err, "%s: No error\n", before)
		return slurm.ExitError
	}
	c, err := s.client()
	if err == nil {
		err = c.ChangePartition(ctx, core.PartitionName(name), u)
	}
	if err != nil {
		fmt.Fprintf(s.w.Err, "%s: %s\n", before, slurm.ErrorTexts(err))
		return slurm.ExitError
	}
	return 0
}

// partitionKey takes one KEY=VALUE: whether the key is known, and its value good.
func partitionKey(u *client.PartitionChange, p *pair) (known, good bool) {
	number := func(at **int32) bool {
		n := int64(0)
		if !strings.EqualFold(p.value, "UNLIMITED") {
			var err error
			if n, err = strconv.ParseInt(p.value, 10, 31); err != nil || n < 0 {
				return false
			}
		}
		x := int32(n)
		*at = &x
		return true
	}
	limit := func(at **core.Seconds) bool {
		t, ok := timeLimit(p.value)
		*at = &t
		return ok
	}
	switch p.key {
	case "state":
		u.State = &p.value
	case "nodes":
		u.Nodes = &p.value
	case "default":
		yes := strings.EqualFold(p.value, "YES")
		u.Default = &yes
		return true, yes || strings.EqualFold(p.value, "NO")
	case "maxtime":
		return true, limit(&u.MaxTime)
	case "defaulttime":
		return true, limit(&u.DefaultTime)
	case "maxnodes":
		return true, number(&u.MaxNodes)
	case "minnodes":
		return true, number(&u.MinNodes)
	case "priority":
		return true, number(&u.PriorityTier) && number(&u.PriorityFactor)
	case "prioritytier":
		return true, number(&u.PriorityTier)
	case "priorityjobfactor":
		return true, number(&u.PriorityFactor)
	default:
		return false, false
	}
	return true, true
}

// createPartition reads PartitionName=NAME and what follows.
func (s *session) createPartition(ctx context.Context, args []string) int {
	var name string
	var pairs []pair
	for _, word := range args {
		switch p, ok := parsePair(word); {
		case !ok:
			fmt.Fprintf(s.w.Err, "Invalid input: %s\nRequest aborted\n", word)
			return slurm.ExitError
		case isPartition(p.key):
			name = p.value
		default:
			pairs = append(pairs, p)
		}
	}
	if name == "" {
		fmt.Fprintln(s.w.Err, "PartitionName must be given.")
		return slurm.ExitError
	}
	return s.changePartition(ctx, name, pairs, true)
}

func (s *session) deletePartition(ctx context.Context, name string, args []string) int {
	c, err := s.client()
	if err == nil {
		err = c.DropPartition(ctx, core.PartitionName(name))
	}
	if err != nil {
		fmt.Fprintf(s.w.Err, "delete_partition %s: %s\n", strings.Join(args, " "), slurm.ErrorText(err))
		return slurm.ExitError
	}
	return 0
}
