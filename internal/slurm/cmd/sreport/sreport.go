// Package sreport is the command that reports usage: of the cluster, by accounts, users and WCKeys, by size of jobs
// and of reservations.
package sreport

import (
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "all_clusters", Short: 'a'},
	{Long: "federation"},
	{Long: "help", Short: 'h'},
	{Long: "local"},
	{Key: "clusters", Long: "cluster", Short: 'M', Arg: getopt.RequiredArg},
	{Long: "noheader", Short: 'n'},
	{Long: "parsable", Short: 'p'},
	{Long: "parsable2", Short: 'P'},
	{Long: "quiet", Short: 'Q'},
	{Key: "time", Short: 't', Arg: getopt.RequiredArg},
	{Long: "tres", Short: 'T', Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// session is one sreport: what its options say, for all reports it makes.
type session struct {
	w   *cmd.World
	c   *client.Client
	ctx context.Context

	noHeader, parsable, parsable2 bool
	time                          timeFormat
	tres                          []string // asked for by --tres, in lower case
	clusters                      []string // none: our own
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	s := &session{
		w: w, ctx: ctx, noHeader: f.Has("noheader"), parsable: f.Has("parsable"), parsable2: f.Has("parsable2"),
		time: minutes, clusters: f.List("clusters"),
	}
	for _, name := range f.List("tres") {
		s.tres = append(s.tres, strings.ToLower(name))
	}
	if f.Has("time") {
		s.setTime(f.Get("time"))
	}
	if len(f.Operands) == 0 {
		return w.Prompt(s.command)
	}
	return s.command(f.Operands)
}

// match reports whether a typed word is a keyword cut to no fewer than least letters.
func match(typed, word string, least int) bool {
	return len(typed) >= least && len(typed) <= len(word) && strings.EqualFold(typed, word[:len(typed)])
}

// command carries out one command line.
func (s *session) command(words []string) int {
	verb, rest := words[0], words[1:]
	for _, k := range []struct {
		word  string
		least int
		run   func([]string) int
	}{
		{"cluster", 2, s.clusterReport},
		{"job", 1, s.jobReport},
		{"reservation", 2, s.reservationReport},
		{"resv", 4, s.reservationReport},
		{"user", 1, s.userReport},
	} {
		if !match(verb, k.word, k.least) {
			continue
		}
		if len(rest) == 0 {
			fmt.Fprintf(s.w.Err, "too few arguments for keyword:%s\n", verb)
			return slurm.ExitError
		}
		return k.run(rest)
	}
	switch {
	case match(verb, "help", 2):
		return s.w.PrintHelp(parser)
	case match(verb, "version", 4):
		return s.w.PrintVersion()
	case match(verb, "nonparsable", 4):
		s.parsable, s.parsable2 = false, false
	case match(verb, "parsable2", 9):
		s.parsable, s.parsable2 = false, true
	case match(verb, "parsable", 2):
		s.parsable, s.parsable2 = true, false
	case match(verb, "quiet", 4), match(verb, "verbose", 4):
	case match(verb, "time", 1):
		if len(rest) == 0 {
			fmt.Fprintf(s.w.Err, "too few arguments for keyword:%s\n", verb)
			return slurm.ExitError
		}
		s.setTime(rest[0])
	default:
		fmt.Fprintf(s.w.Err, "invalid keyword: %s\n", verb)
		return slurm.ExitError
	}
	return 0
}

// refuseReport says that there is no such report.
func (s *session) refuseReport(word, kind, valid string) int {
	fmt.Fprintf(s.w.Err, "Not valid report %s\nValid %s reports are, %s\n", word, kind, valid)
	return slurm.ExitError
}

// setTime takes a format of times; one that is not known is passed over with a word.
func (s *session) setTime(word string) {
	t, ok := parseTime(word)
	if !ok {
		fmt.Fprintf(s.w.Err, "unknown time format %s", word)
		return
	}
	s.time = t
}
