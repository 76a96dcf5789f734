// Package cmd holds what the Slurm commands share: the world they run in, and how they complain.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
)

// World is what a command sees of the world, so that tests can give it another one.
type World struct {
	Name    string // how the command was called
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Raw     io.Writer // Out for what is a file's, byte for byte; nil: Out itself
	Environ []string
	Dir     string // current directory; empty: it was removed
	Host    string
	Now     func() time.Time
	// Client opens the cluster; it is called once arguments are known to be good.
	Client func() (*client.Client, error)
}

// NoDir is what commands that start something say where there is no current directory.
const NoDir = "getcwd failed: No such file or directory"

// Func is a command: it gets its arguments without its name and returns its exit code.
type Func func(ctx context.Context, w *World, args []string) int

// Real is the world of this process.
func Real(name string) *World {
	dir, err := os.Getwd()
	if err != nil { // it wants to look at the directory as well, which its user may not
		dir, _ = syscall.Getwd()
	}
	host, _ := os.Hostname()
	return &World{
		Name: name, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Raw: rawOut(), Environ: os.Environ(), Dir: dir, Host: host,
		Now: time.Now, Client: func() (*client.Client, error) { return client.FromEnv(client.WithNotice(tellWaiting(name))) },
	}
}

// rawOut is standard output unless it is a terminal, which would act on what is in a file.
func rawOut() io.Writer {
	if info, err := os.Stdout.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return nil
	}
	return os.Stdout
}

// File is where the bytes of a file are printed.
func (w *World) File() io.Writer {
	if w.Raw != nil {
		return w.Raw
	}
	return w.Out
}

// tellWaiting tells people, not scripts, why a command does not answer yet.
func tellWaiting(name string) func(error, time.Duration) {
	return func(err error, left time.Duration) {
		if info, serr := os.Stderr.Stat(); serr == nil && info.Mode()&os.ModeCharDevice != 0 {
			fmt.Fprintf(os.Stderr, "%s: %v; trying again for %v\n", name, err, left)
		}
	}
}

// Lookup finds a variable; of two with one name the last counts.
func (w *World) Lookup(name string) (string, bool) {
	for i := len(w.Environ) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(w.Environ[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// Getenv is Lookup without the second answer.
func (w *World) Getenv(name string) string { v, _ := w.Lookup(name); return v }

// Errorf prints "NAME: error: …".
func (w *World) Errorf(format string, args ...any) {
	fmt.Fprintf(w.Err, "%s: error: %s\n", w.Name, plain.Message(fmt.Sprintf(format, args...)))
}

// Infof prints "NAME: …".
func (w *World) Infof(format string, args ...any) {
	fmt.Fprintf(w.Err, "%s: %s\n", w.Name, plain.Message(fmt.Sprintf(format, args...)))
}

// Told prints what the server has to say of a job that it took.
func (w *World) Told(out *client.Submitted, quiet bool) {
	if out.Warning == "" || quiet {
		return
	}
	for line := range strings.SplitSeq(out.Warning, "\n") {
		w.Infof("%s", line)
	}
}

// Hint prints the line that helps after Slurm's own; an empty one is left out.
func (w *World) Hint(text string) {
	if text != "" {
		fmt.Fprintf(w.Err, "%s: hint: %s\n", w.Name, plain.Message(text))
	}
}

// HintOf prints what the server says of an error beyond Slurm's text for it, unless it has been said.
func (w *World) HintOf(err error) {
	if core.CodeOf(err) != core.Denied && core.ReasonOf(err) != slurm.ReasonPolicy { // their preface tells
		w.Hint(slurm.ErrorHint(err))
	}
}

// HintOfSubmit is HintOf for a submission. If the partition does not exist, it lists those that the caller may see.
func (w *World) HintOfSubmit(ctx context.Context, c *client.Client, err error) {
	if core.ReasonOf(err) != slurm.ReasonInvalidPartition {
		w.HintOf(err)
		return
	}
	text := slurm.ErrorHint(err)
	info, bad := c.Cluster(ctx)
	if bad == nil && len(info.Partitions) > 0 {
		names := make([]string, len(info.Partitions))
		for i := range info.Partitions {
			names[i] = string(info.Partitions[i].Name)
		}
		text = strings.TrimPrefix(text+"; the partitions are: "+strings.Join(names, ", "), "; ")
	}
	w.Hint(text)
}

// Complain prints err and returns the exit code: a Complaint speaks for itself, anything else is an error.
func (w *World) Complain(err error) int {
	var c *slurm.Complaint
	if errors.As(err, &c) {
		for _, line := range c.Lines {
			fmt.Fprintln(w.Err, plain.Message(line))
		}
		w.Hint(c.Hint)
		return c.Exit
	}
	w.Errorf("%s", slurm.ErrorText(err))
	return slurm.ExitError
}

// LoadFailed prints a failed reading of records in the manner of the listing commands ("slurm_load_jobs error: …").
func (w *World) LoadFailed(what string, err error) int {
	fmt.Fprintf(w.Err, "%s: %s\n", what, plain.Message(slurm.ErrorText(err)))
	if client.Unreachable(err) { // which server was tried, and what may help
		w.Hint(err.Error())
	}
	return slurm.ExitError
}

// Flags is a parsed command line of the commands that have a small option table of their own.
type Flags struct {
	Values   []getopt.Value
	Operands []string
}

// Parse reads args by a table. When it cannot, it complains and ok is false.
func (w *World) Parse(p *getopt.Parser, args []string) (f Flags, ok bool) {
	values, operands, err := p.Parse(args)
	if err != nil {
		fmt.Fprintf(w.Err, "%s: %v\n", w.Name, err)
		if w.Name != "sacct" { // which leaves it at that
			fmt.Fprintf(w.Err, "Try \"%s --help\" for more information\n", w.Name)
		}
		return Flags{}, false
	}
	return Flags{values, operands}, true
}

// Begin reads args by a table. ok is false when that is all there is to do: code is what the command leaves with then.
func (w *World) Begin(p *getopt.Parser, args []string) (f Flags, code int, ok bool) {
	f, ok = w.Parse(p, args)
	switch {
	case !ok:
		return f, slurm.ExitError, false
	case f.Has("version"):
		return f, w.PrintVersion(), false
	case f.Has("help"):
		return f, w.PrintHelp(p), false
	case f.Has("usage"):
		return f, w.PrintUsage(p), false
	}
	return f, 0, true
}

// PrintHelp answers --help.
func (w *World) PrintHelp(p *getopt.Parser) int {
	fmt.Fprint(w.Out, manual.Of(w.Name, p).Help())
	return 0
}

// PrintUsage answers --usage.
func (w *World) PrintUsage(p *getopt.Parser) int {
	fmt.Fprint(w.Out, manual.Of(w.Name, p).Usage())
	return 0
}

// Has reports whether an option was given.
func (f Flags) Has(key string) bool {
	for _, v := range f.Values {
		if v.Key == key {
			return true
		}
	}
	return false
}

// Get is the last value of an option.
func (f Flags) Get(key string) string {
	for i := len(f.Values) - 1; i >= 0; i-- {
		if f.Values[i].Key == key {
			return f.Values[i].Value
		}
	}
	return ""
}

// List is the last value of an option as a comma list without empty words.
func (f Flags) List(key string) []string { return SplitList(f.Get(key)) }

// All is every value of an option, joined by commas: sacct adds up what is given several times.
func (f Flags) All(key string) string {
	var values []string
	for _, v := range f.Values {
		if v.Key == key {
			values = append(values, v.Value)
		}
	}
	return strings.Join(values, ",")
}

// AllList is All as a comma list without empty words.
func (f Flags) AllList(key string) []string { return SplitList(f.All(key)) }

// SplitList splits at commas outside of brackets.
func SplitList(text string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ',' && depth == 0:
			if word := strings.TrimSpace(text[start:i]); word != "" {
				out = append(out, word)
			}
			start = i + 1
		case text[i] == '[':
			depth++
		case text[i] == ']':
			depth--
		}
	}
	return out
}

// maxHosts bounds the hosts one expression may name.
const maxHosts = 1 << 18

// Hosts expands a hostlist expression.
func Hosts(expr string) ([]string, error) { return hostlist.Expand(expr, maxHosts) }

// MinJobAge is how long listings of live jobs still show one that has ended, where the server does not go by its own
// jobs.min_age.
const MinJobAge = 5 * time.Minute

// BadMoment is what Slurm says of a time that it cannot read, with the place where it gave up.
func BadMoment(text string, err error) string {
	pos := 0
	var ge *grammar.Error
	if errors.As(err, &ge) {
		pos = ge.Pos
	}
	return fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, text)
}

// ErrnoText is what the system says of a failure, as C programs write it.
func ErrnoText(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// HidePartitions takes those out that Slurm does not list unless all are asked for: the hidden ones, and those that let
// in only groups the user is not of. Administrators see them, as Slurm's operators do.
func HidePartitions(ctx context.Context, c *client.Client, info *client.Cluster) error {
	secret := func(p core.Partition) bool { return p.Hidden || len(p.AllowGroups) > 0 }
	if !slices.ContainsFunc(info.Partitions, secret) {
		return nil
	}
	who, err := c.Whoami(ctx)
	if err != nil || who.Admin {
		return err
	}
	groups := groupNames(who.UID)
	info.Partitions = slices.DeleteFunc(info.Partitions, func(p core.Partition) bool {
		return p.Hidden || len(p.AllowGroups) > 0 && !slices.ContainsFunc(p.AllowGroups, func(g string) bool {
			return slices.Contains(groups, g)
		})
	})
	return nil
}

// groupNames are the groups of a user of this host.
func groupNames(uid uint32) (names []string) {
	u, err := account.ByUID(uid)
	if err != nil {
		return nil
	}
	gids, err := account.Groups(u)
	if err != nil {
		return nil
	}
	for _, gid := range gids {
		names = append(names, GroupName(gid))
	}
	return names
}

// GroupIDs are the numbers of groups given by number or name; bad is the first that is neither.
func GroupIDs(words []string) (ids []uint32, bad string) {
	for _, word := range words {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			g, err := account.GroupByName(word)
			if err != nil {
				return nil, word
			}
			n = uint64(g.GID)
		}
		ids = append(ids, uint32(n))
	}
	return ids, ""
}

// GroupName finds a group's name, or "".
func GroupName(gid uint32) string {
	g, err := account.GroupByGID(gid)
	if err != nil {
		return ""
	}
	return g.Name
}
