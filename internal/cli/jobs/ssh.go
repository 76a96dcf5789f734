package jobs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/wire"
)

type sshOptions struct {
	app     *app.App
	project string
	proxy   bool
	config  bool
	node    int
	args    []string
}

func sshCommand(a *app.App) *cobra.Command {
	o := &sshOptions{app: a}
	c := &cobra.Command{
		Use:   "ssh [--config] RUN|JOB [ARGUMENTS OF SSH]",
		Short: "open a shell in a job, or run a command there", Args: cobra.MinimumNArgs(1),
		Long: `Open a shell in a run or job, in its container if it has one, or run a command there, by the ssh of this
machine. What follows RUN|JOB goes to ssh as it is: a command, or options such as -L and -R before it. The ports of
the configuration are forwarded.

  bireme ssh train nvidia-smi
  bireme ssh --config train >> ~/.ssh/config     and then: scp, rsync, sftp, editors, with the host's name "train"

The connection goes through the cluster, as the caller: no port is open and no key is needed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return namedSo(o.run(cmd.Context()), args[0])
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.project, "project", "", "`PROJECT` of the run")
	f.BoolVar(&o.config, "config", false, "print lines for ~/.ssh/config instead")
	f.IntVar(&o.node, "node", 0, "the `N`th of the job's nodes, from 0 on")
	f.BoolVar(&o.proxy, "proxy", false, "be the connection: for ssh's ProxyCommand")
	return c
}

func (o *sshOptions) run(ctx context.Context) error {
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	id, err := findJob(ctx, c, o.project, o.args[0])
	if err != nil {
		return err
	}
	j, err := oneJob(ctx, c, id)
	if err != nil {
		return err
	}
	box := j.Spec.More().Container
	switch {
	case j.State.Final():
		return core.Errorf(core.Conflict, "%s has ended: it %s", o.what(id), j.State.Phrase())
	case j.State != core.Running:
		return core.Errorf(core.Conflict, "job %s is not running yet: it %s", id, j.State.Phrase())
	}
	if o.node < 0 || j.Alloc != nil && o.node >= len(j.Alloc.Nodes) {
		return app.Usagef("--node %d: job %s has %s, the first is 0", o.node, id,
			app.Plural(len(j.Alloc.Nodes), "node"))
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if o.proxy {
		// A step in the job whose streams speak SSH.
		return syscall.Exec(self, []string{
			self, "srun", "--jobid=" + id, "--overlap", "--quiet", "--nodes=1", "--ntasks=1", "--overcommit",
			"--job-name=" + core.StepSSH, "--relative=" + strconv.Itoa(o.node), "--export=NONE",
			"--chdir=/", "--mpi=none", "--unbuffered", wire.InitInside, "sshd",
		}, os.Environ())
	}
	if o.config {
		_, err := fmt.Fprint(o.app.Out, o.lines(self))
		return err
	}
	return o.exec(self, box)
}

// what names what was asked for.
func (o *sshOptions) what(id string) string {
	if isJobID(o.args[0]) {
		return "job " + id
	}
	return "run " + o.args[0]
}

// settings are those of every connection. The cluster has authenticated both ends.
func (o *sshOptions) settings(self string) [][2]string {
	proxy := ""
	for _, name := range []string{"BIREME_SERVER", "BIREME_CA", "BIREME_CONFIG"} { // an editor has another environment
		if v := os.Getenv(name); v != "" {
			proxy += name + "=" + strconv.Quote(v) + " "
		}
	}
	if proxy != "" {
		proxy = "env " + proxy
	}
	proxy += strconv.Quote(self) + " ssh --proxy "
	if o.project != "" {
		proxy += "--project " + o.project + " "
	}
	if o.node != 0 {
		proxy += "--node " + strconv.Itoa(o.node) + " "
	}
	return [][2]string{
		{"ProxyCommand", proxy + o.args[0]},
		{"User", "root"},
		{"StrictHostKeyChecking", "no"},
		{"UserKnownHostsFile", "/dev/null"},
		{"PreferredAuthentications", "none"},
		{"LogLevel", "ERROR"},
	}
}

// lines is the block for a config file.
func (o *sshOptions) lines(self string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n", attach.Host(o.args[0], o.node))
	for _, s := range o.settings(self) {
		fmt.Fprintf(&b, "    %s %s\n", s[0], s[1])
	}
	return b.String()
}

// exec becomes the machine's ssh.
func (o *sshOptions) exec(self string, box *core.Container) error {
	path, err := exec.LookPath("ssh")
	if err != nil {
		return core.Errorf(core.NotFound, "there is no ssh program in PATH")
	}
	argv := []string{"ssh", "-F", "none"}
	for _, s := range o.settings(self) {
		argv = append(argv, "-o", s[0]+"="+s[1])
	}
	if box != nil {
		for _, p := range box.Ports {
			if p.Local != 0 {
				argv = append(argv, "-L", forward{"localhost", int(p.Local), int(p.Container)}.option())
			}
		}
	}
	argv = append(append(argv, o.args[0]), o.args[1:]...)
	return syscall.Exec(path, argv, os.Environ())
}
