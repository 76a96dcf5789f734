package translate

import (
	"strings"

	"bireme.dev/bireme/internal/dstack/config"
)

// firstNode is in the commands of a configuration that was a script: they run on the first node already.
const firstNode = lineMark + " a batch script runs on the first of its nodes"

// shell is the interpreter of the commands.
func (c *taskConversion) shell() string {
	switch s := config.Value(c.run.Shell); {
	case s == "sh" || s == "" && c.image != "":
		return "/bin/sh"
	case s == "bash" || s == "":
		return "/bin/bash"
	default:
		return s
	}
}

// body is the commands as a script has them: several only while each succeeds.
func (c *taskConversion) body() string {
	var list []string
	for _, command := range c.cfg.Task.Commands {
		var lines []string
		for l := range strings.SplitSeq(strings.TrimRight(command, " \t\r\n"), "\n") {
			if !strings.Contains(l, " "+lineMark+" ") {
				lines = append(lines, l)
			}
		}
		list = append(list, c.plainDollars(strings.Join(lines, "\n")))
	}
	if len(list) <= 1 {
		return strings.Join(list, "")
	}
	return "{ :\n" + strings.Join(list, "\n} && { :\n") + "\n}"
}

// plainDollars is a command as a shell is to see it: the arguments of the run are those of the script, and $$ is a
// dollar. Other variables of dstack stay as they are and are noted.
func (c *taskConversion) plainDollars(command string) string {
	var out strings.Builder
	for rest := command; rest != ""; {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			break
		}
		name, beyond, closed := strings.Cut(strings.TrimPrefix(after, "{{"), "}}")
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteString("$")
			rest = after[1:]
		case strings.HasPrefix(after, "{{") && closed && strings.TrimSpace(name) == "run.args":
			out.WriteString(`"$@"`)
			rest = beyond
		case strings.HasPrefix(after, "{{") && closed:
			c.notes.add(NoEqual, "${{"+name+"}}", "a script has no such variable; it stays as it is")
			out.WriteString("${{" + name + "}}")
			rest = beyond
		default:
			out.WriteString("$")
			rest = after
		}
	}
	return out.String()
}

// join writes lines, each with its end.
func join(lists ...[]string) string {
	out := ""
	for _, list := range lists {
		for _, l := range list {
			out += l + "\n"
		}
	}
	return out
}

// stepLine takes a body to all nodes of a job, into a container where inside names one.
func stepLine(inside []string, shell, body string) string {
	words := []string{stepHead}
	for _, w := range inside {
		words = append(words, config.QuoteWord(w))
	}
	return strings.Join(append(words, config.QuoteWord(shell), "-c", config.QuoteWord("\n"+body)), " ")
}

// unwrap finds the commands in lines that Configuration wrote. It reports whether they run on all nodes.
func unwrap(contained *bool, out *keys, body string) (list []string, onAll bool) {
	if words, err := config.SplitWords(body); err == nil && strings.HasPrefix(body, stepHead+" ") && len(words) >= 7 &&
		words[len(words)-2] == "-c" {
		for _, w := range words[4 : len(words)-3] {
			switch name, value, _ := strings.Cut(strings.TrimPrefix(w, "--"), "="); name {
			case "container-image":
				*contained = true
				out.set("image", value)
				out.drop("runtime")
			case "container-workdir":
				out.set("working_dir", value)
			case "container-mounts":
				var mounts []any
				for m := range strings.SplitSeq(value, ",") {
					mounts = append(mounts, m)
				}
				out.set("volumes", mounts)
			default:
				return []string{body}, false
			}
		}
		body, onAll = strings.TrimPrefix(words[len(words)-1], "\n"), true
	}
	if inner, ok := strings.CutPrefix(body, "{ :\n"); ok {
		if inner, ok = strings.CutSuffix(inner, "\n}"); ok {
			return strings.Split(inner, "\n} && { :\n"), onAll
		}
	}
	if strings.TrimSpace(body) == "" {
		return nil, onAll
	}
	return []string{body}, onAll
}

// document finds the script of an interpreter that is no shell.
func document(body string) (interpreter, script string, ok bool) {
	rest, ok := strings.CutPrefix(body, "exec ")
	if !ok {
		return "", "", false
	}
	interpreter, rest, ok = strings.Cut(rest, documentHead)
	if !ok || strings.Contains(interpreter, "\n") {
		return "", "", false
	}
	script, ok = strings.CutSuffix(rest, documentTail)
	return interpreter, script, ok
}
