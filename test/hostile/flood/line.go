package flood

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"bireme.dev/bireme/internal/client"
)

// line is a connection that sends the same request again and again. It costs a fraction of what an http.Client does:
// an attacker with half a machine gets more of it to the server.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

// call sends one request and reads its answer. A connection that the server ended is replaced by the next call.
func (l *line) call(ctx context.Context, a *attack, method, path string, body []byte) {
	status, answer, err := l.try(ctx, a, method, path, body)
	if err == nil {
		a.sent(false)
		a.note(status, answer)
		return
	}
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
	if ctx.Err() == nil {
		a.sent(true)
	}
}

func (l *line) try(ctx context.Context, a *attack, method, path string, body []byte) (int, []byte, error) {
	if l.conn == nil {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", a.socket)
		if err != nil {
			return 0, nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		l.conn, l.in = conn, bufio.NewReader(conn)
	}
	head := fmt.Appendf(nil, "%s /api/v1/%s HTTP/1.1\r\nHost: bireme\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n", method, path, len(body))
	if _, err := l.conn.Write(append(head, body...)); err != nil {
		return 0, nil, err
	}
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.Close {
		err = l.conn.Close()
		l.conn = nil
	}
	return resp.StatusCode, answer, err
}

// encoded is the body of a submission.
func encoded(s *client.Submit) []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a value of this package's own
	}
	return data
}
