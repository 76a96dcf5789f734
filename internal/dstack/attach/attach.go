package attach

import (
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Ports that dstack clients ask for on a job's localhost. Nothing listens on them: the server's SSH listener answers.
const (
	SSHPort  = 10022 // an SSH connection to the job, inside the one to the listener
	LogsPort = 10999 // HTTP with the job's output at LogsPath
)

// LogsPath is where the job's output is followed by websocket.
const LogsPath = "/logs_ws"

// proxySuffix is what clients append to the name of a job when they open a tunnel in the sshproxy form.
const proxySuffix = "_root"

// Target is what a user name at the SSH listener stands for.
type Target struct {
	Job     core.JobID
	Attempt int32 // 0: the present one
	Node    int   // index in the nodes of the job: the job_num of dstack
}

// User is the user name of a target: 42, 42-n1, 42-a2-n1.
func (t Target) User() string {
	text := strconv.FormatInt(int64(t.Job), 10)
	if t.Attempt > 0 {
		text += "-a" + strconv.FormatInt(int64(t.Attempt), 10)
	}
	if t.Node > 0 {
		text += "-n" + strconv.Itoa(t.Node)
	}
	return text
}

// Parse reads a user name.
func Parse(user string) (t Target, ok bool) {
	words := strings.Split(strings.TrimSuffix(user, proxySuffix), "-")
	id, ok := number(words[0], 63)
	if !ok || id == 0 {
		return t, false
	}
	t.Job = core.JobID(id)
	for _, w := range words[1:] {
		n, ok := number(w[min(1, len(w)):], 31)
		switch {
		case ok && w[0] == 'a' && t.Attempt == 0 && t.Node == 0 && n > 0:
			t.Attempt = int32(n)
		case ok && w[0] == 'n' && t.Node == 0 && n > 0:
			t.Node = int(n)
		default:
			return Target{}, false
		}
	}
	return t, t.User() == strings.TrimSuffix(user, proxySuffix)
}

func number(text string, bits int) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, bits)
	return int64(n), err == nil
}

// Listener is the server's SSH listener as clients reach it. Without a Port there is none.
type Listener struct {
	Host string
	Port int
	// Proxy has clients use the sshproxy form: one connection instead of one inside another, to a host whose key they
	// check against their known_hosts. The first connection from a machine asks; where nobody can answer, it fails.
	Proxy bool
}

// Connection has the fields of a job by which clients reach it.
type Connection struct {
	// of job_provisioning_data
	Hostname   string
	Port       int // ssh_port
	Username   string
	Dockerized bool
	// of job_runtime_data; Ports is nil in the sshproxy form
	NetworkMode string
	Ports       map[int]int
	// of job_connection_info; empty unless in the sshproxy form
	ProxyHostname, ProxyUpstreamID string
	ProxyPort                      int
}

// Connection gives the fields for a target.
func (l Listener) Connection(t Target) Connection {
	c := Connection{Hostname: l.Host, Port: l.Port, Username: t.User(), Dockerized: true, NetworkMode: "host"}
	if l.Proxy {
		c.Dockerized = false
		c.ProxyHostname, c.ProxyPort, c.ProxyUpstreamID = l.Host, l.Port, t.User()
		return c
	}
	c.NetworkMode, c.Ports = "bridge", map[int]int{SSHPort: SSHPort, LogsPort: LogsPort}
	return c
}

// Command is attached_ssh_command: what a user types while attached.
func Command(host string) []string { return []string{"ssh", host} }

// Host is the name under which clients put a job into their ssh configuration: the run's for its first job.
func Host(run string, node int) string {
	if node == 0 {
		return run
	}
	return fmt.Sprintf("%s-%d-0", run, node)
}

// ides are the editors of dev environments: their names for users and the beginning of their links.
var ides = map[string]struct{ name, link string }{
	"vscode":   {"VS Code", "vscode://vscode-remote/ssh-remote+"},
	"cursor":   {"Cursor", "cursor://vscode-remote/ssh-remote+"},
	"windsurf": {"Windsurf", "windsurf://vscode-remote/ssh-remote+"},
	"zed":      {"Zed", "zed://ssh/"},
}

// IDEName is the name of an editor for users; empty for one that is not known.
func IDEName(ide string) string { return ides[ide].name }

// IDELink opens a folder of a job in an editor on the user's machine while that is attached; empty for an editor that
// is not known.
func IDELink(ide, host, dir string) string {
	e, ok := ides[ide]
	if !ok {
		return ""
	}
	return e.link + host + "/" + strings.TrimPrefix(dir, "/")
}
