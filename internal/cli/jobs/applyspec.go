package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
)

// InFile names the file of a configuration's faults; other errors stay as they are.
func InFile(err error, file string) error {
	var faults config.Faults
	if errors.As(err, &faults) {
		return faults.In(file)
	}
	return err
}

// spec completes a run by what the caller gives, before any server is asked: its name, variables and arguments.
func (o *applyOptions) spec(c *config.Configuration) (*convert.Spec, error) {
	if o.name != "" {
		if err := dstack.CheckName(o.name); err != nil {
			return nil, app.Usagef("-n: %s", err.Error())
		}
	} else if err := convert.NameOf(c, dstack.CheckName); err != nil {
		return nil, err
	}
	if o.name == "" {
		o.name = c.Name()
	}
	if err := o.repos.apply(c); err != nil {
		return nil, err
	}
	if err := convert.CheckRuns(c); err != nil {
		return nil, err
	}
	if err := c.Complete(config.Options{Env: o.env, Lookup: o.app.Lookup, Args: o.args}); err != nil {
		return nil, err
	}
	convert.Modest(c)
	if err := o.flags.Override(c); err != nil {
		return nil, err
	}
	profile, err := FindProfile(o.app, o.profile, o.noProfile)
	if err != nil {
		return nil, err
	}
	s := &convert.Spec{Configuration: *c, Profile: profile}
	if o.identity != "" {
		key, err := publicKey(o.identity)
		if err != nil {
			return nil, err
		}
		s.SSHKeyPub = &key
	}
	if !s.Undecided() && !s.Contained(core.RuntimeProcess) {
		return s, convert.CheckProcess(c)
	}
	return s, nil
}

// submission turns a run into a submission. What it runs in, if it does not say it itself, and where it may be is asked
// of the server, which has said it where there is a plan.
func (o *applyOptions) submission(ctx context.Context, c *client.Client, s *convert.Spec, file string, p *planned) (
	*client.Submit, error,
) {
	opts := convert.Options{
		Name: o.name, Project: core.ProjectName(o.project), Runtime: core.RuntimeProcess, From: o.origin(file),
		Now: time.Now(),
		Secret: func(name string) (string, error) { // the node's launch puts it in
			return "${{ secrets." + name + " }}", nil
		},
		Job: func(run string) (string, error) {
			r, err := findRun(ctx, c, o.project, run)
			if err != nil {
				return "", err
			}
			if len(r.Jobs) == 0 {
				return "", core.Errorf(core.NotFound, "depends_on: run %s has no job", run)
			}
			return strconv.FormatInt(int64(r.Jobs[len(r.Jobs)-1]), 10), nil
		},
	}
	if s.Undecided() {
		switch {
		case p == nil:
			list, err := c.Projects(ctx)
			if err != nil {
				return nil, err
			}
			opts.Runtime = core.RuntimeIn(core.ProjectName(o.project), list.Find)
		case p.contained():
			opts.Runtime = core.RuntimeContainer
		}
		if opts.Runtime == core.RuntimeProcess {
			if err := convert.CheckProcess(&s.Configuration); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if opts.Places, err = places(ctx, c, s, file); err != nil {
		return nil, err
	}
	sub, err := s.Submit(opts)
	if err != nil {
		return nil, err
	}
	// What can never start is refused, unless the file says that it should wait for capacity to come.
	sub.Strict = !s.Waits()
	return sub, o.describe(sub, s, p)
}

// describe has the run's description stored with it, so that plans can be compared with it.
func (o *applyOptions) describe(sub *client.Submit, s *convert.Spec, p *planned) error {
	raw, err := s.Completed().JSON()
	if p != nil {
		raw = p.raw
	}
	sub.Config, sub.RunSpec = string(raw), true
	return err
}

// origin is where the run came from.
func (o *applyOptions) origin(file string) core.Origin {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	from := core.Origin{Host: host, Dir: dir, Line: "bireme apply -f " + file}
	if o.file != "-" {
		if abs, err := filepath.Abs(file); err == nil {
			from.Command = abs
		}
	}
	return from
}

// publicKey is the public part of a private key: the file beside it.
func publicKey(file string) (string, error) {
	data, err := os.ReadFile(strings.TrimSuffix(file, ".pub") + ".pub")
	if err != nil {
		return "", app.Usagef("--ssh-identity %s: there is no %[1]s.pub; ssh-keygen -y -f %[1]s > %[1]s.pub makes it", file)
	}
	return strings.TrimSpace(string(data)), nil
}
