package ssh

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the scripts
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

var (
	//go:embed prelude.sh
	prelude string
	//go:embed probe.sh
	probeScript string
	//go:embed upload.sh
	uploadScript string
	//go:embed start.sh
	startScript string
	//go:embed remove.sh
	removeScript string
	//go:embed log.sh
	logScript string
)

// Facts are what a host tells of itself and of what is on it already.
type Facts struct {
	Arch     string     // as Go names it
	Base     string     // directory of everything
	Free     core.Bytes // in it
	Programs bool       // those asked about are there
	Cert     string     // hash of the node's certificate
	CA       string     // hash of the CA it knows
	Command  string     // hash of the command its agent was started with
	Env      string     // hash of the variables it was started with
	Addrs    []netip.Addr
	Running  bool // its agent is kept going
}

// arches are the machines agents are made for, by the kernel's name for them.
var arches = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// Sum is how files are compared.
func Sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// Probe looks at a host. sum names the programs that are wanted there.
func (h *Host) Probe(ctx context.Context, node core.NodeName, sum string) (*Facts, error) {
	said, err := h.run(ctx, vars(map[string]string{"node": string(node), "sum": sum})+prelude+probeScript, nil)
	if err != nil {
		return nil, err
	}
	f := &Facts{}
	system, machine := "", ""
	for line := range strings.Lines(said) {
		word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "os":
			system = value
		case "arch":
			machine = value
			f.Arch = arches[value]
		case "base":
			f.Base = value
		case "free":
			n, _ := strconv.ParseInt(value, 10, 64) // not told: not known
			f.Free = core.Bytes(n) * 1024
		case "programs":
			f.Programs = true
		case "node.crt":
			f.Cert = value
		case "ca.pem":
			f.CA = value
		case "command":
			f.Command = value
		case "env":
			f.Env = value
		case "addr":
			if ip, err := netip.ParseAddr(value); err == nil {
				f.Addrs = append(f.Addrs, ip)
			}
		case "addr6":
			var b [16]byte
			if n, err := hex.Decode(b[:], []byte(value)); err == nil && n == len(b) {
				f.Addrs = append(f.Addrs, netip.AddrFrom16(b))
			}
		case "running":
			f.Running = true
		}
	}
	if system != "Linux" || f.Arch == "" || f.Base == "" {
		return nil, &core.Error{Code: core.Invalid, Reason: "host_unsuitable", Message: fmt.Sprintf(
			"%s is %s on %s: agents run on Linux on x86_64 or aarch64", h.at, word(system), word(machine))}
	}
	return f, nil
}

func word(s string) string {
	if s == "" {
		return "something unknown"
	}
	return s
}

// Upload brings programs to a host. It is harmless where they are already.
func (h *Host) Upload(ctx context.Context, node core.NodeName, f *Facts, b *Bundle) error {
	if need := b.Size + b.Size/8; f.Free > 0 && f.Free < need {
		return &core.Error{Code: core.Exhausted, Reason: "host_full", Message: fmt.Sprintf(
			"%s: no space for the agent: %s has %d MiB free and %d are needed", h.at, f.Base, f.Free/core.MiB, need/core.MiB)}
	}
	in, err := b.open()
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = h.run(ctx, vars(map[string]string{"node": string(node), "sum": b.Sum})+prelude+uploadScript, in)
	if err != nil && strings.Contains(err.Error(), "No space left") {
		return &core.Error{
			Code: core.Exhausted, Reason: "host_full",
			Message: fmt.Sprintf("%s: no space for the agent in %s", h.at, f.Base),
		}
	}
	return err
}

// Agent says how a node's agent is run.
type Agent struct {
	Node           core.NodeName
	Args           []string // of `biremed agent`, beside those that follow from the rest
	Env            []string // NAME=VALUE
	Key, Cert, CA  []byte   // PEM; an empty Key: what is there stays
	Programs, Base string
}

// Dir is the node's directory.
func (a *Agent) Dir() string { return path.Join(a.Base, string(a.Node)) }

// Socket is where a tunnel to the server ends on the host.
func (a *Agent) Socket() string { return path.Join(a.Dir(), "up", "server.sock") }

// command is what runs the agent.
func (a *Agent) command() []byte {
	words := append([]string{path.Join(a.Base, "bin", a.Programs, "biremed"), "agent", "--replace", "--dir", a.Dir()},
		a.Args...)
	for i, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@") != "" || w == "" {
			words[i] = quote(w)
		}
	}
	from := ""
	if len(a.Env) > 0 {
		from = ". " + path.Join(a.Dir(), "env") + "\n"
	}
	return []byte(from + "exec " + strings.Join(words, " ") + "\n")
}

// env is the file its variables are in; nil: there are none.
func (a *Agent) env() []byte {
	var b []byte
	for _, v := range a.Env {
		name, value, _ := strings.Cut(v, "=")
		b = append(b, "export "+name+"="+quote(value)+"\n"...)
	}
	return b
}

// Same reports whether the agent on a host runs as it should.
func (a *Agent) Same(f *Facts) bool {
	return f.Running && f.Command == Sum(a.command()) && (len(a.Env) == 0 || f.Env == Sum(a.env())) && len(a.Key) == 0
}

const runText = `#!/bin/sh
# Keeps the Bireme agent of this node going. Its server put it here over SSH.
dir=%[1]s
# What the agent writes about jobs is not for every user of the host.
(umask 027; : >>"$dir/agent.log") && chmod o-rwx "$dir/agent.log"
# One at a time: a server that died may have left somebody behind who is about to start another.
exec 9>"$dir/loop.lock"
if command -v flock >/dev/null && ! flock -n 9; then exit 0; fi
echo $$ >"$dir/loop.pid"
child=
trap 'kill "$child" 2>/dev/null; wait "$child"; exit 0' TERM INT
while [ ! -e "$dir/stop" ]; do
	sh "$dir/command" >>"$dir/agent.log" 2>&1 </dev/null 9>&- &
	child=$!
	wait "$child"
	if [ ! -e "$dir/stop" ]; then sleep 1 9>&-; fi
done
`

// The keeper and the jobs must outlive the agent, and make cgroups of their own; no bound on processes or locked memory
// that systemd has for services is meant for them. An agent that dies is started again however often that happens.
const unitText = `[Unit]
Description=Bireme agent of node %[2]s
After=network.target
StartLimitIntervalSec=0

[Service]
ExecStart=/bin/sh %[1]s/command
Restart=always
RestartSec=1
KillMode=process
Delegate=yes
TasksMax=infinity
LimitMEMLOCK=infinity

[Install]
WantedBy=multi-user.target
`

// Start puts what the agent needs in place and starts it, or starts it again. What its keeper holds continues.
func (h *Host) Start(ctx context.Context, a *Agent) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add := func(name string, mode int64, data []byte) {
		if len(data) > 0 {
			_ = w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}) // a buffer takes it
			_, _ = w.Write(data)
		}
	}
	add("ca.pem", 0o644, a.CA)
	add("node.key", 0o600, a.Key)
	if len(a.Key) > 0 {
		add("node.crt", 0o600, a.Cert)
	}
	add("run", 0o644, fmt.Appendf(nil, runText, a.Dir()))
	add("unit", 0o644, fmt.Appendf(nil, unitText, a.Dir(), a.Node))
	add("env", 0o600, a.env())
	add("command", 0o644, a.command())
	if err := w.Close(); err != nil {
		return err
	}
	_, err := h.run(ctx, vars(map[string]string{"node": string(a.Node), "sum": a.Programs})+prelude+startScript, &buf)
	return err
}

// Remove ends a node's agent and all it holds, and removes what was put on the host.
func (h *Host) Remove(ctx context.Context, node core.NodeName) error {
	_, err := h.run(ctx, vars(map[string]string{"node": string(node)})+prelude+removeScript, nil)
	return err
}

// Log is the last that the agent of a node had to say.
func (h *Host) Log(ctx context.Context, node core.NodeName) string {
	said, err := h.run(ctx, vars(map[string]string{"node": string(node)})+prelude+logScript, nil)
	if err != nil {
		return err.Error()
	}
	return lastLine(said)
}
