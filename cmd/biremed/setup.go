package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/setup"
)

// serverUser is whom an installed server runs as; the package makes it.
const serverUser = "bireme"

// installed is where an installed server and agent keep what the units name.
var installed = struct{ dir, socket, agentDir, agentSocket string }{
	"/var/lib/bireme", "/run/bireme/bireme.sock", "/var/lib/bireme-agent", "/run/bireme-agent/bireme.sock",
}

// setupCommand is `biremed setup`.
type setupCommand struct {
	answers setup.Answers
	yes     bool
	dryRun  bool
	force   bool
	noStart bool
	nodes   bool
	out     io.Writer
	notes   io.Writer
}

func newSetupCommand() *cobra.Command {
	var s setupCommand
	var listen, store string
	c := &cobra.Command{
		Use: "setup [--yes] [--dry-run]", Short: "make this host a server: five questions, then it runs",
		Args: noOperands,
		Long: `Ask five questions, write ` + defaultConfig + `, start the server, and print the lines that make another
host a node. Answers may be given as options; --yes takes the default of every other. Under systemd the
unit biremed-server is enabled and started; elsewhere the server is started as the user ` + serverUser + `, with its
log in ` + installed.dir + `/log. Settings that are there already are never overwritten without --force.

On a server that runs, --nodes prints the lines for another node again, with a new token.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s.out, s.notes = c.OutOrStdout(), c.ErrOrStderr()
			if s.nodes {
				return s.printNodes(c.Context())
			}
			s.answers.Store, s.answers.Listen = strings.TrimPrefix(store, "sqlite"), strings.TrimPrefix(listen, "none")
			if s.answers.Address == "" {
				s.answers.Address = defaultAddress()
			}
			var given []bool
			for _, name := range []string{"cluster", "store", "address", "listen", "node"} {
				given = append(given, s.yes || c.Flags().Changed(name))
			}
			if err := s.answers.Check(); err != nil {
				return core.Errorf(core.Invalid, "%v", err)
			}
			if err := s.refuse(); err != nil {
				return err
			}
			if err := setup.Ask(c.InOrStdin(), s.notes, &s.answers, given); err != nil {
				return err
			}
			return s.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&s.answers.Cluster, "cluster", "lab", "the cluster's `name`")
	f.StringVar(
		&store,
		"store",
		"sqlite",
		"sqlite, or a PostgreSQL `URL`; a password in it is seen in the process list: "+
			"answer the question instead",
	)
	f.StringVar(&s.answers.Address, "address", "", "`HOST[:PORT]` at which nodes reach this host (default: its name)")
	f.StringVar(&listen, "listen", "none", "`HOST:PORT` of the HTTPS API for users' computers, or none")
	f.BoolVar(&s.answers.Node, "node", false, "this host runs jobs as well")
	f.BoolVarP(&s.yes, "yes", "y", false, "ask nothing: what is not given takes its default")
	f.BoolVar(&s.dryRun, "dry-run", false, "print the settings, change nothing")
	f.BoolVar(&s.force, "force", false, "replace settings that are there")
	f.BoolVar(&s.noStart, "no-start", false, "write the settings only")
	f.BoolVar(&s.nodes, "nodes", false, "print the lines for another node of the server that runs here")
	return c
}

func defaultAddress() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return host + ":" + strconv.Itoa(setup.AgentPort)
}

// refuse finds what would stop it before anything is asked.
func (s *setupCommand) refuse() error {
	if s.dryRun {
		return nil
	}
	if os.Geteuid() != 0 {
		return core.Errorf(
			core.Denied,
			"setup writes %s and starts services: run it as root, or with --dry-run",
			defaultConfig,
		)
	}
	if _, err := os.Stat(defaultConfig); err == nil && !s.force {
		return core.Errorf(
			core.Conflict,
			"%s is there already: edit it and run `biremed config check`, or give --force to "+
				"replace it; --nodes prints how nodes join",
			defaultConfig,
		)
	}
	if _, err := user.Lookup(serverUser); err != nil {
		return core.Errorf(core.NotFound, "there is no user %s for the server: install the package, or run "+
			"systemd-sysusers (see docs/install.md)", serverUser)
	}
	return nil
}

func (s *setupCommand) run(ctx context.Context) error {
	text, err := s.answers.Settings(installed.dir)
	if err != nil {
		return err
	}
	if _, err := config.Parse(defaultConfig, []byte(text)); err != nil {
		return err
	}
	if s.dryRun {
		_, err := io.WriteString(s.out, text)
		return err
	}
	if err := writeSettings(text); err != nil {
		return err
	}
	fmt.Fprintf(s.notes, "wrote %s\n", defaultConfig)
	if s.noStart {
		fmt.Fprintln(s.notes, "start the server with: systemctl enable --now biremed-server; then: biremed setup --nodes")
		return nil
	}
	if err := s.startServer(ctx); err != nil {
		return err
	}
	if s.answers.Node {
		if err := s.startAgent(ctx); err != nil {
			return err
		}
	}
	return s.printNodes(ctx)
}

// writeSettings puts the settings in place at once, readable by root and the server only: they may hold a password.
func writeSettings(text string) error {
	u, err := user.Lookup(serverUser)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(defaultConfig), 0o755); err != nil {
		return err
	}
	return place(defaultConfig, []byte(text), 0o640, gid)
}

// place writes a file of root's under a name of its own first, and moves it in place when all of it is on disk.
func place(path string, content []byte, mode os.FileMode, gid int) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chown(0, gid), f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

// hasSystemd reports whether systemd is this machine's init.
func hasSystemd() bool {
	st, err := os.Stat("/run/systemd/system")
	return err == nil && st.IsDir()
}

func (s *setupCommand) startServer(ctx context.Context) error {
	if hasSystemd() {
		if err := systemctl(ctx, "enable", "--now", "biremed-server.service"); err != nil {
			return err
		}
	} else if err := startServerHere(); err != nil {
		return err
	}
	fmt.Fprintln(s.notes, "started the server")
	return s.answering(ctx, "the server", installed.socket, installed.dir)
}

func startServerHere() error {
	u, err := user.Lookup(serverUser)
	if err != nil {
		return err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	who := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, dir := range []string{installed.dir, filepath.Dir(installed.socket), filepath.Join(installed.dir, "log")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	return detach(filepath.Join(installed.dir, "log"), who, nil, "server", "--config", defaultConfig, "--set",
		"server.socket="+installed.socket)
}

func (s *setupCommand) startAgent(ctx context.Context) error {
	ca, err := os.ReadFile(filepath.Join(installed.dir, "ca.pem"))
	if err != nil {
		return err
	}
	token, err := joinToken(ctx)
	if err != nil {
		return err
	}
	conf := filepath.Dir(defaultConfig)
	if err := errors.Join(place(filepath.Join(conf, "ca.pem"), ca, 0o644, 0),
		place(filepath.Join(conf, "agent.env"), []byte(s.answers.AgentEnv(token)), 0o600, 0)); err != nil {
		return err
	}
	if hasSystemd() {
		if err := systemctl(ctx, "enable", "--now", "biremed-agent.service"); err != nil {
			return err
		}
	} else {
		log := filepath.Join(installed.agentDir, "log")
		for _, dir := range []string{log, filepath.Dir(installed.agentSocket)} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := detach(log, nil, []string{"BIREME_JOIN_TOKEN=" + token}, "agent", "--server", s.answers.Address,
			"--ca", filepath.Join(conf, "ca.pem"), "--dir", installed.agentDir, "--socket", installed.agentSocket); err != nil {
			return err
		}
	}
	fmt.Fprintln(s.notes, "started this host's agent")
	return s.answering(ctx, "the agent", installed.agentSocket, installed.agentDir)
}

func systemctl(ctx context.Context, words ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", words...).CombinedOutput()
	if err != nil {
		return core.Errorf(core.Unavailable, "systemctl %s: %v: %s", strings.Join(words, " "), err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

// detach starts this program as a daemon whose log is below a folder.
func detach(folder string, who *syscall.Credential, env []string, words ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(folder, words[0]+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o640)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, words...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// answering waits until what was started answers at its socket.
func (s *setupCommand) answering(ctx context.Context, what, socket, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := client.New(client.Settings{Servers: []string{"unix:" + socket}})
		if err == nil {
			if _, err = c.Cluster(ctx); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			where := "journalctl -u biremed-server -u biremed-agent"
			if !hasSystemd() {
				where = filepath.Join(dir, "log")
			}
			return core.Errorf(
				core.Unavailable,
				"%s does not answer at %s: %v; its log says why: %s",
				what,
				socket,
				err,
				where,
			)
		case <-tick.C:
		}
	}
}

// joinToken makes a token with which one node joins within a day.
func joinToken(ctx context.Context) (string, error) {
	c, err := client.New(client.Settings{Servers: []string{"unix:" + installed.socket}})
	if err != nil {
		return "", err
	}
	made, err := c.NewToken(ctx, &client.NewToken{
		Kind: "join", Roles: core.Compute | core.Login, TTL: 86400, Note: "biremed setup",
	})
	if err != nil {
		return "", err
	}
	return made.Secret, nil
}

// printNodes prints how one more host becomes a node: the lines alone on standard output.
func (s *setupCommand) printNodes(ctx context.Context) error {
	cfg, err := (&configFlags{file: defaultConfig}).load()
	if err != nil {
		return err
	}
	if len(cfg.Server.Advertise) == 0 {
		return core.Errorf(core.Invalid, "server.advertise in %s is empty: name the address at which nodes reach this host",
			defaultConfig)
	}
	s.answers.Address = cfg.Server.Advertise[0]
	ca, err := os.ReadFile(filepath.Join(cfg.Dir, "ca.pem"))
	if err != nil {
		return core.Errorf(core.Unavailable, "%v: has the server been started?", err)
	}
	token, err := joinToken(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(
		s.notes,
		"To make another host a node, install the package there and run these lines as root. The token "+
			"is good\nfor one node, within a day; `biremed setup --nodes` prints another.",
	)
	_, err = io.WriteString(s.out, s.answers.JoinLines(ca, token))
	return err
}
