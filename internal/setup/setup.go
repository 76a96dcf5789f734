package setup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Answers are what a new server needs to be told.
type Answers struct {
	Cluster string // its name, which commands and accounting show
	Store   string // a PostgreSQL URL; empty: SQLite in the server's folder
	Address string // HOST:PORT at which nodes reach this host
	Listen  string // HOST:PORT of the HTTPS API for users' computers; empty: none
	Node    bool   // this host runs jobs as well
}

// AgentPort is the port that agents dial where no other is given.
const AgentPort = 7441

var clusterName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// question is one of the five.
type question struct {
	text  string
	value func(a *Answers) string
	set   func(a *Answers, text string) error
}

var questions = []question{
	{
		text:  "Name of the cluster",
		value: func(a *Answers) string { return a.Cluster },
		set: func(a *Answers, s string) error {
			if !clusterName.MatchString(s) {
				return fmt.Errorf("%q: expected lower-case letters, digits, - and _, at most 40", s)
			}
			a.Cluster = s
			return nil
		},
	},
	{
		text: "Where the state lies: sqlite, or the URL of a PostgreSQL database (postgres://USER@HOST/NAME)",
		value: func(a *Answers) string {
			if a.Store == "" {
				return "sqlite"
			}
			return a.Store
		},
		set: setStore,
	},
	{
		text:  "Address at which nodes reach this host (HOST or HOST:PORT)",
		value: func(a *Answers) string { return a.Address },
		set: func(a *Answers, s string) (err error) {
			a.Address, err = withPort(s, AgentPort)
			return err
		},
	},
	{
		text: "Address of the HTTPS API for users' own computers (HOST:PORT), or none",
		value: func(a *Answers) string {
			if a.Listen == "" {
				return "none"
			}
			return a.Listen
		},
		set: func(a *Answers, s string) error {
			if s == "none" {
				a.Listen = ""
				return nil
			}
			if _, port, err := net.SplitHostPort(s); err != nil || !isPort(port) {
				return fmt.Errorf("%q: expected HOST:PORT, such as 0.0.0.0:7440, or none", s)
			}
			a.Listen = s
			return nil
		},
	},
	{
		text: "Shall this host run jobs as well (yes or no)",
		value: func(a *Answers) string {
			if a.Node {
				return "yes"
			}
			return "no"
		},
		set: func(a *Answers, s string) error {
			switch strings.ToLower(s) {
			case "y", "yes":
				a.Node = true
			case "n", "no":
				a.Node = false
			default:
				return fmt.Errorf("%q: expected yes or no", s)
			}
			return nil
		},
	},
}

func setStore(a *Answers, s string) error {
	if s == "sqlite" {
		a.Store = ""
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || len(u.Path) < 2 {
		return errors.New("expected sqlite, or postgres://USER:PASSWORD@HOST/NAME") // not the text: it may hold a password
	}
	a.Store = s
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// withPort checks an address that others dial, and adds the usual port to a bare host.
func withPort(s string, usual int) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), strconv.Itoa(usual)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", fmt.Errorf("%q: nodes dial this: give a name or an address of this host", s)
	} else if !isPort(port) || ip == nil && !hostName.MatchString(host) {
		return "", fmt.Errorf("%q: expected HOST or HOST:PORT, such as login1.example:%d", s, usual)
	}
	return net.JoinHostPort(host, port), nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252})$`)

// Ask asks what is not given, with a's values as the defaults, until every answer will do. At the end of the input the
// remaining questions take their defaults.
func Ask(in io.Reader, out io.Writer, a *Answers, given []bool) error {
	lines := bufio.NewScanner(in)
	for i, q := range questions {
		if i < len(given) && given[i] {
			continue
		}
		for {
			fmt.Fprintf(out, "%d/%d %s [%s]: ", i+1, len(questions), q.text, q.value(a))
			if !lines.Scan() {
				fmt.Fprintln(out)
				return lines.Err()
			}
			text := strings.TrimSpace(lines.Text())
			if text == "" {
				break
			}
			err := q.set(a, text)
			if err == nil {
				break
			}
			fmt.Fprintln(out, "   ", err)
		}
	}
	return nil
}

// Check returns what is wrong with answers, each with the option that gave it.
func (a *Answers) Check() error {
	var errs []error
	options := []string{"--cluster", "--store", "--address", "--listen", "--node"}
	for i, q := range questions {
		if err := q.set(a, q.value(a)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", options[i], err))
		}
	}
	return errors.Join(errs...)
}

// Settings returns the text of the server's settings.
func (a *Answers) Settings(dir string) (string, error) {
	host, port, err := net.SplitHostPort(a.Address)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"# Settings of this Bireme server. `biremed config check` checks them, `biremed config show` lists all.\n",
	)
	fmt.Fprintf(&b, "cluster: %s\ndir: %s\nserver:\n", a.Cluster, strconv.Quote(dir))
	if a.Store != "" {
		fmt.Fprintf(&b, "  store: %s\n", strconv.Quote(a.Store))
	}
	listen := a.Listen
	if listen == "" {
		b.WriteString("  listen: \"\" # the HTTPS API for users' computers, such as 0.0.0.0:7440\n")
	} else {
		fmt.Fprintf(&b, "  listen: %s\n", strconv.Quote(listen))
	}
	fmt.Fprintf(&b, "  agent_listen: %s\n", strconv.Quote(net.JoinHostPort("0.0.0.0", port)))
	fmt.Fprintf(&b, "  names: [%s] # in the server's certificate\n", strconv.Quote(host))
	fmt.Fprintf(&b, "  advertise: [%s] # what nodes dial\n", strconv.Quote(a.Address))
	b.WriteString("partitions:\n  - {name: main, nodes: ALL, default: yes}\n")
	return b.String(), nil
}

// AgentEnv returns the text of a node's agent.env; without a token the node has joined already.
func (a *Answers) AgentEnv(token string) string {
	text := fmt.Sprintf("BIREME_AGENT_OPTIONS=--server %s --ca /etc/bireme/ca.pem\n", a.Address)
	if token != "" {
		text += "BIREME_JOIN_TOKEN=" + token + "\n"
	}
	return text
}

// JoinLines returns shell commands that make another host a node.
func (a *Answers) JoinLines(ca []byte, token string) string {
	return fmt.Sprintf(`mkdir -p /etc/bireme && cd /etc/bireme && umask 077
cat >ca.pem <<'X' && chmod 644 ca.pem
%sX
cat >agent.env <<'X'
%sX
systemctl enable --now biremed-agent
`, withNewline(string(ca)), a.AgentEnv(token))
}

func withNewline(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
