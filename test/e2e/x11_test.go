//go:build e2e

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// xClient is an X client of a few lines: it opens the display with the cookie that it finds, or with another, and
// prints the vendor of the server.
const xClient = `
import os, socket, struct, sys
cookie = open(os.environ["XAUTHORITY"], "rb").read()[-16:]
if len(sys.argv) > 1: cookie = b"x" * 16
host, number = os.environ["DISPLAY"].rsplit(":", 1)
s = socket.create_connection((host, 6000 + int(number.split(".")[0])))
name = b"MIT-MAGIC-COOKIE-1"
s.sendall(struct.pack("<BxHHHHxx", 0x6c, 11, 0, len(name), len(cookie)) + name + b"\0\0" + cookie)
print("vendor:", s.makefile("rb").read().decode(), flush=True)
`

// windows: what a task shows comes to the display of the caller, whose cookie stays where it is.
func windows(t *testing.T, c *cluster.Cluster) {
	own := bytes.Repeat([]byte{7}, 16)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // the X server; ends with l
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			hello := make([]byte, 12+20+16)
			if _, err := io.ReadFull(s, hello); err == nil && bytes.HasSuffix(hello, own) {
				_, _ = io.WriteString(s, "a server")
			}
			_ = s.Close()
		}
	}()
	number := l.Addr().(*net.TCPAddr).Port - 6000
	if number < 0 {
		t.Fatalf("port %d is no display's", l.Addr().(*net.TCPAddr).Port)
	}
	// The file of cookies has one entry, for any address.
	file := binary.BigEndian.AppendUint16(nil, 65535)
	for _, text := range []string{"", "", "MIT-MAGIC-COOKIE-1", string(own)} {
		file = append(binary.BigEndian.AppendUint16(file, uint16(len(text))), text...)
	}
	authority := write(t, filepath.Join(c.Work, "authority"), string(file))
	script := write(t, filepath.Join(c.Work, "client.py"), xClient)
	if err := os.Chmod(authority, 0o644); err != nil {
		t.Fatal(err)
	}
	p := c.As(alice).With("DISPLAY=127.0.0.1:"+strconv.Itoa(number), "XAUTHORITY="+authority)
	wantLines(t, p.Try("srun", "-Q", "--x11", "-n1", "python3", script), 0, "vendor: a server")
	wantLines(t, p.Try("srun", "-Q", "--x11", "-n1", "python3", script, "wrong"), 0, "vendor:")
	inside := p.Try("salloc", "-Q", "--x11=last", "-N2", "srun", "-Q", "--relative=1", "-N1", "-n1", "python3", script)
	wantLines(t, inside, 0, "vendor: a server")
	if r := c.As(alice).With("DISPLAY=here").Try("srun", "--x11", "true"); r.Code != 255 ||
		!strings.Contains(r.Err, "Error parsing DISPLAY environment variable. Cannot use X11 forwarding.") {
		t.Errorf("with a display that is none: %v", r)
	}
	r := p.Try("srun", "-Q", "--x11", "-n1", "sh", "-c", "cat $XAUTHORITY; echo $XAUTHORITY")
	if strings.Contains(r.Out, string(own)) {
		t.Errorf("the node has the display's cookie: %s", hex.EncodeToString([]byte(r.Out)))
	}
	i := strings.LastIndex(r.Out, "/tmp/")
	if i < 0 {
		t.Fatalf("no file of cookies: %v", r)
	}
	if _, err := os.Stat(strings.TrimSpace(r.Out[i:])); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", r.Out[i:], err)
	}
}
