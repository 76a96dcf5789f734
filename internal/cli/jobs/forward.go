package jobs

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
)

// forward is a port of this machine that leads to one of a job.
type forward struct {
	host   string // of this machine, where it listens
	local  int
	remote int
}

func (f forward) String() string {
	return net.JoinHostPort(f.host, strconv.Itoa(f.local)) + " → " + strconv.Itoa(f.remote)
}

// option is the forward as ssh's -L wants it.
func (f forward) option() string { return fmt.Sprintf("%s:%d:localhost:%d", f.host, f.local, f.remote) }

// parsePorts reads the values of -p: PORT, LOCAL:PORT, or *:PORT for any local one.
func parsePorts(list []string) ([]core.Port, error) {
	var out []core.Port
	for _, text := range list {
		local, remote, mapped := strings.Cut(text, ":")
		if !mapped {
			remote = local
		}
		p := core.Port{}
		to, err := portNumber(remote)
		if err == nil && local != "*" {
			p.Local, err = portNumber(local)
		}
		if p.Container = to; err != nil {
			return nil, app.Usagef("-p %s: expected PORT, LOCAL:PORT or *:PORT, each from 1 to 65535", text)
		}
		out = append(out, p)
	}
	return out, nil
}

func portNumber(text string) (int32, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return int32(n), err
}

// chooseForwards decides which ports of this machine lead to those of a job: the ones it declares, changed or added to
// by those that the user names. Each is tried now, so that one in use is told of before anything is begun.
func chooseForwards(declared, named []core.Port, host string) ([]forward, error) {
	ports := append([]core.Port(nil), declared...)
	for _, p := range named {
		at := -1
		for i := range ports {
			if ports[i].Container == p.Container {
				at = i
			}
		}
		if at < 0 {
			ports = append(ports, p)
		} else {
			ports[at] = p
		}
	}
	out := make([]forward, 0, len(ports))
	var held []net.Listener // until all are chosen: none is taken twice
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, p := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(p.Local))))
		if err != nil {
			return nil, core.Errorf(core.Conflict, "port %d of this machine cannot be used (%v); -p '*:%d' takes a free "+
				"one, -p LOCAL:%[3]d another", p.Local, reasonOf(err), p.Container)
		}
		held = append(held, l)
		out = append(out, forward{host, l.Addr().(*net.TCPAddr).Port, int(p.Container)})
	}
	return out, nil
}

// reasonOf is the last of what an error of the network says: "address already in use".
func reasonOf(err error) string {
	text := err.Error()
	return strings.TrimSpace(text[strings.LastIndexByte(text, ':')+1:])
}
