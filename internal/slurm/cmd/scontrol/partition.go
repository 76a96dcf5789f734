package scontrol

import (
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// isPartition reports whether a word, in small letters, means a partition.
func isPartition(word string) bool { return len(word) >= 3 && strings.HasPrefix("partitionname", word) }

// createPartition reads PartitionName=NAME and what follows.
func (s *session) createPartition(ctx context.Context, args []string) int {
	var name string
	var pairs []pair
	for _, word := range args {
		switch p, ok := parsePair(word); {
		case !ok:
			s.w.Errorf("Invalid input: %s  Request aborted", word)
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
		fmt.Fprintf(s.w.Err, "delete_partition %s: %s\n", args[0], slurm.ErrorText(err))
		return slurm.ExitError
	}
	return 0
}
