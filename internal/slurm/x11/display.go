package x11

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// display is where windows are shown.
type display struct {
	host   string // empty: this machine, by its socket
	number int
	path   string // of the socket, where DISPLAY names it
}

// parseDisplay reads HOST:NUMBER.SCREEN, unix:NUMBER or the path of a socket.
func parseDisplay(text string) (display, error) {
	if text == "" {
		return display{}, errors.New("No DISPLAY variable set, cannot setup x11 forwarding.")
	}
	bad := errors.New("Error parsing DISPLAY environment variable. Cannot use X11 forwarding.")
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return display{}, bad
	}
	number, _, _ := strings.Cut(text[i+1:], ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > 59535 {
		return display{}, bad
	}
	d := display{host: text[:i], number: n}
	switch {
	case strings.HasPrefix(text, "/"):
		d.host, d.path = "", text
		if _, err := os.Stat(d.path); err != nil {
			d.path = text[:i] // its number may be no part of the path
		}
	case d.host == "unix" || strings.HasSuffix(d.host, "/unix"):
		d.host = ""
	}
	return d, nil
}

// socketDir is where X servers of this machine listen.
const socketDir = "/tmp/.X11-unix"

// dial opens a connection to the X server.
func (d display) dial() (net.Conn, error) {
	port := strconv.Itoa(6000 + d.number)
	switch {
	case d.path != "":
		return net.Dial("unix", d.path)
	case d.host != "":
		return net.Dial("tcp", net.JoinHostPort(strings.Trim(d.host, "[]"), port))
	}
	path := filepath.Join(socketDir, "X"+strconv.Itoa(d.number))
	c, err := net.Dial("unix", path)
	if err == nil {
		return c, nil
	}
	if c, err := net.Dial("unix", "@"+path); err == nil {
		return c, nil
	}
	return nil, fmt.Errorf("display %d: %w", d.number, err)
}
