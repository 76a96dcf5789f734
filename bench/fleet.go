package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/client"
)

// fleetHosts is how many SSH hosts are made nodes.
const fleetHosts = 100

// fleet measures how long it takes until SSH hosts are nodes. They are the addresses 127.0.1.1 and on of a network
// namespace with one sshd, and share a disk: the agent is brought once, as to hosts with a common folder, and each runs
// an agent and a keeper of its own.
func (s *suite) fleet(ctx context.Context) error {
	if os.Geteuid() != 0 || exec.Command("test", "-x", "/usr/sbin/sshd").Run() != nil {
		progress("  skipped: needs root and openssh-server")
		return nil
	}
	dir, err := os.MkdirTemp(scratch, "fleet-")
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(s.bin)
	if err != nil {
		return err
	}
	sshd, err := startSSHD(ctx, dir)
	if err != nil {
		return err
	}
	defer sshd.end()
	login, err := sshd.logins(ctx)
	if err != nil {
		return err
	}
	server := exec.Command("nsenter", "--net=/proc/"+sshd.pid+"/ns/net", filepath.Join(bin, "biremed"), "server",
		"--dir", filepath.Join(dir, "srv"),
		"--listen", "", "--agent-listen", "127.0.0.1:7600")
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server.Stderr = log
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	c, err := client.New(client.Settings{
		Servers: []string{"unix:" + filepath.Join(dir, "srv", "bireme.sock")},
		Timeout: time.Minute,
	})
	if err != nil {
		return err
	}
	for {
		if _, err := c.Nodes(ctx); err == nil {
			break
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	key, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil {
		return err
	}
	spec := &client.FleetSpec{Keys: map[string]string{"k": string(key)}}
	for i := range fleetHosts {
		spec.Hosts = append(spec.Hosts, client.FleetHostSpec{
			SSHLogin: client.SSHLogin{Hostname: fmt.Sprintf("127.0.1.%d", i+1), Port: 2222, User: "root", Key: "k"},
		})
	}
	for _, again := range []bool{false, true} {
		began := time.Now()
		if _, err := c.PutFleet(ctx, "bench", spec); err != nil {
			return err
		}
		if err := untilIdle(ctx, c); err != nil {
			return err
		}
		took := time.Since(began)
		what := fmt.Sprintf("%d SSH hosts made nodes", fleetHosts)
		if again {
			what = "… once more, after they were deleted"
		}
		s.add(row{
			what, fmt.Sprintf("%.1f s", took.Seconds()), fmt.Sprintf("%.1f s (as many logins by ssh, 32 at once)",
				login.Seconds()),
			fmt.Sprintf("%.1f", took.Seconds()/login.Seconds()), "60 s",
		})
		if err := c.DropFleet(ctx, "bench", nil, true); err != nil {
			return err
		}
		if err := untilGone(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// untilIdle waits until every host is a node that can be used.
func untilIdle(ctx context.Context, c *client.Client) error {
	for {
		f, err := c.Fleet(ctx, "bench")
		if err != nil {
			return err
		}
		idle, cause := 0, ""
		for _, x := range f.Instances {
			if x.Status == "idle" {
				idle++
			}
			cause += x.Cause
		}
		if idle == fleetHosts {
			return nil
		}
		if cause != "" {
			return errors.New(cause)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func untilGone(ctx context.Context, c *client.Client) error {
	for {
		list, err := c.Fleets(ctx)
		if err != nil || len(list.Fleets) == 0 {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

// sshServer is an sshd in namespaces of its own.
type sshServer struct {
	dir, pid string
	cmd      *exec.Cmd
}

func startSSHD(ctx context.Context, dir string) (*sshServer, error) {
	s := &sshServer{dir: dir}
	config := fmt.Sprintf("Port 2222\nListenAddress 0.0.0.0\nHostKey %[1]s/hostkey\n"+
		"AuthorizedKeysFile %[1]s/key.pub\nPidFile %[1]s/sshd.pid\n"+
		"StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 1000\nMaxSessions 100\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	line := fmt.Sprintf("cd %s && ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -q -t ed25519 -N '' -f hostkey "+
		"&& mkdir disk && mkdir -p /run/sshd /var/lib/bireme", dir)
	if out, err := exec.CommandContext(ctx, "sh", "-ec", line).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", line, err, out)
	}
	s.cmd = exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
		fmt.Sprintf("ip link set lo up; mount -t tmpfs none /root; mount --bind %[1]s/disk /var/lib/bireme; exec "+
			"/usr/sbin/sshd -D -f %[1]s/sshd_config -E %[1]s/sshd.log", dir))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for { // unshare's child is the first process of its namespace
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.cmd.Process.Pid))
		if _, up := os.Stat(filepath.Join(dir, "sshd.pid")); err == nil && up == nil {
			if s.pid = strings.TrimSpace(string(b)); s.pid != "" {
				if _, err := strconv.Atoi(s.pid); err == nil {
					return s, nil
				}
			}
		}
		if err := pause(ctx); err != nil {
			s.end()
			return nil, err
		}
	}
}

// logins is what the machine allows: as many logins that do nothing.
func (s *sshServer) logins(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	g := errgroup.Group{}
	g.SetLimit(32)
	for i := range fleetHosts {
		g.Go(func() error {
			out, err := exec.CommandContext(ctx, "nsenter", "--net=/proc/"+s.pid+"/ns/net", "ssh", "-i",
				filepath.Join(s.dir, "key"), "-p", "2222",
				"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
				fmt.Sprintf("root@127.0.1.%d", i+1), "true").CombinedOutput()
			if err != nil {
				return fmt.Errorf("ssh: %w: %s", err, out)
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

func (s *sshServer) end() {
	_ = s.cmd.Process.Kill() // and with it all that is in its namespace
	_ = s.cmd.Wait()
}
