//go:build e2e

package dstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// version is the release of the CLI that the script is run with.
const version = "0.22.5"

// docker is the engine of all tests here.
var docker *engine.Engine

// cli is the stock CLI.
var cli string

func TestMain(m *testing.M) {
	engine.Main(m, func(e *engine.Engine) (err error) {
		docker = e
		if cli, err = findCLI(version); err != nil {
			return err
		}
		return importBox(e)
	})
}

// importBox imports the image of all tests here into an engine.
func importBox(e *engine.Engine) error {
	files, err := engine.BusyBox()
	if err != nil {
		return err
	}
	return e.Import("box:1", files, `CMD ["/bin/sh","-c","echo the image speaks"]`, "WORKDIR /home/app")
}

// findCLI is the stock CLI of a release, which scripts/prereqs.sh installs from PyPI.
func findCLI(release string) (string, error) {
	if path := os.Getenv("BIREME_DSTACK_CLI"); path != "" && release == version {
		return path, nil
	}
	dir := os.Getenv("BIREME_DSTACK")
	if dir == "" {
		dir = "/opt/bireme-test"
	}
	path := filepath.Join(dir, "dstack-"+release, "bin", "dstack")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: scripts/prereqs.sh installs dstack %s", err, release)
	}
	return path, nil
}

// session is a user's machine: a home directory, a work directory and the CLI.
type session struct {
	t    *testing.T
	cli  string
	home string
	work string
	n    int      // commands so far
	on   string   // line of configurations that places runs; "": anywhere
	more []string // of its environment
}

func newSession(t *testing.T, c *cluster.Cluster) *session {
	t.Helper()
	s := &session{t: t, cli: cli, home: filepath.Join(c.Work, "home"), work: filepath.Join(c.Work, "files")}
	for _, dir := range []string{s.home, s.work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// file writes a configuration.
func (s *session) file(name, text string) {
	s.t.Helper()
	text = strings.Replace(text, head, head+s.on, 1)
	if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// patience is how long a command may take.
const patience = 90 * time.Second

// try runs the CLI and gives its output and exit status.
func (s *session) try(stdin string, args ...string) (out string, code int) {
	s.t.Helper()
	s.n++
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.cli, args...)
	cmd.Dir = s.work
	cmd.Env = s.env()
	cmd.Stdin = strings.NewReader(stdin)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	cmd.WaitDelay = 5 * time.Second // ssh in the background holds its output
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		s.t.Fatalf("dstack %s: %v\n%s", strings.Join(args, " "), err, b.String())
	}
	return b.String(), code
}

// env is the environment of the user's machine.
func (s *session) env() []string {
	return append([]string{
		"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "COLUMNS=180", "LANG=C.UTF-8", "USER=root",
		"DSTACK_CLI_LOG_LEVEL=ERROR",
	}, s.more...)
}

// want runs the CLI and expects an exit status and texts in its output.
func (s *session) want(code int, args string, texts ...string) string {
	s.t.Helper()
	out, got := s.try("", strings.Fields(args)...)
	if got != code {
		s.t.Errorf("dstack %s: exit %d, want %d:\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if no, ok := strings.CutPrefix(text, "!"); ok {
			if strings.Contains(out, no) {
				s.t.Errorf("dstack %s has %q:\n%s", args, no, out)
			}
		} else if !strings.Contains(out, text) {
			s.t.Errorf("dstack %s lacks %q:\n%s", args, text, out)
		}
	}
	if strings.Contains(out, "Traceback") {
		s.t.Errorf("dstack %s fails on the answer:\n%s", args, out)
	}
	return out
}

// until repeats a command until its output has a text.
func (s *session) until(text, args string) {
	s.t.Helper()
	end := time.Now().Add(patience)
	for {
		out, _ := s.try("", strings.Fields(args)...)
		if strings.Contains(out, text) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("dstack %s never had %q:\n%s", args, text, out)
		}
	}
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
