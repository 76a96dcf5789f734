package slurm

import (
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
)

// Tool is a set of the commands that ask for resources.
type Tool uint8

// The commands.
const (
	Sbatch Tool = 1 << iota
	Salloc
	Srun
	allTools = Sbatch | Salloc | Srun
)

// String is the command's name.
func (t Tool) String() string {
	switch t {
	case Sbatch:
		return "sbatch"
	case Salloc:
		return "salloc"
	case Srun:
		return "srun"
	default:
		return "slurm"
	}
}

// Option is a row of the one table of options that sbatch, salloc and srun share.
type Option struct {
	Long  string
	Short byte
	Arg   getopt.Arg
	Tools Tool
	// Env is the input variable without its prefix (SBATCH_, SALLOC_, SLURM_); empty: none.
	Env string
	// Vars are the whole names of srun's variables where they are not SLURM_+Env, the strongest first.
	Vars   []string
	Shared bool   // SLURM_+Env also counts for the other commands, after their own
	Value  string // how help names the value
	Help   string
	set    func(r *Request, value string) error
}

// Complaint is a refusal in Slurm's own words: lines for standard error, and the exit code. Hint is one more line, in
// ours, that helps where Slurm's do not.
type Complaint struct {
	Lines []string
	Hint  string
	Exit  int
}

// hint adds what would help; empty text adds nothing.
func (c *Complaint) hint(format string, args ...any) *Complaint {
	c.Hint = fmt.Sprintf(format, args...)
	return c
}

// Error joins the lines.
func (c *Complaint) Error() string { return strings.Join(c.Lines, "\n") }

// Exit codes of the commands for bad options and for everything else.
const (
	ExitUsage = 255
	ExitError = 1
)

// parserFor cuts the table for a tool.
func parserFor(t Tool) *getopt.Parser {
	p := &getopt.Parser{}
	for _, o := range options() {
		if o.Tools&t != 0 {
			p.Options = append(p.Options, getopt.Option{Long: o.Long, Short: o.Short, Arg: o.Arg})
		}
	}
	return p
}

func optionOf(t Tool, long string) *Option {
	table := options()
	for i := range table {
		if o := &table[i]; o.Tools&t != 0 && o.Long == long {
			return o
		}
	}
	return nil
}

// variables are the input variables of o for a tool, the strongest first.
func (o *Option) variables(t Tool) []string {
	switch {
	case t == Srun && o.Vars != nil:
		return o.Vars
	case o.Env == "":
		return nil
	case t == Srun:
		return []string{"SLURM_" + o.Env}
	}
	names := []string{strings.ToUpper(t.String()) + "_" + o.Env}
	if o.Shared {
		names = append(names, "SLURM_"+o.Env)
	}
	return names
}

// FlagOn reports whether a variable of a flag switches it on, as Slurm: empty, yes, or a number that is not zero.
func FlagOn(value string) bool {
	if value == "" || strings.EqualFold(value, "yes") {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && n != 0
}

// Manual is the tool's page: its options as the table has them.
func Manual(t Tool) *manual.Page {
	page := manual.Of(t.String(), &getopt.Parser{})
	for i := range options() {
		o := &options()[i]
		if o.Tools&t == 0 {
			continue
		}
		page.Rows = append(page.Rows, manual.Row{
			Long: o.Long, Short: o.Short, Arg: o.Arg, Value: o.Value, Text: o.Help,
			Vars: o.variables(t),
		})
	}
	return page
}
