package slurm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
)

// MultiProg reads the file of srun --multi-prog: lines of RANKS PROGRAM ARGS…, where RANKS are numbers, ranges, or *
// for all that no line before has. more follows each program's own arguments.
func MultiProg(name string, text []byte, more []string) ([]client.TaskProgram, error) {
	var list []client.TaskProgram
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words, err := splitWords(line)
		if err != nil {
			return nil, fmt.Errorf("Line %d of configuration file %s invalid: %w", i+1, name, err)
		}
		if len(words) == 0 {
			continue
		}
		ranks, err := rankSpans(words[0])
		if err == nil && len(words) == 1 {
			err = fmt.Errorf("no program after ranks %s", words[0])
		}
		if err != nil {
			return nil, fmt.Errorf("Line %d of configuration file %s invalid: %w", i+1, name, err)
		}
		list = append(list, client.TaskProgram{Ranks: ranks, Argv: append(words[1:], more...)})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("Configuration file %s has no program", name)
	}
	return list, nil
}

func rankSpans(text string) ([]client.RankSpan, error) {
	if text == "*" {
		return []client.RankSpan{{Last: math.MaxInt32}}, nil
	}
	var spans []client.RankSpan
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseInt(from, 10, 32)
		b, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || a < 0 || b < a {
			return nil, fmt.Errorf("%q is no rank; 0, 2-3, 1,7 and * are", part)
		}
		spans = append(spans, client.RankSpan{First: int32(a), Last: int32(b)})
	}
	return spans, nil
}

// splitWords splits a line at blanks, but not inside quotes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// ProgramOf is what the task of a rank runs; nil: nothing is said of it.
func ProgramOf(list []client.TaskProgram, rank int32) []string {
	for i := range list {
		var before int32
		for _, s := range list[i].Ranks {
			if rank < s.First || rank > s.Last {
				before += s.Last - s.First + 1
				continue
			}
			names := strings.NewReplacer("%t", strconv.Itoa(int(rank)), "%o", strconv.Itoa(int(before+rank-s.First)), "%%", "%")
			argv := make([]string, len(list[i].Argv))
			for k, a := range list[i].Argv {
				argv[k] = names.Replace(a)
			}
			return argv
		}
	}
	return nil
}
