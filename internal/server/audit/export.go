package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
)

// exportWait is how long a receiver may take to connect, or for a message.
const exportWait = 2 * time.Second

// exporter passes rows on, in the order they were written, beside the writer: a receiver that hangs holds up nothing.
type exporter struct {
	rows  chan []*core.AuditEntry
	to    target
	log   *slog.Logger
	stats *Stats
	down  bool // the last attempt failed
	ends  atomic.Bool
}

// target is where rows go. Send returns how many of them are there, and why not all.
type target interface {
	send(rows []*core.AuditEntry) (int, error)
	io.Closer
}

// newExporter reads a setting that config has checked: file:PATH, syslog, syslog:ADDR.
func newExporter(setting string, log *slog.Logger, stats *Stats) (*exporter, error) {
	e := &exporter{rows: make(chan []*core.AuditEntry, 64), log: log, stats: stats}
	kind, rest, _ := strings.Cut(setting, ":")
	switch kind {
	case "file":
		e.to = &file{path: rest}
	case "syslog":
		host, err := os.Hostname()
		if err != nil {
			host = "-"
		}
		e.to = &syslog{addr: rest, host: core.Plain(host, 255)}
	default:
		return nil, fmt.Errorf("audit.export: %q is neither file:PATH nor syslog[:ADDR]", setting)
	}
	return e, nil
}

// start runs the exporter and gives what ends it, after what it holds was sent.
func (e *exporter) start() (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for rows := range e.rows {
			if e.ends.Load() && e.down { // the server does not wait for a receiver that is away
				e.stats.Unsent.Add(int64(len(rows)))
				continue
			}
			e.try(rows)
		}
		if err := e.to.Close(); err != nil {
			e.log.Warn("close the export of the audit log", "err", err)
		}
	}()
	return func() {
		e.ends.Store(true)
		close(e.rows)
		<-done
	}
}

// send hands rows over; when the receiver is too slow for them, they are counted as unsent. The store has them.
func (e *exporter) send(rows []*core.AuditEntry) {
	select {
	case e.rows <- rows:
	default:
		e.stats.Unsent.Add(int64(len(rows)))
	}
}

func (e *exporter) try(rows []*core.AuditEntry) {
	n, err := e.to.send(rows)
	if err != nil { // a receiver that was restarted gets the rest
		rows = rows[n:]
		n, err = e.to.send(rows)
	}
	if err != nil {
		e.stats.Unsent.Add(int64(len(rows) - n))
	}
	if down := err != nil; down != e.down {
		if e.down = down; down {
			e.log.Error("the audit log cannot be exported; the store has it", "err", err)
		} else {
			e.log.Info("the audit log is exported again", "unsent", e.stats.Unsent.Load())
		}
	}
}

// file appends a JSON object a line. A file that was renamed or removed, as by logrotate, is made again.
type file struct {
	path string
	f    *os.File
}

func (o *file) send(rows []*core.AuditEntry) (int, error) {
	if o.f != nil {
		there, err := os.Stat(o.path)
		mine, err2 := o.f.Stat()
		if err != nil || err2 != nil || !os.SameFile(there, mine) {
			if err := o.Close(); err != nil {
				return 0, err
			}
		}
	}
	if o.f == nil {
		// A pipe without a reader would hold up the server's end.
		f, err := os.OpenFile(o.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return 0, err
		}
		o.f = f
	}
	var text []byte
	for _, e := range rows {
		line, err := json.Marshal(e)
		if err != nil {
			return 0, err
		}
		text = append(append(text, line...), '\n')
	}
	// A pipe whose reader does not read would hold up the server's end. Files have no deadline and need none.
	if err := o.f.SetWriteDeadline(time.Now().Add(exportWait)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, err
	}
	before, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	if n, err := o.f.Write(text); err != nil {
		if n > 0 && before.Mode().IsRegular() { // half a line would spoil the next one: a full disk takes all of them or none
			err = errors.Join(err, o.f.Truncate(before.Size()))
		}
		return 0, err
	}
	return len(rows), nil
}

func (o *file) Close() error {
	if o.f == nil {
		return nil
	}
	f := o.f
	o.f = nil
	return f.Close()
}

// syslog sends RFC 5424 messages, facility authpriv, with the entry as JSON.
type syslog struct {
	addr   string // empty: /dev/log; /PATH, udp:HOST:PORT, tcp:HOST:PORT
	host   string
	conn   net.Conn
	stream bool
}

func (s *syslog) dial() error {
	network, addr := "unixgram", "/dev/log"
	switch {
	case strings.HasPrefix(s.addr, "udp:"), strings.HasPrefix(s.addr, "tcp:"):
		network, addr = s.addr[:3], s.addr[4:]
	case s.addr != "":
		addr = s.addr
	}
	conn, err := net.DialTimeout(network, addr, exportWait)
	if err != nil && network == "unixgram" { // some daemons listen for streams
		network = "unix"
		var err2 error
		if conn, err2 = net.DialTimeout(network, addr, exportWait); err2 != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	s.conn, s.stream = conn, network == "tcp" || network == "unix"
	return nil
}

func (s *syslog) send(rows []*core.AuditEntry) (int, error) {
	if s.conn == nil {
		if err := s.dial(); err != nil {
			return 0, err
		}
	}
	for i, e := range rows {
		msg, err := s.message(e)
		if err == nil {
			err = s.conn.SetWriteDeadline(time.Now().Add(exportWait))
		}
		if err == nil {
			_, err = s.conn.Write(msg)
		}
		if err != nil {
			return i, errors.Join(err, s.Close())
		}
	}
	return len(rows), nil
}

// message is an entry as RFC 5424 says: <PRI>1 TIME HOST APP PID MSGID SD MSG. In a stream its length goes before it
// (RFC 6587).
func (s *syslog) message(e *core.AuditEntry) ([]byte, error) {
	const authpriv, warning, notice = 10, 4, 5
	severity := notice
	if e.Answer != core.AuditOK {
		severity = warning
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	msg := fmt.Sprintf("<%d>1 %s %s biremed %d audit - %s", authpriv*8+severity,
		e.At.Go().UTC().Format("2006-01-02T15:04:05.000000Z"), s.host, os.Getpid(), text)
	if s.stream {
		msg = fmt.Sprintf("%d %s", len(msg), msg)
	}
	return []byte(msg), nil
}

func (s *syslog) Close() error {
	if s.conn == nil {
		return nil
	}
	c := s.conn
	s.conn = nil
	return c.Close()
}
