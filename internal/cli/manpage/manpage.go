// Package manpage makes a manual page of a tree of commands: their usage, what they do, and their options.
package manpage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Page returns the manual page of a program in the form that man(1) reads. Notes are added at its end, as given.
func Page(root *cobra.Command, section int, notes string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %d \"\" \"Bireme %s\"\n", strings.ToUpper(root.Name()), section, escape(root.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", root.Name(), escape(root.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTIONS\\fR]\n", root.Name())
	if root.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		paragraphs(&b, root.Long)
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range root.Commands() {
		command(&b, root.Name(), c)
	}
	if notes != "" {
		b.WriteString(".SH NOTES\n")
		paragraphs(&b, notes)
	}
	return b.String()
}

// command writes one command and those below it.
func command(b *strings.Builder, above string, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	if c.HasAvailableSubCommands() {
		for _, sub := range c.Commands() {
			command(b, above+" "+c.Name(), sub)
		}
		if !c.Runnable() {
			return
		}
	}
	fmt.Fprintf(b, ".SS \"%s %s\"\n", above, escape(strings.ReplaceAll(c.Use, `"`, "")))
	text := c.Long
	if text == "" {
		text = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	paragraphs(b, text)
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, ".PP\nAlso: %s.\n", escape(strings.Join(c.Aliases, ", ")))
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { option(b, f) })
}

func option(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden || f.Name == "help" {
		return
	}
	b.WriteString(".TP\n")
	if f.Shorthand != "" {
		fmt.Fprintf(b, "\\fB\\-%s\\fR, ", f.Shorthand)
	}
	value, usage := pflag.UnquoteUsage(f)
	fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", strings.ReplaceAll(f.Name, "-", `\-`))
	if value != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", escape(value))
	}
	fmt.Fprintf(b, "\n%s", escape(usage))
	if f.DefValue != "" && !slices.Contains([]string{"false", "0", "[]", "0s"}, f.DefValue) {
		fmt.Fprintf(b, " (default %s)", escape(f.DefValue))
	}
	b.WriteString("\n")
}

// paragraphs writes text: lines that begin with a blank stay as they are, others are filled.
func paragraphs(b *strings.Builder, text string) {
	for _, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n  ") {
			fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", escape(p))
		} else {
			fmt.Fprintf(b, ".PP\n%s\n", escape(p))
		}
	}
}

// escape writes text so that man(1) shows it as it is.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
