// Package manual makes --help, --usage and manual pages of the tables that the commands read their options by.
package manual

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/slurm/getopt"
)

// Row is an option.
type Row struct {
	Long  string
	Short byte
	Arg   getopt.Arg
	Value string   // how its value is called
	Text  string   // what it does
	Vars  []string // variables that stand for it
}

// Page is a command.
type Page struct {
	Name  string
	Use   string // what follows the name
	About string // a sentence or two
	Rows  []Row
	Notes string // what else there is to know; may be empty
}

// names is how an option is written, with its value.
func (r *Row) names() string {
	text := "    "
	if r.Short != 0 {
		text = "-" + string(rune(r.Short))
		if r.Long != "" {
			text += ", "
		}
	}
	if r.Long != "" {
		text += "--" + r.Long
	}
	switch {
	case r.Arg == getopt.RequiredArg && r.Long != "":
		text += "=" + r.Value
	case r.Arg == getopt.RequiredArg:
		text += " " + r.Value
	case r.Arg == getopt.OptionalArg:
		text += "[=" + r.Value + "]"
	}
	return text
}

// Help answers --help.
func (p *Page) Help() string {
	if s, ok := styles[p.Name]; ok {
		return s.help(p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s\n\n%s\n\nOptions:\n", p.Name, p.Use, fold(p.About, ""))
	for i := range p.Rows {
		optionLine(&b, "  "+p.Rows[i].names(), p.Rows[i].Text, 30)
	}
	if p.Notes != "" {
		fmt.Fprintf(&b, "\n%s\n", p.Notes)
	}
	return b.String()
}

// Usage answers --usage: the options without what they do.
func (p *Page) Usage() string {
	if s, ok := styles[p.Name]; ok {
		return s.usage(p)
	}
	words := []string{"Usage: " + p.Name}
	for i := range p.Rows {
		r := p.Rows[i]
		if r.Short != 0 && r.Long != "" {
			r.Long = ""
		}
		words = append(words, "["+strings.TrimSpace(r.names())+"]")
	}
	if _, operands, ok := strings.Cut(p.Use, "] "); ok {
		words = append(words, operands)
	}
	return wrap(words, strings.Repeat(" ", len(words[0])+1)) + "\n"
}

// Roff is the manual page, for man(1).
func (p *Page) Roff() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"Bireme\" \"User Commands\"\n", strings.ToUpper(p.Name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n%s\n", p.Name, roff(firstSentence(p.About)), p.Name,
		roff(p.Use))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n.SH OPTIONS\n", roff(p.About))
	for i := range p.Rows {
		r := &p.Rows[i]
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(r.names())), roff(r.Text))
		if len(r.Vars) > 0 {
			fmt.Fprintf(&b, ".br\nIn the environment: %s\n", roff(strings.Join(r.Vars, ", ")))
		}
	}
	if p.Notes != "" {
		fmt.Fprintf(&b, ".SH NOTES\n.nf\n%s\n.fi\n", roff(p.Notes))
	}
	b.WriteString(".SH SEE ALSO\n.BR bireme (1)\n")
	return b.String()
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.ToLower(first[:1]) + strings.TrimSuffix(first[1:], ".")
}

// roff protects what roff would take for itself.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

const width = 100

// fold breaks text into lines that begin with indent.
func fold(text, indent string) string { return indent + wrap(strings.Fields(text), indent) }

func wrap(words []string, indent string) string {
	var b strings.Builder
	at := len(indent)
	for i, w := range words {
		switch {
		case i == 0:
		case at+1+len(w) > width:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String()
}
