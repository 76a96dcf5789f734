package sshdoor

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// openLog asks for the job's output as dstack 0.22.5 does (golden-dstack 901).
func openLog(t *testing.T, c interface {
	Dial(network, addr string) (net.Conn, error)
}, path string,
) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := c.Dial("tcp", "localhost:10999")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nUpgrade: websocket\r\nHost: localhost:10999\r\n"+
		"Origin: http://localhost:10999\r\nSec-WebSocket-Key: 3Swt1Q/t+ksVOhjECA9TUQ==\r\nSec-WebSocket-Version: 13\r\n"+
		"Connection: Upgrade\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, r, resp
}

// readFrame reads a frame of the server, which is never masked.
func readFrame(t *testing.T, r *bufio.Reader) (first byte, payload []byte) {
	t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		t.Fatal(err)
	}
	n := uint64(head[1])
	switch n {
	case 126:
		var b [2]byte
		_, _ = io.ReadFull(r, b[:])
		n = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, _ = io.ReadFull(r, b[:])
		n = binary.BigEndian.Uint64(b[:])
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		t.Fatal(err)
	}
	return head[0], payload
}

// The output comes in binary frames from its beginning as it is written, and ends with a close frame without a code,
// which the client answers.
func TestOutputByWebsocket(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	more := make(chan string)
	asked := make(chan string, 1)
	b.output = func(w io.Writer, r *http.Request) {
		asked <- r.URL.RawQuery
		for text := range more {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w.(http.ResponseWriter)).Flush()
		}
	}
	c := b.jump("42-a1", b.letIn("ann"))
	conn, r, resp := openLog(t, c, "/logs_ws")
	if resp.StatusCode != http.StatusSwitchingProtocols ||
		resp.Header.Get("Sec-WebSocket-Accept") != "Pv/e0nHQ9PYailb70fWf547AXb0=" ||
		resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Connection") != "Upgrade" {
		t.Fatalf("%+v", resp)
	}
	if q := <-asked; q != "attempt=1&follow=1&offset=0" {
		t.Errorf("asked for %s", q)
	}
	for _, text := range []string{"first line", "\r\ntick 1\r\n", strings.Repeat("x", 300), strings.Repeat("y", 70_000)} {
		more <- text
		got := ""
		for len(got) < len(text) {
			first, payload := readFrame(t, r)
			if first != wsFIN|wsBinary {
				t.Fatalf("a frame that begins with %x", first)
			}
			got += string(payload)
		}
		if got != text {
			t.Errorf("%.20q came as %.20q", text, got)
		}
	}
	ping := []byte{wsFIN | wsPing, wsMask | 2, 1, 2, 3, 4, 'h' ^ 1, 'i' ^ 2}
	if _, err := conn.Write(ping); err != nil {
		t.Fatal(err)
	}
	if first, payload := readFrame(t, r); first != wsFIN|wsPong || string(payload) != "hi" {
		t.Errorf("a ping was answered with %x %q", first, payload)
	}
	close(more)
	if first, payload := readFrame(t, r); first != wsFIN|wsClose || len(payload) != 0 {
		t.Errorf("the end is %x %q", first, payload)
	}
	if _, err := conn.Write([]byte{wsFIN | wsClose, wsMask | 2, 0, 0, 0, 0, 3, 0xe8}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.steps) != 0 {
		t.Error("who reads output made a step in the job")
	}
}

// Output of a job that is over is there too, and from a time on.
func TestOutputFromATimeOn(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	b.change(func() { b.job.State = core.Completed })
	query := make(chan string, 1)
	// The job has two nodes: what is before is read, too, for the mark that says whose output follows.
	b.output = func(w io.Writer, r *http.Request) {
		query <- r.URL.RawQuery
		_, _ = io.WriteString(w, "12345678901234567late\n"+string(ranklog.Mark(1))+"another's\n")
	}
	b.door.LogOffset = func(_ context.Context, id core.JobID, attempt int32, at time.Time) (int64, error) {
		if id != 42 || attempt != 1 || !at.Equal(time.Date(2026, 11, 15, 3, 27, 42, 500_000_000, time.UTC)) {
			t.Errorf("asked for %d.%d from %v", id, attempt, at)
		}
		return 17, nil
	}
	c := b.mustConnect("42", b.letIn("ann"))
	for _, text := range []string{
		"2026-11-15T03%3A27%3A42.500000%2B00%3A00", "2026-11-15T03:27:42.5+00:00", "2026-11-15T03:27:42.5Z",
		"2026-11-15T03:27:42.5", "2026-11-15T04:27:42.5%2B01:00",
	} {
		_, r, resp := openLog(t, c, "/logs_ws?start_time="+text)
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %s", text, resp.Status)
		}
		if got := <-query; got != "attempt=1&follow=1&offset=0" {
			t.Error(got)
		}
		if _, payload := readFrame(t, r); string(payload) != "late\n" {
			t.Errorf("%q", payload)
		}
	}
	for path, want := range map[string]int{
		"/logs_ws?start_time=yesterday": http.StatusBadRequest, "/api/healthcheck": http.StatusNotFound,
	} {
		if _, _, resp := openLog(t, c, path); resp.StatusCode != want {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	conn, err := c.Dial("tcp", "127.0.0.1:10999")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /"+strings.Repeat("x", 2*maxRequest)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, conn); n != 0 || err != nil {
		t.Errorf("a request without end: %d bytes, %v", n, err)
	}
}

// Much output comes whole.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	const size = 200 << 20
	b := newLab(t)
	chunk := []byte(strings.Repeat("0123456789abcde\n", 16<<10))
	want := sha256.New()
	b.output = func(w io.Writer, _ *http.Request) {
		for n := 0; n < size; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				t.Error(err)
			}
			want.Write(chunk)
		}
	}
	begun := time.Now()
	_, r, _ := openLog(t, b.jump("42", b.letIn("ann")), "/logs_ws")
	got, n := sha256.New(), 0
	for {
		first, payload := readFrame(t, r)
		if first == wsFIN|wsClose {
			break
		}
		n += len(payload)
		got.Write(payload)
	}
	if n != size || string(got.Sum(nil)) != string(want.Sum(nil)) {
		t.Errorf("%d of %d bytes came, or others", n, size)
	}
	t.Logf("%.0f MB/s, client and server in one process", float64(size)/1e6/time.Since(begun).Seconds())
}
