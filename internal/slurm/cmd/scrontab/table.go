package scrontab

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/cron"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// The options of a job under which its part of the table is kept: the schedule, the lines as they were written, and
// their place among the parts.
const (
	optLines = "scrontab"
	optPlace = "scrontab-place"
)

// entry is a line with a schedule and a command, with all above it that belongs to it.
type entry struct {
	line     int // where it stands
	schedule string
	command  string
	options  []option // of #SCRON, as they stand there
	env      []string
	text     string // all its lines
}

// option is a line of options.
type option struct {
	line int
	text string
}

// fault is something wrong with a line.
func fault(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

// atLine says of what the options' reader complains about, which is sbatch's, in which line of the table it stands.
func atLine(line int, err error) error {
	var c *slurm.Complaint
	if !errors.As(err, &c) || len(c.Lines) == 0 {
		return fault(line, "%v", err)
	}
	text := strings.TrimPrefix(strings.TrimPrefix(c.Lines[0], "sbatch: "), "error: ")
	return &slurm.Complaint{
		Lines: []string{fmt.Sprintf("scrontab: error: line %d: %s", line, text)}, Hint: c.Hint,
		Exit: c.Exit,
	}
}

// parse cuts a table into entries. Lines after the last one belong to it.
func parse(text string) ([]entry, error) {
	var out []entry
	var now entry
	var env []string
	for i, line := range strings.SplitAfter(text, "\n") {
		bare := strings.TrimSpace(line)
		now.text += line
		switch {
		case bare == "":
		case strings.HasPrefix(bare, "#SCRON"):
			now.options = append(now.options, option{i + 1, strings.TrimPrefix(bare, "#SCRON")})
		case bare[0] == '#':
		default:
			if name, value, ok := assignment(bare); ok {
				env = append(env, name+"="+value)
				continue
			}
			schedule, command, err := split(bare)
			if err != nil {
				return nil, fault(i+1, "%v", err)
			}
			now.line, now.schedule, now.command, now.env = i+1, schedule, command, append([]string{}, env...)
			out = append(out, now)
			now = entry{}
		}
	}
	if n := len(out); n > 0 {
		out[n-1].text += now.text
	}
	return out, nil
}

// assignment reads NAME=VALUE, which holds for all entries below.
func assignment(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.ContainsAny(name, " \t*/,-") || name[0] >= '0' && name[0] <= '9' {
		return "", "", false
	}
	value = strings.TrimSpace(value)
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return name, value, true
}

// split parts the schedule from the command.
func split(line string) (schedule, command string, err error) {
	count := 5
	if line[0] == '@' {
		count = 1
	}
	rest := line
	for range count {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			return "", "", fmt.Errorf("want five fields or @word, and a command: %s", line)
		}
		rest = rest[end:]
	}
	schedule, command = strings.TrimSpace(line[:len(line)-len(rest)]), strings.TrimSpace(rest)
	if command == "" {
		return "", "", fmt.Errorf("want a command after %s", schedule)
	}
	_, err = cron.Parse(schedule, cron.Crontab)
	return schedule, command, err
}

// submission is the job of an entry: a script of one command, in the user's home, whose output goes nowhere unless it
// says so.
func (e *entry) submission(w *cmd.World, user, home string, place int) (*client.Submit, error) {
	r := slurm.NewRequest(slurm.Sbatch, w.Now(), home)
	for _, o := range e.options {
		if err := r.Script("scrontab", []byte("#!/bin/sh\n#SBATCH"+o.text+"\n")); err != nil {
			return nil, atLine(o.line, err)
		}
	}
	if r.Given("array") || r.Given("wait") || r.Given("test-only") {
		return nil, fault(e.line, "--array, --wait and --test-only have no meaning here")
	}
	if _, err := r.Finish(); err != nil {
		return nil, atLine(e.line, err)
	}
	s := &r.Spec
	if s.Name == "" {
		s.Name = filepath.Base(strings.Fields(e.command)[0])
	}
	if s.IO.Stdout == "" {
		s.IO.Stdout = "/dev/null"
	}
	if user != "" {
		s.User = core.UserName(user)
	}
	env := r.JobEnviron(append([]string{"HOME=" + home, "SHELL=/bin/sh", "PATH=/usr/local/bin:/usr/bin:/bin"},
		e.env...), slurm.Process{Umask: 0o022})
	if s.Extra == nil {
		s.Extra = &core.Extra{}
	}
	k := s.Extra.Keep()
	if k.Slurm == nil {
		k.Slurm = map[string]string{}
	}
	k.Schedule, k.Slurm[optLines], k.Slurm[optPlace] = e.schedule, e.text, strconv.Itoa(place)
	s.From = core.Origin{Host: w.Host, Dir: home, Line: "scrontab"}
	return &client.Submit{
		Spec: *s, Script: "#!/bin/sh\n# This script was created by scrontab.\n\n" + e.command + "\n",
		Env: env,
	}, nil
}
