package slurm

import "strings"

// Directive is an option that a script's #SBATCH lines give.
type Directive struct {
	Option string // its long name
	Value  string
	Set    bool // a value was given; tells --exclusive from --exclusive=
}

// String writes the option as one word of a command line.
func (d Directive) String() string {
	if !d.Set {
		return "--" + d.Option
	}
	return "--" + d.Option + "=" + d.Value
}

// Directives reads the options of a script without acting on them, by component of a het job: also those that would be
// refused. The name is the script's, for messages.
func Directives(name string, script []byte) ([][]Directive, error) {
	r := &Request{tool: Sbatch}
	parts, err := r.directives(name, script)
	if err != nil {
		return nil, err
	}
	out := make([][]Directive, len(parts))
	for i, list := range parts {
		var words []string
		for k := range list {
			words = append(words, list[k].words...)
		}
		values, rest, err := parserFor(Sbatch).Parse(words)
		if err != nil {
			return nil, r.Fail(ExitUsage, "%s: %v", name, err).hint("%s", nearOption(Sbatch, err))
		}
		if len(rest) > 0 {
			return nil, r.Fail(ExitUsage, "Invalid directive found in batch script: %s", rest[0])
		}
		for _, v := range values {
			out[i] = append(out[i], Directive{Option: v.Key, Value: v.Value, Set: v.Set})
		}
	}
	return out, nil
}

// DirectiveLine writes words as a #SBATCH line that is read back as the same words.
func DirectiveLine(words ...string) string {
	out := make([]string, len(words))
	for i, w := range words {
		switch {
		case w != "" && !strings.ContainsAny(w, " \t\v\f\r#\"'\\") && w[0] != ':':
			out[i] = w
		case !strings.Contains(w, `"`):
			out[i] = `"` + w + `"`
		case !strings.Contains(w, "'"):
			out[i] = "'" + w + "'"
		default:
			out[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "'", `\'`, " ", `\ `, "\t", "\\\t", "#", `\#`).Replace(w)
		}
	}
	return "#SBATCH " + strings.Join(out, " ")
}
