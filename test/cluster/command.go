package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds every wait of a test; a loaded machine is slow, a broken cluster waits forever.
const patience = 30 * time.Second

// Person is somebody who types commands.
type Person struct {
	c    *Cluster
	Name string
	Home string
	cred *syscall.Credential
	env  []string
	dir  string
}

// Result is what a command did.
type Result struct {
	Line     string // as it was typed
	Out, Err string
	Code     int
}

// As returns a user of the machine.
func (c *Cluster) As(name string) *Person {
	c.T.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		c.T.Fatalf("%v: scripts/prereqs.sh adds the users of tests", err)
	}
	p := &Person{c: c, Name: name, Home: u.HomeDir, dir: c.Work}
	id := func(s string) uint32 {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			c.T.Fatalf("user %s: %v", name, err)
		}
		return uint32(n)
	}
	groups, err := u.GroupIds()
	if err != nil {
		c.T.Fatalf("groups of %s: %v", name, err)
	}
	p.cred = &syscall.Credential{Uid: id(u.Uid), Gid: id(u.Gid)}
	for _, g := range groups {
		p.cred.Groups = append(p.cred.Groups, id(g))
	}
	return p
}

// Root is the administrator.
func (c *Cluster) Root() *Person { return c.As("root") }

// With returns the same person with more variables, KEY=VALUE; a later one wins.
func (p *Person) With(env ...string) *Person {
	q := *p
	q.env = append(append([]string{}, p.env...), env...)
	return &q
}

// In returns the same person in another directory.
func (p *Person) In(dir string) *Person {
	q := *p
	q.dir = dir
	return &q
}

func plainEnv() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "HOME=/root",
		"USER=root",
	}
}

// Command prepares a command: a program of ours by its name, or a link.
func (p *Person) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := filepath.Join(p.c.Links, name)
	if strings.HasPrefix(name, "bireme") {
		path = p.c.Program(name)
	} else if strings.HasPrefix(name, "/") {
		path = name
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	cmd.Dir = p.dir
	cmd.Env = append(plainEnv(), "PATH="+p.c.Links+":"+p.c.bin+":/usr/local/bin:/usr/bin:/bin", "HOME="+p.Home,
		"USER="+p.Name, "LOGNAME="+p.Name)
	cmd.Env = append(append(cmd.Env, p.c.Env...), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred}
	return cmd
}

// Try runs a command to its end, whatever that is.
func (p *Person) Try(name string, args ...string) Result { return p.TryIn("", name, args...) }

// TryIn is Try with standard input.
func (p *Person) TryIn(stdin, name string, args ...string) Result {
	p.c.T.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.c.T.Context()), patience) // also while the test cleans up
	defer cancel()
	cmd := p.Command(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	r := Result{Line: strings.Join(append([]string{name}, args...), " "), Out: out.String(), Err: errs.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		p.c.T.Fatalf("%s: did not end in %v\nstdout: %s\nstderr: %s", r.Line, patience, r.Out, r.Err)
	case errors.As(err, &exit):
		r.Code = exit.ExitCode()
	case err != nil:
		p.c.T.Fatalf("%s: %v", r.Line, err)
	}
	return r
}

// Run runs a command that must succeed and gives its output.
func (p *Person) Run(name string, args ...string) string {
	p.c.T.Helper()
	r := p.Try(name, args...)
	if r.Code != 0 {
		p.c.T.Fatalf("%v", r)
	}
	return r.Out
}

// Sbatch submits and gives the job's number.
func (p *Person) Sbatch(args ...string) string {
	p.c.T.Helper()
	out := p.Run("sbatch", append([]string{"--parsable"}, args...)...)
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	if _, err := strconv.Atoi(id); err != nil {
		p.c.T.Fatalf("sbatch --parsable %s printed %q", strings.Join(args, " "), out)
	}
	return id
}

// String shows the command and all it said.
func (r Result) String() string {
	return fmt.Sprintf("$ %s\nexit status %d\nstdout: %s\nstderr: %s", r.Line, r.Code, r.Out, r.Err)
}
