package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
)

// cluster is a running standalone cluster in a folder of its own.
type cluster struct {
	bin, dir, links string
	env             []string
	args            []string
	wrap            []string // put before biremed, e.g. strace
	c               *client.Client
	cmd             *exec.Cmd
}

// scratch holds everything a run writes. It is removed at the very end: ext4 gives out an inode that was freed in the
// last minute only after a search, so removing files between rows would slow down the rows that follow.
var scratch string

// up starts a cluster and waits until it is ready.
func (s *suite) up(ctx context.Context, wrap []string, args ...string) (*cluster, error) {
	dir, err := os.MkdirTemp(scratch, "cluster-")
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(s.bin)
	if err != nil {
		return nil, err
	}
	cl := &cluster{bin: bin, dir: dir, links: filepath.Join(dir, "links"), args: args, wrap: wrap}
	if err := cl.start(ctx); err != nil {
		return nil, err
	}
	if out, err := exec.Command(filepath.Join(bin, "bireme"), "links", cl.links).CombinedOutput(); err != nil {
		cl.down()
		return nil, fmt.Errorf("bireme links: %w: %s", err, out)
	}
	return cl, nil
}

// start runs standalone detached, or in the foreground under wrap, and reads what it exports.
func (cl *cluster) start(ctx context.Context) error {
	state := filepath.Join(cl.dir, "state")
	args := append([]string{"standalone", "--dir", state}, cl.args...)
	if len(cl.wrap) == 0 {
		cmd := exec.CommandContext(ctx, filepath.Join(cl.bin, "biremed"), append(args, "--detach")...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("biremed standalone: %w: %s", err, stderr.String())
		}
		return cl.exports(string(out))
	}
	argv := append(append(append([]string{}, cl.wrap...), filepath.Join(cl.bin, "biremed")), args...)
	cl.cmd = exec.Command(argv[0], argv[1:]...)
	cl.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cl.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cl.cmd.Start(); err != nil {
		return err
	}
	var text []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(text, []byte("BIREME_CA=")) || !bytes.HasSuffix(text, []byte("\n")) {
		n, err := pipe.Read(buf)
		text = append(text, buf[:n]...)
		if err != nil {
			return fmt.Errorf("standalone under %s ended: %w: %s", cl.wrap[0], err, text)
		}
	}
	return cl.exports(string(text))
}

// exports reads `export NAME=VALUE` lines.
func (cl *cluster) exports(text string) error {
	cl.env = nil
	for line := range strings.Lines(text) {
		kv := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		if name, value, ok := strings.Cut(kv, "="); ok {
			cl.env = append(cl.env, name+"="+strings.Trim(value, `'";`))
		}
	}
	var set client.Settings
	for _, kv := range cl.env {
		if v, ok := strings.CutPrefix(kv, "BIREME_SERVER="); ok {
			set.Servers = strings.Fields(strings.ReplaceAll(v, ",", " "))
		}
	}
	if len(set.Servers) == 0 {
		return fmt.Errorf("standalone exported no BIREME_SERVER: %q", text)
	}
	set.Timeout = time.Minute
	var err error
	cl.c, err = client.New(set)
	return err
}

func (cl *cluster) socket() string {
	for _, kv := range cl.env {
		if v, ok := strings.CutPrefix(kv, "BIREME_SERVER=unix:"); ok {
			v, _, _ = strings.Cut(v, ",")
			return v
		}
	}
	return ""
}

// stop ends the cluster and leaves its state.
func (cl *cluster) stop() error {
	out, err := exec.Command(filepath.Join(cl.bin, "biremed"), "stop", "--dir", filepath.Join(cl.dir, "state")).
		CombinedOutput()
	if cl.cmd != nil {
		cl.cmd.Wait()
		cl.cmd = nil
	}
	if err != nil {
		return fmt.Errorf("biremed stop: %w: %s", err, out)
	}
	return nil
}

func (cl *cluster) down() {
	if err := cl.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// command prepares one of the Slurm-named commands.
func (cl *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(cl.links, name), args...)
	cmd.Env = append(append(envOf(1), "PATH="+cl.links+":"+os.Getenv("PATH")), cl.env...)
	cmd.Dir = cl.dir
	return cmd
}

// serverPID reads the pid file of the server.
func (cl *cluster) serverPID() (int, error) {
	b, err := os.ReadFile(filepath.Join(cl.dir, "state", "server.pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// procs lists the processes whose command line names the cluster's folder.
func (cl *cluster) procs() []int {
	var pids []int
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
		if err == nil && bytes.Contains(b, []byte(cl.dir)) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// spent is CPU time by who spent it.
type spent struct{ server, agents, keepers, jobs time.Duration }

func (a spent) sub(b spent) spent {
	return spent{a.server - b.server, a.agents - b.agents, a.keepers - b.keepers, a.jobs - b.jobs}
}

func (a spent) total() time.Duration { return a.server + a.agents + a.keepers + a.jobs }

// cpu is the CPU time of the cluster's processes so far; jobs that ended are their keeper's children.
func (cl *cluster) cpu() spent {
	var sp spent
	for _, pid := range cl.procs() {
		own, children := procCPU(pid)
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		switch argv := strings.Split(string(b), "\x00"); {
		case strings.HasSuffix(argv[0], "bireme-step"):
			sp.keepers += own
			sp.jobs += children
		case len(argv) > 1 && argv[1] == "agent":
			sp.agents += own
		case len(argv) > 1 && (argv[1] == "standalone" || argv[1] == "server"):
			sp.server += own
		default:
			sp.jobs += own + children
		}
	}
	return sp
}

func procCPU(pid int) (own, children time.Duration) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	tick := func(i int) time.Duration {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return time.Duration(n) * 10 * time.Millisecond
	}
	return tick(11) + tick(12), tick(13) + tick(14)
}

// rss is a process's resident memory.
func rss(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// profile writes a CPU profile of the server over the next d, beside whatever runs, when profiles were asked for. The
// returned function waits for it.
func (s *suite) profile(cl *cluster, name string, d time.Duration) (wait func()) {
	return s.profileSocket(cl.socket(), name, d)
}

// profileSocket is profile of the server that listens there.
func (s *suite) profileSocket(sock, name string, d time.Duration) (wait func()) {
	if s.prof == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := unixClient(sock).Get(fmt.Sprintf("http://bireme/debug/pprof/profile?seconds=%d", int(d.Seconds())))
		if err != nil {
			progress("profile: %v", err)
			return
		}
		defer resp.Body.Close()
		f, err := os.Create(filepath.Join(s.prof, name+".pprof"))
		if err != nil {
			progress("profile: %v", err)
			return
		}
		defer f.Close()
		io.Copy(f, resp.Body)
	}()
	return func() { <-done }
}
