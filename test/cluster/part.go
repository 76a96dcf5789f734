package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Nodes lists the names of the cluster's nodes.
func (c *Layout) Nodes() []string {
	dirs, _ := filepath.Glob(filepath.Join(c.Dir, "nodes", "*")) // the pattern is good
	var names []string
	for _, d := range dirs {
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			names = append(names, filepath.Base(d))
		}
	}
	return names
}

// Server is the pid of the server; 0: there is none.
func (c *Layout) Server() int { return alive(readPid(filepath.Join(c.Dir, "server.pid")), "biremed") }

// Agent is the pid of a node's agent; 0: there is none.
func (c *Layout) Agent(node string) int {
	return alive(readPid(filepath.Join(c.Dir, "nodes", node, "agent.pid")), "biremed")
}

// Keeper is the pid of a node's keeper; 0: there is none.
func (c *Layout) Keeper(node string) int {
	dir := filepath.Join(c.Dir, "nodes", node, "keeper")
	for _, pid := range pids() {
		argv := cmdline(pid)
		if len(argv) > 2 && filepath.Base(argv[0]) == "bireme-step" && contains(argv, dir) {
			return pid
		}
	}
	return 0
}

func contains(argv []string, want string) bool {
	for _, a := range argv {
		if a == want || strings.HasSuffix(a, "="+want) {
			return true
		}
	}
	return false
}

// Signal sends a signal to a process of the cluster and reports whether there was one.
func (c *Cluster) Signal(pid int, s syscall.Signal) bool {
	c.T.Helper()
	if pid == 0 {
		return false
	}
	err := syscall.Kill(pid, s)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		c.T.Fatalf("signal %d to process %d: %v", s, pid, err)
	}
	return err == nil
}

// KillServer kills the server and returns when it is gone.
func (c *Cluster) KillServer() {
	c.T.Helper()
	c.Kill("server", c.Server)
}

// Kill kills what find finds with SIGKILL and returns when that process is gone. It waits for there to be one.
func (c *Cluster) Kill(what string, find func() int) {
	c.T.Helper()
	var pid int
	c.Eventually("there is a process: "+what, func() (bool, string) { pid = find(); return pid != 0, "none" })
	c.noteTrees()
	c.Signal(pid, syscall.SIGKILL)
	c.WaitGone(what, pid)
}

// WaitGone waits for a process to end.
func (c *Cluster) WaitGone(what string, pid int) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%s (process %d) is gone", what, pid), func() (bool, string) {
		return !running(pid), strings.Join(cmdline(pid), " ")
	})
}

func readPid(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// alive returns pid if it runs the named program: a pid file may be older than the process that has its number now.
func alive(pid int, program string) int {
	if pid == 0 || !running(pid) {
		return 0
	}
	if argv := cmdline(pid); len(argv) > 0 && filepath.Base(argv[0]) != program {
		return 0
	}
	return pid
}

// running reports whether a process is there and not merely waiting to be collected. While threads of it remain, what
// it held is not released, though its first thread is a zombie.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 18 {
		return false
	}
	dead := fields[0] == "Z" || fields[0] == "X"
	return !dead || fields[17] != "1" && fields[17] != "0"
}

// Runs reports whether a process is there, given its number as a job wrote it down.
func Runs(pid string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	return err == nil && running(n)
}

func cmdline(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

func pids() []int {
	list, _ := os.ReadDir("/proc") // without /proc nothing here works
	var out []int
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
