//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/cluster"
)

// typist is an srun whose input is typed and whose output is in a file.
type typist struct {
	c     *cluster.Cluster
	cmd   *exec.Cmd
	typed io.WriteCloser
	said  string
	errs  bytes.Buffer
}

// startTyping runs srun as p.
func startTyping(t *testing.T, c *cluster.Cluster, p *cluster.Person, name string, args ...string) *typist {
	t.Helper()
	s := &typist{
		c: c, cmd: p.Command(t.Context(), "srun", append([]string{"-J", name}, args...)...),
		said: filepath.Join(c.Work, name+".said"),
	}
	out, err := os.Create(s.said)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	s.cmd.Stdout, s.cmd.Stderr = out, &s.errs
	if s.typed, err = s.cmd.StdinPipe(); err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// says types a line and waits for what the tasks make of it.
func (s *typist) says(t *testing.T, line string, want ...string) {
	t.Helper()
	if _, err := io.WriteString(s.typed, line+"\n"); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		s.c.WaitFile(s.said, w)
	}
}

// ends closes the input and looks at how srun ends.
func (s *typist) ends(t *testing.T, code int, says ...string) {
	t.Helper()
	s.typed.Close()
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("srun ended with %d, want %d:\n%s", got, code, s.errs.String())
	}
	wants(t, "what srun says", s.errs.String(), says...)
	if text := read(t, s.said); strings.Count(text, "\n") != len(strings.Fields(strings.ReplaceAll(text, ": ", ":"))) {
		t.Errorf("output is torn:\n%s", text)
	}
}

// barrier has tasks meet twice by PMI; the last one comes to the second meeting when it is told to.
const barrier = `
ask() { echo "$1" >&$PMI_FD; read -u $PMI_FD answer; }
ask "cmd=init pmi_version=1 pmi_subversion=1"
ask cmd=barrier_in
echo met
if [ $SLURM_PROCID = 1 ]; then until [ -e meet ]; do sleep 0.05; done; else : >waits; fi
ask cmd=barrier_in
case $answer in cmd=barrier_out*rc=0*) echo met ;; *) echo "$answer" ;; esac
ask cmd=finalize`

// TestStepsOutliveAgents: a step continues while the agents of its nodes are away; those that come after know whose
// input and output is whose, how much of it was read, and how tasks ended meanwhile; and tasks that wait for each other
// still meet.
func TestStepsOutliveAgents(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 4, Memory: "4G"})
	s := startTyping(t, c, c.As(alice), "talk", "-N2", "-n4", "--mem=1G", "-l", "sh", "-c", `
while read a; do
	echo $a
	[ $a != away ] || until [ -e go ]; do sleep 0.05; done
	[ $a != away ] || [ $SLURM_PROCID != 2 ] || exit 9
done
: >done.$SLURM_PROCID; exit $((3 + SLURM_PROCID))`)
	s.says(t, "first", "0: first\n", "1: first\n", "2: first\n", "3: first\n")
	s.says(t, "away", "0: away\n", "1: away\n", "2: away\n", "3: away\n")
	meet := startTyping(t, c, c.As(alice), "meet", "-N2", "-n2", "--mem=1G", "--mpi=pmi2", "bash", "-c", barrier)
	c.WaitFile(meet.said, "met\nmet\n")
	c.WaitFile(c.Work+"/waits", "")
	for _, n := range c.Nodes() {
		c.Kill("agent of "+n, func() int { return c.Agent(n) })
	}
	write(t, c.Work+"/go", "")
	for _, n := range c.Nodes() {
		c.WaitNode(n, "connected again", func(n *client.Node) bool { return n.Connected && c.Agent(string(n.Name)) != 0 })
	}
	write(t, c.Work+"/meet", "")
	meet.ends(t, 0)
	if text := read(t, meet.said); strings.Count(text, "met\n") != 4 {
		t.Errorf("not all tasks met again:\n%s", text)
	}
	s.says(t, "back", "0: back\n", "1: back\n", "3: back\n")
	s.ends(t, 9, "task 0: Exited with exit code 3", "task 1: Exited with exit code 4",
		"task 2: Exited with exit code 9", "task 3: Exited with exit code 6")
	c.WaitClean()
}

// TestRelayedStepsOutliveServer: steps whose streams go by the server find the next one, they and their srun. What is
// typed while there is none is not lost; one that ends meanwhile ends its srun with its code.
func TestRelayedStepsOutliveServer(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "4G"})
	p := c.As(alice).With("BIREME_DIRECT=off")
	talk := startTyping(t, c, p, "talk", "-N2", "-n2", "-l", "sh", "-c",
		`while read a; do echo $a; done; exit $((3 + SLURM_PROCID))`)
	short := startTyping(t, c, p, "short", "-N2", "-n2", "sh", "-c",
		`echo up; until [ -e go ]; do sleep 0.05; done; : >done.$SLURM_PROCID; exit 7`)
	talk.says(t, "first", "0: first\n", "1: first\n")
	c.WaitFile(short.said, "up\nup\n")
	c.KillServer()
	talk.says(t, "away")
	write(t, c.Work+"/go", "")
	c.WaitFile(c.Work+"/done.0", "")
	c.WaitFile(c.Work+"/done.1", "")
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	c.WaitFile(talk.said, "0: away\n")
	c.WaitFile(talk.said, "1: away\n")
	talk.says(t, "back", "0: back\n", "1: back\n")
	talk.ends(t, 4, "task 0: Exited with exit code 3", "task 1: Exited with exit code 4")
	short.ends(t, 7)
	c.WaitClean()
}
