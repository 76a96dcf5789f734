package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// CheckScript tells what is wrong with a batch script, in Slurm's words and order: empty, blank, no #!, a NUL byte, DOS
// line breaks. It returns the lines to print, none if all is well.
func CheckScript(script []byte) []string {
	switch {
	case len(script) == 0:
		return []string{"Batch script is empty!"}
	case len(bytes.TrimSpace(script)) == 0:
		return []string{"Batch script contains only whitespace!"}
	case !bytes.HasPrefix(script, []byte("#!")):
		return []string{
			"This does not look like a batch script.  The first",
			"line must start with #! followed by the path to an interpreter.",
			"For instance: #!/bin/sh",
		}
	case bytes.IndexByte(script, 0) >= 0:
		return []string{
			"The Slurm controller does not allow scripts that",
			"contain a NULL character '\\0'.",
		}
	case bytes.Contains(script, []byte("\r\n")):
		return []string{
			`Batch script contains DOS line breaks (\r\n)`,
			`instead of expected UNIX line breaks (\n).`,
		}
	}
	return nil
}

// WrapScript is the script that --wrap=command stands for.
func WrapScript(command string) []byte {
	return []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + command + "\n")
}

// Script reads the #SBATCH lines of a script; name is the script's, for messages.
func (r *Request) Script(name string, script []byte) error {
	return r.ScriptPart(name, script, 0)
}

// ScriptPart is Script for one component of a het job.
func (r *Request) ScriptPart(name string, script []byte, component int) error {
	r.level = fromScript
	parts, err := r.directives(name, script)
	if err != nil || component >= len(parts) {
		return err
	}
	if len(parts[component]) > 0 {
		if err := r.parseDirectives(parts[component]); err != nil {
			return r.withLine(err, name, parts[component])
		}
	}
	if r.Ask.IgnorePBS || component > 0 {
		return nil
	}
	_, err = r.parse(foreignWords(script)) // these count for more, wherever they stand
	return err
}

// directive is the words of one #SBATCH line.
type directive struct {
	line  int // of the script, from 1
	words []string
}

func (r *Request) parseDirectives(list []directive) error {
	var words []string
	for i := range list {
		words = append(words, list[i].words...)
	}
	rest, err := r.parse(words)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return r.Fail(ExitUsage, "Invalid directive found in batch script: %s", rest[0])
	}
	return nil
}

// withLine adds to a complaint which line of the script it is about: the first one with which reading fails. The hint
// says it, because Slurm's own text does not.
func (r *Request) withLine(err error, name string, list []directive) error {
	var c *Complaint
	if !errors.As(err, &c) {
		return err
	}
	for i := range list {
		probe := NewRequest(r.tool, r.now, r.dir)
		probe.ReadFile, probe.level = r.ReadFile, r.level
		if probe.parseDirectives(list[:i+1]) == nil {
			continue
		}
		where := fmt.Sprintf("line %d of %s: #SBATCH %s", list[i].line, name, strings.Join(list[i].words, " "))
		if c.Hint != "" {
			where += "; " + c.Hint
		}
		return &Complaint{Lines: c.Lines, Hint: where, Exit: c.Exit}
	}
	return err
}

// directives collects the directive lines, by component: a line "hetjob" begins another. They start in
// column 1, and the first line that is neither blank nor a comment ends them.
func (r *Request) directives(name string, script []byte) ([][]directive, error) {
	parts := [][]directive{nil}
	for n := 1; len(script) > 0; n++ {
		var line []byte
		line, script, _ = bytes.Cut(script, []byte("\n"))
		text := bytes.TrimLeft(line, " \t\v\f\r")
		if len(text) > 0 && text[0] != '#' {
			break
		}
		rest, ok := bytes.CutPrefix(line, []byte("#SBATCH"))
		if !ok {
			if rest, ok = bytes.CutPrefix(line, []byte("#SLURM")); !ok {
				continue
			}
		}
		found, err := r.splitDirective(name, n, string(rest))
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && (strings.EqualFold(found[0], "hetjob") || strings.EqualFold(found[0], "packjob")) {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], directive{line: n, words: found})
	}
	return parts, nil
}

// splitDirective splits what follows #SBATCH as Slurm does: blanks separate, quotes group and vanish, a backslash takes
// the next character as it is, an unquoted # ends the line. Nothing is expanded.
func (r *Request) splitDirective(name string, n int, text string) ([]string, error) {
	var words []string
	for i := 0; i < len(text); {
		if isBlank(text[i]) {
			i++
			continue
		}
		if text[i] == '#' {
			break
		}
		if text[i] == ':' {
			return nil, r.fatalAt(name, n, "Unexpected `:` in [%s]", text)
		}
		word := []byte{}
		for i < len(text) && !isBlank(text[i]) && text[i] != '#' {
			switch c := text[i]; c {
			case '\\':
				i++
				if i < len(text) {
					word = append(word, text[i])
					i++
				}
			case '"', '\'':
				end := strings.IndexByte(text[i+1:], c)
				if end < 0 {
					return nil, r.fatalAt(name, n, "Unmatched `%c` in [%s]", c, text)
				}
				word = append(word, text[i+1:i+1+end]...)
				i += end + 2
			default:
				word = append(word, c)
				i++
			}
		}
		words = append(words, string(word))
	}
	return words, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }

func (r *Request) fatalAt(name string, line int, format string, args ...any) error {
	return &Complaint{
		Lines: []string{fmt.Sprintf("%s: fatal: %s: line %d: %s", r.tool, name, line, fmt.Sprintf(format, args...))},
		Exit:  ExitError,
	}
}
