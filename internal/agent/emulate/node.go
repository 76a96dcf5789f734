package emulate

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/agent"
	"bireme.dev/bireme/internal/core"
)

// Node is one node of a standalone cluster.
type Node struct {
	Name core.NodeName
	Dir  string // everything of the node
	Addr string // empty: the machine itself, not emulated
}

// Files in a node's directory.
const (
	pidFile   = "agent.pid"
	bootFile  = "bootid"
	hostsFile = "hosts"
)

// Emulated reports whether the node is less than the machine.
func (n Node) Emulated() bool { return n.Addr != "" }

// Keeper says where the node's keeper lives.
func (n Node) Keeper(program string) agent.KeeperSpec {
	return agent.KeeperSpec{
		Program: program, Dir: filepath.Join(n.Dir, "keeper"), Socket: filepath.Join(n.Dir, "keeper.sock"),
		Log: filepath.Join(n.Dir, "keeper.log"),
	}
}

// Addr returns the address of the i-th emulated node, from 1: 127.0.1.1 and on.
func Addr(i int) string {
	i--
	return fmt.Sprintf("127.%d.%d.%d", i/254/255, 1+i/254%255, 1+i%254)
}

// Names makes n names of a prefix and a number, all of one width.
func Names(prefix string, n int) []string {
	width := len(strconv.Itoa(n))
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%0*d", prefix, width, i+1)
	}
	return list
}

// WriteHosts writes the hosts file of the nodes below dir: the machine's own, base, and a line for each node.
func WriteHosts(dir string, base []byte, nodes []Node) (string, error) {
	var b bytes.Buffer
	b.Write(bytes.TrimRight(base, "\n"))
	b.WriteString("\n\n# nodes of the standalone cluster\n")
	for _, n := range nodes {
		if n.Emulated() {
			fmt.Fprintf(&b, "%s\t%s\n", n.Addr, n.Name)
		}
	}
	path := filepath.Join(dir, hostsFile)
	return path, os.WriteFile(path, b.Bytes(), 0o644)
}

// BootID returns the node's boot id: made once, and again when the machine started again or the node was stopped.
func (n Node) BootID() (string, error) {
	host, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	machine := strings.TrimSpace(string(host))
	path := filepath.Join(n.Dir, bootFile)
	b, err := os.ReadFile(path)
	if err == nil {
		if own, of, _ := strings.Cut(strings.TrimSpace(string(b)), " "); own != "" && of == machine {
			return own, nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	own := fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
	return own, os.WriteFile(path, []byte(own+" "+machine+"\n"), 0o644)
}

// forgetBoot makes the next start of the node a new boot.
func (n Node) forgetBoot() error {
	if err := os.Remove(filepath.Join(n.Dir, bootFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Found lists the nodes that have a directory below dir.
func Found(dir string) ([]Node, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, e := range list {
		if e.IsDir() {
			nodes = append(nodes, Node{Name: core.NodeName(e.Name()), Dir: filepath.Join(dir, e.Name())})
		}
	}
	return nodes, nil
}

// Booted reports whether the node has been started and not stopped since.
func (n Node) Booted() bool {
	_, err := os.Stat(filepath.Join(n.Dir, bootFile))
	return err == nil
}

// IsNode reports whether an agent has worked in a directory.
func IsNode(dir string) bool {
	for _, name := range []string{pidFile, "keeper", "keeper.sock"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
