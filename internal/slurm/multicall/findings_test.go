package multicall

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/conf"
	"bireme.dev/bireme/internal/wire"
)

// TestFindings types what real Slurm was asked, at a real server whose nodes are faked, and compares the answers.
//
// A file of testdata/findings is a list of cases, each with a server of its own:
//
//	-- name of the case --
//	$ a command line; words may be quoted
//	what it writes to standard output
//	! what it writes to standard error
//	[1]                  its exit code, if it is not 0
//	* end 3 1            the script of job 3 ends with code 1; await 3 PENDING: waits for a state
//	* step 3 name=x      makes a step in job 3, with fields of client.NewStep by their JSON names
//
// After " | " a command line names the first words of the lines of standard output that count.
//
// A line "~ TEXT" stands for one that the regular expression TEXT matches. There are four nodes of 4 CPUs and the
// partitions main, short and debug; "* conf TEXT" adds a line to slurm.conf, "* append TEXT" does when the case has
// come so far, "* remove TEXT" takes out the lines that begin so; "* env NAME=VALUE" sets a variable;
// "* file NAME TEXT" adds a line to a file.
func TestFindings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/findings/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no findings: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, c := range splitCases(string(text)) {
			t.Run(base+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	}
}

type findingCase struct {
	name  string
	lines []string
}

var caseHead = regexp.MustCompile(`^-- (.*) --$`)

func splitCases(text string) (out []findingCase) {
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if m := caseHead.FindStringSubmatch(line); m != nil {
			out = append(out, findingCase{name: m[1]})
		} else if len(out) > 0 {
			c := &out[len(out)-1]
			c.lines = append(c.lines, line)
		}
	}
	return out
}

const labConf = `ClusterName=anchor
SlurmctldHost=localhost
SlurmUser=root
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageTRES=gres/gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=10
GresTypes=gpu
ReturnToService=2
NodeName=n[001-004] CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4096 Feature=fast,ib State=UNKNOWN
PartitionName=main Nodes=n[001-004] Default=YES MaxTime=INFINITE DefaultTime=60 State=UP
PartitionName=short Nodes=n[001-004] MaxTime=30 DefaultTime=5 PriorityJobFactor=10 State=UP
PartitionName=debug Nodes=n001 MaxTime=10 DefaultTime=1 MaxNodes=1 State=UP
`

type findingRun struct {
	t      *testing.T
	s      *servertest.Server
	agents map[core.NodeName]*servertest.Agent
	dir    string
	env    []string
}

func (c *findingCase) run(t *testing.T) {
	dir := t.TempDir()
	text := labConf
	for _, l := range c.lines {
		if rest, ok := strings.CutPrefix(l, "* conf "); ok {
			text += rest + "\n"
		}
	}
	file := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := servertest.New(t)
	base := *s.Cfg
	read := func() (*config.Config, error) {
		cfg := base
		cfg.Nodes, cfg.Partitions = nil, nil
		parsed, err := conf.Read(file)
		if err != nil {
			return nil, err
		}
		_, err = parsed.Apply(&cfg)
		return &cfg, err
	}
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	s.Cfg, s.Reload = cfg, read
	s.Start()
	r := &findingRun{t: t, s: s, agents: map[core.NodeName]*servertest.Agent{}, dir: dir}
	for i := 1; i <= 4; i++ {
		name := core.NodeName(fmt.Sprintf("n%03d", i))
		a := s.Join(name, core.Compute, true)
		a.Quiet = true
		a.Connect()
		r.agents[name] = a
	}
	for i := 0; i < len(c.lines); {
		line := c.lines[i]
		i++
		switch {
		case strings.HasPrefix(line, "* "):
			r.do(strings.Fields(line[2:]))
		case strings.HasPrefix(line, "$ "):
			var want []string
			for ; i < len(c.lines) && !strings.HasPrefix(c.lines[i], "$ ") && !strings.HasPrefix(c.lines[i], "* "); i++ {
				want = append(want, c.lines[i])
			}
			r.check(line[2:], want)
		case line != "" && line[0] != '#':
			t.Fatalf("line %d of the case is no command: %q", i, line)
		}
	}
}

// appendLine adds a line to a file of the case.
func (r *findingRun) appendLine(file string, words []string) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintln(f, strings.Join(words, " "))
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// do carries out a line of the test's own.
func (r *findingRun) do(words []string) {
	r.t.Helper()
	job := func() core.JobID {
		n, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			r.t.Fatalf("%q: %v", words, err)
		}
		return core.JobID(n)
	}
	switch words[0] {
	case "conf":
	case "append": // to slurm.conf, for the next reconfigure
		r.appendLine("slurm.conf", words[1:])
	case "file":
		r.appendLine(words[1], words[2:])
	case "remove": // the lines of slurm.conf that begin so
		file := filepath.Join(r.dir, "slurm.conf")
		text, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		var kept strings.Builder
		for l := range strings.Lines(string(text)) {
			if !strings.HasPrefix(l, words[1]) {
				kept.WriteString(l)
			}
		}
		if err := os.WriteFile(file, []byte(kept.String()), 0o644); err != nil {
			r.t.Fatal(err)
		}
	case "env":
		r.env = append(r.env, words[1])
	case "await":
		st, ok := core.ParseJobState(strings.ToLower(words[2]))
		if !ok {
			r.t.Fatalf("%q: no such state", words)
		}
		r.s.AwaitState(job(), st)
	case "step":
		r.makeStep(words[1], words[2:])
	case "end":
		id := job()
		r.s.AwaitState(id, core.Running)
		j := r.s.Job(id)
		a := r.agents[j.Alloc.Nodes[0].Node]
		code, _ := strconv.Atoi(words[2])
		a.End(a.AwaitLaunch(id, j.Attempt, wire.BatchStep), func(x *wire.Exited) { x.ExitCode = code })
		r.s.Await("the end of "+words[1], func() bool { return r.s.Job(id).State != core.Running })
	default:
		r.t.Fatalf("%q is no line of a finding", words)
	}
}

// makeStep makes a step as srun does, whose tasks the faked nodes never run.
func (r *findingRun) makeStep(job string, fields []string) {
	r.t.Helper()
	body := map[string]any{"name": "sleep", "argv": []string{"sleep"}, "tasks": 1, "host": "login", "pid": 4711}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		body[key] = value
		if n, err := strconv.Atoi(value); err == nil {
			body[key] = n
		} else if value == "true" {
			body[key] = true
		}
	}
	r.s.Must("POST", "/api/v1/jobs/"+job+"/steps", body, nil)
}

// check runs a command line and compares what it leaves.
func (r *findingRun) check(line string, want []string) {
	r.t.Helper()
	line, only, _ := strings.Cut(line, " | ")
	words := shellWords(line)
	run, ok := Lookup(words[0])
	if !ok {
		r.t.Fatalf("no command %s", words[0])
	}
	var out, errs bytes.Buffer
	w := &cmd.World{
		Name: words[0], In: strings.NewReader(""), Out: &out, Err: &errs, Dir: r.dir, Host: "localhost",
		Environ: append([]string{"PATH=/usr/bin:/bin", "HOME=/root"}, r.env...), Now: time.Now,
		Client: func() (*client.Client, error) { return r.s.Client(), nil },
	}
	code := run(context.Background(), w, words[1:])
	var got []string
	for l := range strings.Lines(out.String()) {
		first, _, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		if only != "" && !slices.Contains(strings.Fields(only), first) {
			continue
		}
		got = append(got, strings.TrimSuffix(l, "\n"))
	}
	for l := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(l, words[0]+": hint: ") {
			got = append(got, "! "+strings.TrimSuffix(l, "\n"))
		}
	}
	if code != 0 {
		got = append(got, fmt.Sprintf("[%d]", code))
	}
	for i, l := range want {
		if expr, ok := strings.CutPrefix(l, "~ "); ok && i < len(got) && regexp.MustCompile(expr).MatchString(got[i]) {
			got[i] = l
		}
	}
	if d := diff.Diff(trimLast(want), trimLast(got)); d != "" {
		r.t.Errorf("$ %s (-want +got)\n%s", line, d)
	}
}

// trimLast drops empty lines at the end, which part cases, and blanks at the end of lines.
func trimLast(lines []string) []string {
	out := []string{}
	for _, l := range lines {
		out = append(out, strings.TrimRight(l, " "))
	}
	for len(out) > 0 && cmp.Or(out[len(out)-1], "") == "" {
		out = out[:len(out)-1]
	}
	return out
}

// shellWords splits a line at blanks; what stands in quotes is one word.
func shellWords(line string) (words []string) {
	var b strings.Builder
	var quote rune
	open := false
	for _, c := range line + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && c == ' ':
			if open {
				words = append(words, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteRune(c)
			open = true
		}
	}
	return words
}
