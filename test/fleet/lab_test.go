//go:build e2e

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/cluster"
)

const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "test/fleet: needs root: it makes network namespaces")
		os.Exit(1)
	}
	if _, err := cluster.Bin(); err != nil {
		fmt.Fprintln(os.Stderr, "test/fleet:", err)
		os.Exit(1)
	}
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		fmt.Fprintln(os.Stderr, "test/fleet: needs openssh-server: scripts/prereqs.sh installs it")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// lab is hosts and a server beside them.
type lab struct {
	t      *testing.T
	dir    string
	bin    string // of the server's programs
	net    string // first two numbers of all addresses
	id     string // begins the names of what the machine gets to see of it
	key    string // file that opens every host
	hosts  map[string]*box
	server *exec.Cmd
	ended  chan error
	port   int // of the agents' door

	hostsFile string // the server's; empty: the machine's
}

// box is a host.
type box struct {
	l    *lab
	name string
	ns   string // network namespace
	addr string
	disk string // what is its /var/lib/bireme
	size string // of a disk that is small; empty: a directory
	more string // what else is done before its SSH server starts, in its own world
	cmd  *exec.Cmd
	done chan struct{}
}

// labs counts them: they are there at the same time. Their fleets have different names, or the hosts' cgroups would
// not.
var labs atomic.Int32

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	bin, err := cluster.Bin()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := int(labs.Add(1))
	l := &lab{
		t: t, dir: dir, bin: bin, net: fmt.Sprintf("10.%d", 80+(os.Getpid()*8+n)%170),
		id: fmt.Sprintf("bf%d.%d", os.Getpid()%100000, n), hosts: map[string]*box{}, key: filepath.Join(dir, "key"),
	}
	l.sh("ssh-keygen -q -t ed25519 -N '' -f %s && cp %s.pub %s/authorized", l.key, l.key, dir)
	l.sh("chmod 755 %[1]s && cp %[2]s/bireme %[1]s", dir, bin)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.port = ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	return l
}

// sh runs a line of shell that must work.
func (l *lab) sh(format string, args ...any) {
	l.t.Helper()
	line := fmt.Sprintf(format, args...)
	if out, err := exec.Command("sh", "-ec", line).CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// host makes a host with a cable to this machine, on the n-th net.
func (l *lab) host(name string, n int) *box {
	l.t.Helper()
	b := &box{
		l: l, name: name, ns: l.id + "-" + name, addr: fmt.Sprintf("%s.%d.2", l.net, n),
		disk: filepath.Join(l.dir, name),
	}
	l.hosts[name] = b
	l.sh("mkdir %s && ip netns add %s && ssh-keygen -q -t ed25519 -N '' -f %s.hostkey", b.disk, b.ns, b.disk)
	cable := fmt.Sprintf("%s.%d", l.id, n)
	l.t.Cleanup(func() {
		b.kill()
		// with its namespace it would go later, and be in the next lab's way
		_ = exec.Command("ip", "link", "del", cable).Run()
		_ = exec.Command("ip", "netns", "del", b.ns).Run()
	})
	l.sh("ip link add %s type veth peer name cable0 netns %s && ip addr add %s.%d.1/24 dev %s && ip link set %s up",
		cable, b.ns, l.net, n, cable, cable)
	l.sh("ip -n %[1]s addr add %[2]s/24 dev cable0 && ip -n %[1]s link set cable0 up && ip -n %[1]s link set lo up",
		b.ns, b.addr)
	return b
}

// behind makes a host that is joined to another alone.
func (l *lab) behind(name string, gate *box, n int) *box {
	l.t.Helper()
	b := &box{
		l: l, name: name, ns: l.id + "-" + name, addr: fmt.Sprintf("%s.%d.2", l.net, n),
		disk: filepath.Join(l.dir, name),
	}
	l.hosts[name] = b
	l.sh("mkdir %s && ip netns add %s && ssh-keygen -q -t ed25519 -N '' -f %s.hostkey", b.disk, b.ns, b.disk)
	l.t.Cleanup(func() {
		b.kill()
		_ = exec.Command("ip", "netns", "del", b.ns).Run()
	})
	l.sh("ip -n %s link add lower0 type veth peer name cable0 netns %s", gate.ns, b.ns)
	l.sh("ip -n %[1]s addr add %[2]s.%[3]d.1/24 dev lower0 && ip -n %[1]s link set lower0 up", gate.ns, l.net, n)
	l.sh("ip -n %[1]s addr add %[2]s/24 dev cable0 && ip -n %[1]s link set cable0 up && ip -n %[1]s link set lo up",
		b.ns, b.addr)
	return b
}

// boot starts the host's SSH server as its first process.
func (b *box) boot() {
	t := b.l.t
	t.Helper()
	config := filepath.Join(b.l.dir, b.name+".sshd")
	text := fmt.Sprintf(`ListenAddress %s
HostKey %s.hostkey
AuthorizedKeysFile %s/authorized
PidFile none
StrictModes no
UsePAM yes
PermitRootLogin yes
PasswordAuthentication no
`, b.addr, b.disk, b.l.dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mount := "mount --bind " + b.disk + " /var/lib/bireme"
	if b.size != "" {
		mount = "mount -t tmpfs -o size=" + b.size + " none /var/lib/bireme"
	}
	script := fmt.Sprintf("hostname %s; mkdir -p /run/sshd /var/lib/bireme; mount -t tmpfs none /root; %s; %s exec "+
		"/usr/sbin/sshd -D -f %s -E %s.log", b.name, mount, b.more, config, config)
	b.cmd = exec.Command("nsenter", "--net=/run/netns/"+b.ns, "unshare", "--mount", "--uts", "--pid", "--fork",
		"--kill-child", "--mount-proc", "sh", "-ec", script)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.done = make(chan struct{})
	go func() { _ = b.cmd.Wait(); close(b.done) }()
	b.l.eventually("sshd on "+b.name, func() (bool, string) {
		return exec.Command("nsenter", "--net=/run/netns/"+b.ns, "bash", "-c", "exec 3<>/dev/tcp/"+b.addr+"/22").
			Run() == nil, "no answer"
	})
}

// kill takes the host's power: every process of it is gone at once.
func (b *box) kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill()
	<-b.done
	b.cmd = nil
}

// on runs a line of shell on the host, in its own world.
func (b *box) on(line string) string {
	out, err := exec.Command("nsenter", "--net=/run/netns/"+b.ns, "ssh", "-i", b.l.key, "-o",
		"StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "root@"+b.addr, line).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s: %v", out, err)
	}
	return strings.TrimSpace(string(out))
}

// start starts a server with the programs of a directory and settings beside the usual ones.
func (l *lab) start(bin string, settings ...string) {
	l.t.Helper()
	var names []string
	for n := 1; n <= 4; n++ {
		names = append(names, fmt.Sprintf("%s.%d.1:%d", l.net, n, l.port))
	}
	log, err := os.OpenFile(filepath.Join(l.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	words := []string{
		filepath.Join(bin, "biremed"), "server", "--dir", filepath.Join(l.dir, "srv"), "--agent-listen",
		fmt.Sprintf("0.0.0.0:%d", l.port),
		"--listen", "", "--set", "timers.heartbeat=500ms", "--set", "timers.silent_after=2s", "--set",
		"server.advertise=" + strings.Join(names, ","),
	}
	for _, x := range settings {
		words = append(words, "--set", x)
	}
	if l.hostsFile != "" { // of its own, without a word to the machine's
		words = append([]string{
			"unshare", "--mount", "sh", "-ec", `mount --bind "$0" /etc/hosts; exec "$@"`,
			l.hostsFile,
		}, words...)
	}
	l.server = exec.Command(words[0], words[1:]...)
	l.server.Stdout, l.server.Stderr = log, log
	l.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := l.server.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.ended = make(chan error, 1)
	go func(c *exec.Cmd, ended chan error) { ended <- c.Wait() }(l.server, l.ended)
	l.eventually("the server answers", func() (bool, string) {
		_, err := l.client().Nodes(context.Background())
		return err == nil, fmt.Sprint(err)
	})
}

func (l *lab) stop() {
	l.t.Helper()
	if l.server == nil {
		return
	}
	_ = l.server.Process.Signal(syscall.SIGTERM)
	if err := <-l.ended; err != nil {
		l.t.Errorf("the server ended with %v", err)
	}
	l.server = nil
}

func (l *lab) socket() string { return "unix:" + filepath.Join(l.dir, "srv", "bireme.sock") }

func (l *lab) client() *client.Client {
	c, err := client.New(client.Settings{Servers: []string{l.socket()}})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// bireme runs the user's tool.
func (l *lab) bireme(args ...string) (out, errs string, code int) {
	l.t.Helper()
	return l.as("root", args...)
}

// as is bireme for another user.
func (l *lab) as(user string, args ...string) (out, errs string, code int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "setpriv",
		append([]string{"--reuid", user, "--regid", user, "--init-groups", filepath.Join(l.dir, "bireme")}, args...)...)
	c.Env = append(os.Environ(), "BIREME_SERVER="+l.socket())
	c.Dir = l.dir
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	_ = c.Run()
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

// must is bireme for what must work.
func (l *lab) must(args ...string) string {
	l.t.Helper()
	out, errs, code := l.bireme(args...)
	if code != 0 {
		l.t.Fatalf("bireme %s: status %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// apply applies a fleet of some hosts.
func (l *lab) apply(name string, lines ...string) (errs string, code int) {
	l.t.Helper()
	return l.applyText(name, fmt.Sprintf("type: fleet\nname: %s\nplacement: cluster\nssh_config:\n  user: root\n"+
		"  identity_file: %s\n", name, l.key), lines...)
}

// applyText applies a fleet whose file begins in a certain way, up to the hosts of ssh_config.
func (l *lab) applyText(name, text string, lines ...string) (errs string, code int) {
	l.t.Helper()
	text += "  hosts:\n"
	for _, x := range lines {
		text += "    - " + x + "\n"
	}
	file := filepath.Join(l.dir, name+".dstack.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	out, errs, code := l.bireme("apply", "-y", "-f", file)
	return out + errs, code
}

// instance finds a host of a fleet by its address.
func (l *lab) instance(fleet, addr string) client.FleetInstance {
	l.t.Helper()
	f, err := l.client().Fleet(l.t.Context(), fleet)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, x := range f.Instances {
		if strings.Contains(x.Host, "@"+addr+":") {
			return x
		}
	}
	return client.FleetInstance{}
}

// await waits for what an instance says.
func (l *lab) await(what, fleet string, b *box, is func(client.FleetInstance) bool) {
	l.t.Helper()
	l.eventually(what, func() (bool, string) {
		x := l.instance(fleet, b.addr)
		text, _ := json.Marshal(x)
		return is(x), string(text)
	})
}

// job returns a job as it is now, ended ones too.
func (l *lab) job(id string) *client.Job {
	l.t.Helper()
	list, err := l.client().Job(l.t.Context(), id)
	if err != nil || len(list.Jobs) == 0 {
		l.t.Fatalf("job %s: %v", id, err)
	}
	return &list.Jobs[0]
}

func (l *lab) sbatch(args ...string) string {
	l.t.Helper()
	return strings.TrimSpace(l.must(append([]string{"sbatch", "--parsable"}, args...)...))
}

func (l *lab) eventually(what string, look func() (bool, string)) {
	l.t.Helper()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, saw := look()
		if ok {
			return
		}
		if time.Since(began) > patience {
			log, _ := os.ReadFile(filepath.Join(l.dir, "server.log"))
			l.t.Fatalf("not in %v: %s; last seen: %s\n%s", patience, what, saw, log)
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-tick.C:
		}
	}
}
