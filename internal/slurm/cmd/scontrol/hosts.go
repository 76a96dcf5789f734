package scontrol

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// hostVerbs are the commands about lists of hosts.
type hostVerbs struct{ *session }

func ofHosts(run func(hostVerbs, context.Context, []string) int) verb {
	return func(s *session, ctx context.Context, args []string) int { return run(hostVerbs{s}, ctx, args) }
}

func (s hostVerbs) showHostnames(_ context.Context, args []string) int {
	expr := s.w.Getenv("SLURM_JOB_NODELIST")
	if len(args) > 0 {
		expr = args[0]
	}
	names, err := cmd.Hosts(expr)
	if err != nil {
		fmt.Fprintf(s.w.Err, "Invalid hostlist: %s\n", expr)
		return slurm.ExitError
	}
	for _, n := range names {
		fmt.Fprintln(s.w.Out, n)
	}
	return 0
}

func (s hostVerbs) showHostlist(_ context.Context, args []string) int {
	return s.foldHosts(args, hostlist.Fold)
}

func (s hostVerbs) showHostlistSorted(_ context.Context, args []string) int {
	return s.foldHosts(args, hostlist.FoldSorted)
}

// foldHosts prints a list of names in the short form; the names are arguments, or lines of a file.
func (s hostVerbs) foldHosts(args []string, fold func([]string) string) int {
	text := strings.Join(args, ",")
	switch {
	case text == "-":
		data, _ := io.ReadAll(s.w.In)
		text = string(data)
	case strings.HasPrefix(text, "/"):
		data, err := os.ReadFile(text)
		if err != nil {
			s.w.Errorf("Unable to open file %s", text)
			return slurm.ExitError
		}
		text = string(data)
	}
	names, err := cmd.Hosts(strings.Join(strings.Fields(text), ","))
	if err != nil {
		fmt.Fprintf(s.w.Err, "Invalid hostlist: %s\n", text)
		return slurm.ExitError
	}
	fmt.Fprintln(s.w.Out, fold(names))
	return 0
}
