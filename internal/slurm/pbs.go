package slurm

import (
	"bytes"
	"strconv"
	"strings"
)

// The lines of a script that begin with #PBS or #BSUB, as the options of sbatch they stand for. What has no such option
// is passed over, as Slurm does.

// foreignWords are the options of all such lines of a script, in their order.
func foreignWords(script []byte) (words []string) {
	for len(script) > 0 {
		var line []byte
		line, script, _ = bytes.Cut(script, []byte("\n"))
		if text := bytes.TrimLeft(line, " \t\v\f\r"); len(text) > 0 && text[0] != '#' {
			break
		}
		read := pbsWords
		rest, ok := bytes.CutPrefix(line, []byte("#PBS"))
		if !ok {
			rest, ok = bytes.CutPrefix(line, []byte("#BSUB"))
			read = bsubWords
		}
		if ok && len(rest) > 0 && isBlank(rest[0]) {
			words = append(words, read(foreignFields(string(rest)))...)
		}
	}
	return words
}

// foreignFields splits a line at blanks; quotes group, # ends it.
func foreignFields(text string) (out []string) {
	for text = strings.TrimSpace(text); text != "" && text[0] != '#'; text = strings.TrimLeft(text, " \t") {
		if q := text[0]; q == '"' || q == '\'' {
			if end := strings.IndexByte(text[1:], q); end >= 0 {
				out, text = append(out, text[1:1+end]), text[end+2:]
				continue
			}
		}
		end := strings.IndexAny(text, " \t")
		if end < 0 {
			end = len(text)
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}

// eachFlag calls do for each one-letter option with its value, which stands in the same word or the next. Options in
// flags have none.
func eachFlag(fields []string, flags string, do func(flag byte, value string)) {
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		switch {
		case len(f) < 2 || f[0] != '-':
		case strings.IndexByte(flags, f[1]) >= 0:
			do(f[1], "")
		case len(f) > 2:
			do(f[1], f[2:])
		case i+1 < len(fields):
			i++
			do(f[1], fields[i])
		}
	}
}

// plainOptions are those whose value is the same in both.
var (
	pbsOptions = map[byte]string{
		'a': "begin", 'A': "account", 'J': "array", 't': "array", 'M': "mail-user", 'N': "job-name", 'q': "partition",
	}
	bsubOptions = map[byte]string{
		'J': "job-name", 'm': "nodelist", 'q': "partition", 'n': "ntasks", 'o': "output", 'e': "error",
	}
)

func pbsWords(fields []string) (words []string) {
	eachFlag(fields, "hIVXz", func(flag byte, v string) {
		switch name := pbsOptions[flag]; {
		case name != "":
			words = append(words, "--"+name+"="+v)
		case flag == 'h':
			words = append(words, "--hold")
		case flag == 'o' || flag == 'e':
			if _, path, ok := strings.Cut(v, ":"); ok { // the host is where the job runs
				v = path
			}
			words = append(words, map[byte]string{'o': "--output=", 'e': "--error="}[flag]+v)
		case flag == 'm':
			if list := pbsMail(v); list != "" {
				words = append(words, "--mail-type="+list)
			}
		case flag == 'r':
			words = append(words, map[bool]string{true: "--no-requeue", false: "--requeue"}[strings.HasPrefix(v, "n")])
		case flag == 'l':
			words = append(words, pbsResources(v)...)
		}
	})
	return words
}

func pbsMail(v string) string {
	var list []string
	for _, c := range []struct{ letter, word string }{{"b", "BEGIN"}, {"e", "END"}, {"a", "FAIL"}} {
		if strings.Contains(v, c.letter) {
			list = append(list, c.word)
		}
	}
	return strings.Join(list, ",")
}

// pbsResources reads walltime=1:00:00,nodes=2:ppn=3,mem=200mb.
func pbsResources(v string) (words []string) {
	nodes, perNode := 0, 0
	for item := range strings.SplitSeq(v, ",") {
		key, value, _ := strings.Cut(item, "=")
		if key == "nodes" {
			nodes, perNode = pbsNodes(value, &words)
			continue
		}
		option := map[string]string{
			"walltime": "time", "mem": "mem", "pmem": "mem-per-cpu", "file": "tmp", "ncpus": "mincpus", "procs": "ntasks",
			"mppwidth": "ntasks", "nice": "nice", "naccelerators": "gres=gpu:", "mpphost": "clusters",
		}[key]
		switch {
		case option == "" || value == "":
		case key == "mem" || key == "pmem" || key == "file":
			words = append(words, "--"+option+"="+pbsSize(value))
		case strings.HasSuffix(option, ":"):
			words = append(words, "--"+option+value)
		default:
			words = append(words, "--"+option+"="+value)
		}
	}
	if perNode > 0 {
		words = append(words, "--ntasks="+strconv.Itoa(max(1, nodes)*perNode))
	}
	return words
}

// pbsNodes reads 2:ppn=3, 3+ppn=2 or n1+n2:ppn=4.
func pbsNodes(v string, words *[]string) (nodes, perNode int) {
	var names []string
	for part := range strings.FieldsFuncSeq(v, func(c rune) bool { return c == '+' || c == ':' }) {
		n, err := strconv.Atoi(part)
		switch {
		case err == nil:
			nodes += n
		case strings.HasPrefix(part, "ppn="):
			perNode, _ = strconv.Atoi(part[len("ppn="):])
		case !strings.Contains(part, "="):
			names = append(names, part)
		}
	}
	if len(names) > 0 {
		nodes += len(names)
		*words = append(*words, "--nodelist="+strings.Join(names, ","))
	}
	if nodes > 0 {
		*words = append(*words, "--nodes="+strconv.Itoa(nodes))
	}
	return nodes, perNode
}

// pbsSize is a size as sbatch takes it: 200mb is 200M.
func pbsSize(v string) string {
	v = strings.ToUpper(v)
	for _, unit := range []string{"KB", "MB", "GB", "TB", "KW", "MW", "GW"} {
		if n, ok := strings.CutSuffix(v, unit); ok {
			return n + unit[:1]
		}
	}
	if n, ok := strings.CutSuffix(v, "B"); ok {
		if bytes, err := strconv.ParseInt(n, 10, 64); err == nil {
			return strconv.FormatInt((bytes+1023)/1024, 10) + "K"
		}
	}
	return v
}

func bsubWords(fields []string) (words []string) {
	eachFlag(fields, "xHBNIKr", func(flag byte, v string) {
		switch name := bsubOptions[flag]; {
		case name != "":
			words = append(words, "--"+name+"="+v)
		case flag == 'x':
			words = append(words, "--exclusive")
		case flag == 'M':
			words = append(words, "--mem-per-cpu="+v+"K")
		case flag == 'W':
			if strings.Contains(v, ":") { // hours and minutes
				v += ":00"
			}
			words = append(words, "--time="+v)
		}
	})
	return words
}
