package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/agent/adopt"
	"bireme.dev/bireme/internal/core"
)

// newPAMCommand is what pam_exec runs on a node when somebody comes by ssh.
func newPAMCommand() *cobra.Command {
	var dir string
	var allow []string
	c := &cobra.Command{
		Use: "pam [--dir DIR] [--allow USER,...]", Short: "let users in by ssh who have a job on this node, into the job",
		Args: noOperands,
		Long: `For pam_exec in /etc/pam.d/sshd of a node, as its last line of account:

    account required pam_exec.so quiet stdout /usr/sbin/biremed pam --dir /var/lib/bireme-agent

A user who has a job with a process on this node is let in, and the session becomes part of the newest of
these jobs: it is in its cgroups, under its limits, and ends with it. Others are refused. Root and the
users of --allow pass. It asks the kernel and the keeper's files, never the server. Of its environment it
reads PAM_USER and PAM_TYPE. Take pam_systemd.so out of the session lines: it would move the session away.`,
		RunE: func(c *cobra.Command, _ []string) error {
			user, kind := os.Getenv("PAM_USER"), os.Getenv("PAM_TYPE")
			os.Clearenv()
			if err := os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
				return err
			}
			return admit(&adopt.Node{Dir: dir, Proc: "/proc"}, user, kind, allow)
		},
	}
	f := c.Flags()
	f.StringVar(&dir, "dir", "/var/lib/bireme/agent", "`folder` of the agent")
	f.StringSliceVar(&allow, "allow", nil, "`USER`s who are let in without a job")
	return c
}

// admit lets a user in, or says why not.
func admit(n *adopt.Node, user, kind string, allow []string) error {
	switch {
	case os.Geteuid() != 0:
		return core.Errorf(core.Denied, "pam: it must be run by root, from PAM")
	case kind == "close_session":
		return nil // there is nothing to decide
	case kind != "account" && kind != "open_session": // an answer here would let people in who did not show who they are
		return core.Errorf(core.Denied, "pam: PAM_TYPE %q: this is for lines of account and session", kind)
	case user == "":
		return core.Errorf(core.Invalid, "pam: PAM_USER is not set: this is for pam_exec")
	case !filepath.IsAbs(n.Dir):
		return core.Errorf(core.Invalid, "pam: --dir %s: give the whole path", n.Dir)
	case slices.Contains(allow, user):
		return nil
	}
	who, err := account.ByName(user)
	if err != nil {
		return core.Errorf(core.Denied, "pam: there is no user %q", user)
	}
	if who.UID == 0 {
		return nil
	}
	job, err := n.Newest(who.UID)
	switch {
	case errors.Is(err, adopt.ErrNone) && kind == "open_session":
		return nil // account lines decide
	case errors.Is(err, adopt.ErrNone):
		return core.Errorf(core.Denied, "access denied: %s has no job on this node", user)
	case err != nil:
		return fmt.Errorf("access denied: %w", err)
	}
	// pam_exec forks this program from the process that becomes the session, or its parent.
	if parent := os.Getppid(); parent > 1 {
		return job.Adopt(parent)
	}
	return core.Errorf(core.Denied, "access denied: the process that asks has gone")
}
