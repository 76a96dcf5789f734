package manual

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// submitUsages are the usage lines of sbatch, salloc and srun, a section each, as programs know them.
//
//go:embed usage.txt
var submitUsages string

func (p *Page) submitUsage() string {
	_, text, _ := strings.Cut(submitUsages, "== "+p.Name+"\n")
	text, _, _ = strings.Cut(text, "\n== ")
	return strings.TrimRight(text, "\n") + "\n"
}

// submitHelp is that of sbatch, salloc and srun: options under Slurm's headings, with Slurm's names of their values.
func (p *Page) submitHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s\n", p.Name, p.Use)
	for _, h := range headings {
		fmt.Fprintf(&b, "\n%s\n", h)
		p.submitOptions(&b, h)
	}
	b.WriteString("\nHelp options:\n")
	p.submitOptions(&b, "help")
	b.WriteString("\nOther options:\n")
	p.submitOptions(&b, "other")
	return b.String()
}

// submitOptions writes the options below a heading.
func (p *Page) submitOptions(b *strings.Builder, heading string) {
	for i := range p.Rows {
		r := p.Rows[i]
		if headingOf(&r) != heading {
			continue
		}
		if v, ok := spellings[r.Long]; ok {
			r.Value = v
		}
		switch r.Long {
		case "help":
			r.Text = "show this help message"
		case "usage":
			r.Text = "display brief usage message"
		}
		optionLine(b, "  "+r.names(), r.Text, 30)
	}
}

func headingOf(r *Row) string {
	for _, h := range headings[1:] {
		if slices.Contains(under[h], r.Long) {
			return h
		}
	}
	switch r.Long {
	case "help", "usage":
		return "help"
	case "version":
		return "other"
	}
	return headings[0]
}

// stepHelp is that of sattach and sbcast, which take operands.
func (p *Page) stepHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s\n", p.Name, p.Use)
	p.options(&b, "  ")
	b.WriteString("\nHelp options:\n")
	for i := range p.Rows {
		switch r := &p.Rows[i]; r.Long {
		case "help":
			optionLine(&b, "  "+strings.TrimSpace(r.names()), "show this help message", 30)
		case "usage":
			optionLine(&b, "  "+strings.TrimSpace(r.names()), "display brief usage message", 30)
		}
	}
	return b.String()
}

func (p *Page) stepUsage() string {
	if p.Name == "sattach" {
		return "Usage: sattach [options] <jobid.stepid>\n"
	}
	return "Usage: sbcast [--exclude] [-CfFjpvV] [--send-libs] SOURCE DEST\n"
}
