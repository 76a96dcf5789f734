package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// peerRounds is how often each command of the stock CLI is run against the real server.
const peerRounds = 5

// dstackPeer runs a real dstack server, and asks it what the rows of the stock CLI ask ours. Runs need its agents on a
// host, which it downloads from a bucket on the Internet: where that cannot be reached they are not measured, and the
// row says so.
func (s *suite) dstackPeer(ctx context.Context) error {
	const what = "real dstack server " + dstackVersion
	program := filepath.Join(dstackHome(), "dstack-"+dstackVersion+"-server", "bin", "dstack")
	if _, err := os.Stat(program); err != nil {
		s.add(row{what: what, value: "not measured: it is not installed (scripts/bench-prereqs.sh)"})
		return nil
	}
	dir, err := os.MkdirTemp(scratch, "dstack-")
	if err != nil {
		return err
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	port := addr[len("127.0.0.1:"):]
	const token = "bench-admin-token"
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server := exec.Command(program, "server", "-y", "--host", "127.0.0.1", "--port", port, "--token", token)
	server.Dir, server.Stdout, server.Stderr = dir, log, log
	server.Env = []string{
		"HOME=" + dir, "PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "LANG=C.UTF-8",
		"DSTACK_SERVER_DIR=" + filepath.Join(dir, "server"), "GPUHUNT_CATALOG_URL=http://127.0.0.1:1/",
	}
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	var cli *stock
	for range 60 { // the CLI adds the project as soon as the server answers
		if cli, err = newStock(filepath.Join(dir, "home"), "http://"+addr, token); err == nil {
			break
		}
		if err := rest(ctx, time.Second); err != nil {
			return err
		}
	}
	if err != nil {
		text, _ := os.ReadFile(log.Name()) // the better part of the message, if it can be had
		return fmt.Errorf("%w: %s", err, text)
	}
	ready := time.Since(began)
	var ps []time.Duration
	for range peerRounds {
		began := time.Now()
		if _, err := cli.run("ps"); err != nil {
			return err
		}
		ps = append(ps, time.Since(began))
	}
	before, _ := procCPU(server.Process.Pid)
	if err := rest(ctx, waitingFor); err != nil {
		return err
	}
	after, _ := procCPU(server.Process.Pid)
	s.add(row{
		what: what + ": wall time of `dstack ps`, p50; CPU without runs; resident",
		value: fmt.Sprintf("%s; %.1f %% of a core; %d MB; ready after %.0f s", ms(pct(ps, 50)),
			(after-before).Seconds()/waitingFor.Seconds()*100, rss(server.Process.Pid)>>20, ready.Seconds()),
	})
	s.add(row{
		what:  "  its runs",
		value: "not measured: its agents (shim, runner) come from a bucket on the Internet",
	})
	return nil
}
