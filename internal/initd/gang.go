package initd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// A job on several nodes has a container on each: a gang. They reach each other by SSH, with keys made of one secret
// that came with the launch. Each runs a server for it beside the job (jobd.go); what OpenSSH and MPI need to use it
// is in memory, below gangDir, and nothing of it on a disk.
//
//	rank 0: bireme-init ── ssh ──► rank 1: bireme-init sshd ─► the job's program there
//	                    ── ssh ──► rank 2: …
//
// The first waits for the others. Where the program runs in each of them (YAML) the first starts it everywhere, copies
// its output, and ends with the first that fails or the last that ends.

// gangDir is a file system in memory that the container was made with.
const gangDir = "/.bireme/job"

// Who knows the secret is of the job: there are no users to tell apart.
func gangKey(seed []byte, what string) ed25519.PrivateKey {
	mac := hmac.New(sha256.New, seed)
	mac.Write([]byte(what))
	return ed25519.NewKeyFromSeed(mac.Sum(nil))
}

func gangSigner(seed []byte, what string) (ssh.Signer, error) {
	return ssh.NewSignerFromKey(gangKey(seed, what))
}

// The two keys: of whoever calls and of whoever is called.
const (
	keyClient = "client"
	keyHost   = "host"
)

// hostAlias is what known_hosts calls all of them: they have one key.
const hostAlias = "bireme-job"

// reach is the address that a peer is dialled at. Nodes of one machine are known by loopback addresses, which mean
// nobody else inside a network of one's own; there the machine is the gateway.
func reach(g *wire.Gang, rank int) string {
	p := g.Peers[rank]
	if ip := net.ParseIP(p.Addr); g.Bridge && rank != g.Rank && ip != nil && ip.IsLoopback() {
		if via := gateway(); via != "" {
			return net.JoinHostPort(via, strconv.Itoa(p.Port))
		}
	}
	return net.JoinHostPort(p.Addr, strconv.Itoa(p.Port))
}

// gateway is where the default route leads; empty: nowhere.
func gateway() string {
	b, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != "00000000" {
			continue
		}
		if v, err := strconv.ParseUint(f[2], 16, 32); err == nil && v != 0 {
			// as the machine's memory has it: little end first
			return net.IPv4(byte(v), byte(v>>8), byte(v>>16), byte(v>>24)).String()
		}
	}
	return ""
}

// dialPeer opens an SSH connection to a container of the job.
func dialPeer(ctx context.Context, g *wire.Gang, rank int) (*ssh.Client, error) {
	signer, err := gangSigner(g.Seed, keyClient)
	if err != nil {
		return nil, err
	}
	host, err := gangSigner(g.Seed, keyHost)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	addr := reach(g, rank)
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // of the handshake; whoever does not answer is not there yet
	conn, channels, requests, err := ssh.NewClientConn(c, addr, &ssh.ClientConfig{
		User: "job", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(host.PublicKey()),
	})
	if err != nil {
		c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return ssh.NewClient(conn, channels, requests), nil
}

// listenGang opens the port that the others dial: on the node's own address where that is a network of the node.
func listenGang(g *wire.Gang) (*net.TCPListener, error) {
	self := g.Peers[g.Rank]
	host := ""
	if !g.Bridge && net.ParseIP(self.Addr) != nil {
		host = self.Addr
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(self.Port)))
	if errors.Is(err, unix.EADDRNOTAVAIL) { // known to others by an address that something before the node translates
		l, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(self.Port)))
	}
	if err != nil {
		return nil, fmt.Errorf("the port by which the containers of the job reach this one, on %s: %w", self.Node, err)
	}
	return l.(*net.TCPListener), nil
}

// gangFiles writes what OpenSSH, MPI and our own ssh look for, as the job's user. It gives the variables that lead
// there.
func gangFiles(g *wire.Gang, id identity) ([]string, error) {
	files := map[string][]byte{}
	var err error
	if files["gang"], err = json.Marshal(g); err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(gangKey(g.Seed, keyClient), "")
	if err != nil {
		return nil, err
	}
	files["key"] = pem.EncodeToMemory(block)
	host, err := gangSigner(g.Seed, keyHost)
	if err != nil {
		return nil, err
	}
	files["known_hosts"] = append([]byte(hostAlias+" "), ssh.MarshalAuthorizedKey(host.PublicKey())...)
	files["config"], files["hostfile"] = gangConfig(g), hostfile(g)
	config := false
	err = asUser(id, func() error {
		for name, data := range files {
			mode := os.FileMode(0o600)
			if name == "hostfile" {
				mode = 0o644
			}
			if err := os.WriteFile(filepath.Join(gangDir, name), data, mode); err != nil {
				return err
			}
		}
		if err := os.Symlink(self, filepath.Join(gangDir, "ssh")); err != nil && !os.IsExist(err) {
			return err
		}
		config = !mounted(id.home) && includeConfig(id.home)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("what the job's containers know of each other: %w", err)
	}
	return gangEnv(config && known(id)), nil
}

// self is this program, as every container has it.
const self = wire.InitInside

// running is the program of this very process. It starts helpers of ours by this name: a mount of the job's may lie
// over any path.
const running = "/proc/self/exe"

// known reports whether the image knows the user by number: OpenSSH serves nobody else.
func known(id identity) bool { return id.name != "" }

// mounted reports whether a directory is not the container's own: what is written there others may see.
func mounted(dir string) bool {
	var a, b unix.Stat_t
	return unix.Stat("/", &a) != nil || unix.Stat(dir, &b) == nil && a.Dev != b.Dev
}

// includeConfig has the user's OpenSSH read the job's hosts. A home that is not there or not writable is no fault: our
// own ssh comes first then.
func includeConfig(home string) bool {
	dir := filepath.Join(home, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false
	}
	path := filepath.Join(dir, "config")
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return false
	}
	line := []byte("Include " + gangDir + "/config\n")
	if bytes.HasPrefix(old, line) {
		return true
	}
	return os.WriteFile(path, append(line, old...), 0o600) == nil
}

// gangConfig names the containers for OpenSSH, each by its node's name and address.
func gangConfig(g *wire.Gang) []byte {
	var b bytes.Buffer
	for rank, p := range g.Peers {
		names := p.Addr
		if string(p.Node) != p.Addr {
			names += " " + string(p.Node)
		}
		host, port, _ := net.SplitHostPort(reach(g, rank)) // made there
		fmt.Fprintf(&b, "Host %s\n    HostName %s\n    Port %s\n    HostKeyAlias %s\n    UserKnownHostsFile %s/known_hosts\n"+
			"    StrictHostKeyChecking yes\n    IdentityFile %s/key\n    IdentitiesOnly yes\n    LogLevel ERROR\n",
			names, host, port, hostAlias, gangDir, gangDir)
	}
	b.WriteString("Host *\n") // what follows is the user's
	return b.Bytes()
}

// hostfile is what MPI reads: the nodes, with their GPUs as slots.
func hostfile(g *wire.Gang) []byte {
	var b bytes.Buffer
	for _, p := range g.Peers {
		b.WriteString(p.Addr)
		if p.Slots > 0 {
			fmt.Fprintf(&b, " slots=%d", p.Slots)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// gangEnv is what programs are told that the job did not say itself. OpenMPI and MPICH would take the nodes' names from
// Slurm's variables and look for its srun, which is not inside.
func gangEnv(openSSH bool) []string {
	env := []string{
		"DSTACK_MPI_HOSTFILE=" + gangDir + "/hostfile",
		"OMPI_MCA_plm=rsh", "OMPI_MCA_plm_rsh_agent=" + gangDir + "/ssh", "OMPI_MCA_ras=^slurm",
		"OMPI_MCA_orte_default_hostfile=" + gangDir + "/hostfile",
		"PRTE_MCA_plm=ssh", "PRTE_MCA_plm_ssh_agent=" + gangDir + "/ssh", "PRTE_MCA_ras=^slurm",
		"PRTE_MCA_prte_default_hostfile=" + gangDir + "/hostfile",
		"HYDRA_LAUNCHER=ssh", "HYDRA_LAUNCHER_EXEC=" + gangDir + "/ssh",
	}
	if openSSH {
		return append(env, "PATH=:"+gangDir) // the image's own ssh, if it has one
	}
	return append(env, "PATH="+gangDir+":")
}

// withGang adds the gang's variables to a program's.
func withGang(env, gang []string) []string {
	for _, e := range gang {
		name, value, _ := strings.Cut(e, "=")
		if name != "PATH" {
			env = fallback(env, name, value)
			continue
		}
		path := valueOf(env, "PATH")
		if path == "" {
			path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
		}
		if strings.HasPrefix(value, ":") {
			path += value
		} else {
			path = value + path
		}
		env = merge(env, []byte("PATH="+path), false)
	}
	return env
}

// peersTimeout is how long the others may take: they may have an image to fetch. One that fails ends the job before.
const peersTimeout = time.Hour

// meetPeers dials all others until each has answered. say is called when it takes a while, with what is waited for, and
// again, loud, when it takes long.
func meetPeers(ctx context.Context, g *wire.Gang, say func(text string, loud bool)) ([]*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceOf(g))
	defer cancel()
	clients := make([]*ssh.Client, len(g.Peers))
	errs := make([]error, len(g.Peers))
	var all sync.WaitGroup
	for rank := range g.Peers {
		if rank != g.Rank {
			all.Go(func() { clients[rank], errs[rank] = meetPeer(ctx, g, rank, say) })
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
		return nil, err
	}
	return clients, nil
}

func patienceOf(g *wire.Gang) time.Duration { return cmp.Or(g.Patience, peersTimeout) }

func meetPeer(ctx context.Context, g *wire.Gang, rank int, say func(text string, loud bool)) (*ssh.Client, error) {
	const quiet, loud = 2 * time.Second, 30 * time.Second
	began, told, cried := time.Now(), false, false
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := dialPeer(ctx, g, rank)
		if err == nil {
			return c, nil
		}
		if waited := time.Since(began); !told && waited > quiet || !cried && waited > loud {
			told, cried = true, waited > loud
			say(fmt.Sprintf("waiting for the container on %s: %v", g.Peers[rank].Node, err), cried)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("the container on %s does not answer; it was waited for %s (timers.container_wait): %w",
				g.Peers[rank].Node, time.Since(began).Round(time.Second), err)
		}
	}
}
