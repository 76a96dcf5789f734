package x11

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
)

// Command is the name by which `bireme` is asked for it.
const Command = "x11-forward"

// Main carries X11 of nodes of a job to the display of this process until its standard input ends. Its arguments are
// the job and the numbers of its nodes, "0,3". When all is ready it writes the variables that tasks need, and an empty
// line.
func Main(args []string) int {
	if err := run(args, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: %s JOB NODE[,NODE...]", Command)
	}
	d, err := parseDisplay(os.Getenv("DISPLAY"))
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	real, err := cookie(d, host)
	if err != nil {
		return err
	}
	made := make([]byte, 16)
	_, _ = rand.Read(made)
	var nodes []*tunnel
	defer func() {
		for _, t := range nodes {
			t.close()
		}
	}()
	for text := range strings.SplitSeq(args[1], ",") {
		at, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		t, err := open(args[0], at)
		if err != nil {
			return err
		}
		nodes = append(nodes, t)
	}
	number, listeners, err := listen(nodes)
	if err != nil {
		return err
	}
	path := place()
	e := entry{family: familyWild, number: strconv.Itoa(number), name: cookieName, data: made}
	for _, t := range nodes {
		if err := t.run("umask 077; set -C; cat > "+path, e.append(nil)); err != nil {
			return fmt.Errorf("the cookie on a node: %w", err)
		}
		defer func() { _ = t.run("rm -f "+path, nil) }()
	}
	for _, l := range listeners {
		go serve(l, made, real, d.dial) // ends with its tunnel
	}
	if _, err := fmt.Fprintf(out, "DISPLAY=127.0.0.1:%d.0\nXAUTHORITY=%s\n\n", number, path); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, bufio.NewReader(in)) // whoever started this is gone, or needs it no more
	return nil
}

// maxClients bounds the windows' programs of one node at a time.
const maxClients = 256

func serve(l net.Listener, made, real []byte, dial func() (net.Conn, error)) {
	slots := make(chan struct{}, maxClients)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			_ = relay(c, made, real, dial) // the client sees that it is not let in
		}()
	}
}
