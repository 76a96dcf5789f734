package manual

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/slurm/getopt"
)

// Slurm's commands have six forms of --help and --usage. People and programs look for their fixed lines, so each
// command keeps its form; the texts in between are our own.
var styles = map[string]struct{ help, usage func(*Page) string }{
	"squeue": {(*Page).listHelp, (*Page).listUsage}, "sinfo": {(*Page).listHelp, (*Page).listUsage},
	"scancel": {(*Page).listHelp, (*Page).listUsage}, "sprio": {(*Page).listHelp, (*Page).listUsage},
	"sdiag": {(*Page).listHelp, (*Page).listUsage}, "strigger": {(*Page).listHelp, (*Page).listUsage},
	"scontrol": {(*Page).wordHelp, (*Page).wordHelp}, "sacctmgr": {(*Page).wordHelp, (*Page).wordHelp},
	"sreport": {(*Page).wordHelp, (*Page).wordHelp},
	"sacct":   {(*Page).colonHelp, (*Page).shortUsage}, "sstat": {(*Page).colonHelp, (*Page).shortUsage},
	"sshare":  {(*Page).orHelp, (*Page).orHelp},
	"sattach": {(*Page).stepHelp, (*Page).stepUsage}, "sbcast": {(*Page).stepHelp, (*Page).stepUsage},
	"sbatch": {(*Page).submitHelp, (*Page).submitUsage}, "salloc": {(*Page).submitHelp, (*Page).submitUsage},
	"srun": {(*Page).submitHelp, (*Page).submitUsage},
}

// Styled reports whether a command has Slurm's form of help.
func Styled(name string) bool { _, ok := styles[name]; return ok }

// operands follow the options in the first line of listHelp and in the last of listUsage.
var operands = map[string]string{"scancel": "[job_id[_array_id][.step_id]]"}

// usages are the lines of --usage that are fixed.
var usages = map[string]string{
	"sinfo": "[-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]\n" +
		"             [-S fields] [-o format] [-O Format] [--federation] [--local]",
	"sprio": "[-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]\n" +
		"   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]",
	"sdiag":    "[-M cluster] [-aritT]",
	"strigger": "[--set | --get | --clear | --version] [-aAbBcCdDefFgGhHiIjnNopQrtuv]",
}

// options writes the options, a line each, from the second column on.
func (p *Page) options(b *strings.Builder, indent string) {
	const column = 30
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Long != "help" && r.Long != "usage" {
			optionLine(b, indent+r.names(), r.Text, column)
		}
	}
}

// optionLine writes what stands left of a column and the text that begins in it.
func optionLine(b *strings.Builder, left, text string, column int) {
	if len(left) >= column {
		fmt.Fprintf(b, "%s\n%*s", left, column, "")
	} else {
		fmt.Fprintf(b, "%-*s", column, left)
	}
	b.WriteString(strings.TrimLeft(fold(text, strings.Repeat(" ", column)), " ") + "\n")
}

// listHelp is that of the commands that list or pick jobs and nodes.
func (p *Page) listHelp() string {
	use := "[OPTIONS]"
	switch {
	case operands[p.Name] != "":
		use += " " + operands[p.Name]
	case p.Name == "strigger":
		use = "[--set | --get | --clear] [OPTIONS]"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s\n", p.Name, use)
	p.options(&b, "  ")
	brief := "display brief usage message"
	if p.Name == "squeue" || p.Name == "sprio" {
		brief = "display a brief summary of " + p.Name + " options"
	}
	b.WriteString("\nHelp options:\n")
	optionLine(&b, "  --help", "show this help message", 30)
	optionLine(&b, "  --usage", brief, 30)
	return b.String()
}

// listUsage names the options in brackets: those with a value, then the letters of the others.
func (p *Page) listUsage() string {
	if fixed := usages[p.Name]; fixed != "" {
		return "Usage: " + p.Name + " " + fixed + "\n"
	}
	words, letters := []string{"Usage: " + p.Name}, ""
	for i := range p.Rows {
		switch r := p.Rows[i]; {
		case r.Arg == getopt.NoArg && r.Short != 0:
			letters += string(rune(r.Short))
		case r.Arg == getopt.RequiredArg && r.Short != 0:
			words = append(words, "[-"+string(rune(r.Short))+" "+strings.ToLower(r.Value)+"]")
		case r.Arg == getopt.OptionalArg && r.Short != 0:
			words = append(words, "[-"+string(rune(r.Short))+"]")
		case r.Arg == getopt.RequiredArg:
			words = append(words, "[--"+r.Long+" "+strings.ToLower(r.Value)+"]")
		default:
			words = append(words, "[--"+r.Long+"]")
		}
	}
	words = append(words, "[-"+letters+"]")
	if o := operands[p.Name]; o != "" {
		words = append(words, o)
	}
	return wrap(words, strings.Repeat(" ", len(words[0])+1)) + "\n"
}

// wordHelp is that of the commands that take words.
func (p *Page) wordHelp() string {
	const column = 30
	var b strings.Builder
	fmt.Fprintf(&b, "%s [<OPTION>] [<COMMAND>]\n    Valid <OPTION> values are:\n", p.Name)
	for i := range p.Rows {
		optionLine(&b, "     "+strings.Replace(p.Rows[i].names(), ", ", " or ", 1), p.Rows[i].Text, column+9)
	}
	b.WriteString("\n  Valid <COMMAND> values are:\n")
	w := words()[p.Name]
	for _, c := range w.commands {
		optionLine(&b, "     "+c[0], c[1], column)
	}
	fmt.Fprintf(&b, "\n  <ENTITY> may be %s.\n", fold(w.entities, "  ")[2:])
	if w.more != "" {
		b.WriteString("\n" + w.more)
	}
	return b.String()
}

// colonHelp is that of sacct and sstat.
func (p *Page) colonHelp() string {
	use := "[<OPTION>]"
	if p.Name == "sstat" {
		use += " -j <job(.stepid)>"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n    Valid <OPTION> values are:\n", p.Name, use)
	for i := range p.Rows {
		r := p.Rows[i]
		r.Arg = getopt.NoArg
		fmt.Fprintf(&b, "     %s:\n%s\n", r.names(), fold(r.Text, strings.Repeat(" ", 19)))
	}
	return b.String()
}

func (p *Page) shortUsage() string {
	use := "[options]"
	if p.Name == "sstat" {
		use += " -j <job(.stepid)>"
	}
	return "Usage: " + p.Name + " " + use + "\n\tUse --help for help\n"
}

// orHelp is that of sshare.
func (p *Page) orHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:  %s [OPTION]\n  Valid OPTIONs are:\n", p.Name)
	for i := range p.Rows {
		r := p.Rows[i]
		left := strings.Repeat(" ", 10)
		if r.Short != 0 {
			left = "    -" + string(rune(r.Short)) + " or "
		}
		left += "--" + r.Long
		if r.Arg == getopt.RequiredArg {
			left += "="
		}
		text := r.Text
		if r.Long == "verbose" {
			text = "display more information"
		}
		optionLine(&b, left, text, 27)
	}
	return b.String()
}
