package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"bireme.dev/bireme/internal/core"
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
	expr := cmp.Or(s.w.Getenv("SLURM_NODELIST"), s.w.Getenv("SLURM_JOB_NODELIST"))
	if len(args) > 0 {
		expr = args[0]
	} else if expr == "" {
		s.w.Errorf("host list is empty")
		return 0
	}
	names, err := slurmOrder(expr)
	if err != nil {
		fmt.Fprintf(s.w.Err, "Invalid hostlist: %s\n", expr)
		return slurm.ExitError
	}
	for _, n := range names {
		fmt.Fprintln(s.w.Out, n)
	}
	return 0
}

// slurmOrder expands a list in the order of Slurm: with three ranges in a name and more the last one changes first,
// then the first one, the second one and so on.
func slurmOrder(expr string) ([]string, error) {
	if strings.Count(expr, "[") < 3 {
		return cmd.Hosts(expr)
	}
	var out []string
	for _, item := range cmd.SplitList(expr) {
		at := strings.LastIndexByte(item, '[')
		if strings.Count(item, "[") < 3 {
			at = 0
		}
		heads := []string{""}
		for rest := item[:at]; rest != ""; {
			literal, after, ranged := strings.Cut(rest, "[")
			if rest = ""; !ranged {
				after = ""
			}
			numbers, tail, _ := strings.Cut(after, "]")
			values := []string{""}
			if ranged {
				names, err := cmd.Hosts("x[" + numbers + "]")
				if err != nil {
					return nil, err
				}
				for i := range names {
					names[i] = names[i][1:]
				}
				values, rest = names, tail
			}
			if len(values)*len(heads) > maxNames {
				return nil, core.Errorf(core.Invalid, "it names more than %d hosts", maxNames)
			}
			var next []string
			for _, v := range values {
				for _, h := range heads {
					next = append(next, h+literal+v)
				}
			}
			heads = next
		}
		for _, h := range heads {
			names, err := cmd.Hosts(h + item[at:])
			if err != nil {
				return nil, err
			}
			if out = append(out, names...); len(out) > maxNames {
				return nil, core.Errorf(core.Invalid, "it names more than %d hosts", maxNames)
			}
		}
	}
	return out, nil
}

// maxNames bounds the hosts that one list may name.
const maxNames = 1 << 18

func (s hostVerbs) showHostlist(_ context.Context, args []string) int {
	return s.foldHosts(args, hostlist.Fold)
}

func (s hostVerbs) showHostlistSorted(_ context.Context, args []string) int {
	return s.foldHosts(args, hostlist.FoldSorted)
}

// foldHosts prints a list of names in the short form; the names are arguments, or lines of a file.
func (s hostVerbs) foldHosts(args []string, fold func([]string) string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.w.Err, "invalid encode argument")
		return slurm.ExitError
	}
	text := args[0]
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
