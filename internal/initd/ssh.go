package initd

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// SSH serves the SSH protocol on one stream until its other end closes it. There is nobody to convince: who has such a
// stream was let in by the cluster, and the stream is that person's own. For the same reason the host's key is made
// again.
func SSH(in io.ReadCloser, out io.WriteCloser) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	// Whoever brings the stream may be hung up on when the client is through; its end says the same. Caught, not
	// ignored: children would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	cfg := &ssh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-bireme"}
	cfg.AddHostKey(signer)
	return serveSSH(&stream{in, out}, cfg, nil)
}

// serveSSH serves one connection; job is what runs in all containers of a job, nil for a connection from outside.
func serveSSH(c net.Conn, cfg *ssh.ServerConfig, job *jobd) error {
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return err
	}
	s := &sshServer{conn: conn, listeners: map[string]net.Listener{}, sessions: map[*session]bool{}, job: job}
	s.work.Go(func() { s.global(requests) })
	for c := range channels {
		s.work.Go(func() { s.channel(c) })
	}
	s.close()
	s.work.Wait()
	_ = conn.Wait() // however the client went
	return nil
}

// stream makes a connection of two files.
type stream struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s *stream) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s *stream) Close() error                { return errors.Join(s.ReadCloser.Close(), s.out.Close()) }

func (s *stream) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "stdio", Net: "unix"} }
func (s *stream) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// sshServer is one connection.
type sshServer struct {
	conn *ssh.ServerConn
	job  *jobd
	work sync.WaitGroup

	mu        sync.Mutex
	listeners map[string]net.Listener // of remote forwards, by address asked for
	sessions  map[*session]bool
	over      bool
}

// close ends what the connection began.
func (s *sshServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, l := range s.listeners {
		l.Close()
	}
	for one := range s.sessions {
		one.hangUp()
	}
}

func (s *sshServer) channel(c ssh.NewChannel) {
	switch c.ChannelType() {
	case "session":
		ch, requests, err := c.Accept()
		if err != nil {
			return
		}
		one := &session{ch: ch, env: os.Environ(), job: s.job, gone: make(chan struct{})}
		s.mu.Lock()
		s.sessions[one] = true
		s.mu.Unlock()
		one.serve(requests)
		s.mu.Lock()
		delete(s.sessions, one)
		s.mu.Unlock()
	case "direct-tcpip":
		var to struct {
			Host     string
			Port     uint32
			From     string
			FromPort uint32
		}
		if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil {
			_ = c.Reject(ssh.ConnectionFailed, err.Error()) // the client is gone, or knows
			return
		}
		s.forward(c, "tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	case "direct-streamlocal@openssh.com":
		var to struct {
			Path     string
			Reserved string
			Zero     uint32
		}
		if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil {
			_ = c.Reject(ssh.ConnectionFailed, err.Error())
			return
		}
		s.forward(c, "unix", to.Path)
	default:
		_ = c.Reject(ssh.UnknownChannelType, c.ChannelType()+" is not served")
	}
}

// forward joins a channel to something inside the container.
func (s *sshServer) forward(c ssh.NewChannel, network, addr string) {
	to, err := net.DialTimeout(network, addr, 10*time.Second)
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := c.Accept()
	if err != nil {
		to.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	joinStreams(ch, to)
}

// halfCloser can say that no more comes.
type halfCloser interface{ CloseWrite() error }

// joinStreams copies both ways until both are through.
func joinStreams(ch ssh.Channel, c net.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(c, ch) // an end is an end, however it came
		if h, ok := c.(halfCloser); ok {
			_ = h.CloseWrite()
		}
	})
	both.Go(func() {
		_, _ = io.Copy(ch, c)
		_ = ch.CloseWrite()
	})
	both.Wait()
	_ = ch.Close()
	_ = c.Close()
}

// forwardAsked is a client's wish to be reached from inside the container.
type forwardAsked struct {
	Host string
	Port uint32
}

// global answers what concerns the connection as a whole.
func (s *sshServer) global(requests <-chan *ssh.Request) {
	for r := range requests {
		var a forwardAsked
		switch r.Type {
		case "tcpip-forward":
			port, err := uint32(0), ssh.Unmarshal(r.Payload, &a)
			if err == nil {
				port, err = s.listen(a)
			}
			if r.WantReply {
				_ = r.Reply(err == nil, ssh.Marshal(struct{ Port uint32 }{port}))
			}
		case "cancel-tcpip-forward":
			if ssh.Unmarshal(r.Payload, &a) == nil {
				s.mu.Lock()
				if l := s.listeners[a.key()]; l != nil {
					l.Close()
					delete(s.listeners, a.key())
				}
				s.mu.Unlock()
			}
			if r.WantReply {
				_ = r.Reply(true, nil)
			}
		default:
			if r.WantReply {
				_ = r.Reply(false, nil) // keepalives want an answer, not a yes
			}
		}
	}
}

func (a forwardAsked) key() string { return fmt.Sprintf("%s:%d", a.Host, a.Port) }

// listen opens a port inside and brings who dials it to the client.
func (s *sshServer) listen(a forwardAsked) (uint32, error) {
	host := a.Host
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(a.Port))))
	if err != nil {
		return 0, err
	}
	port := uint32(l.Addr().(*net.TCPAddr).Port)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		l.Close()
		return 0, net.ErrClosed
	}
	s.listeners[forwardAsked{a.Host, port}.key()] = l
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from := c.RemoteAddr().(*net.TCPAddr)
			s.work.Go(func() {
				ch, requests, err := s.conn.OpenChannel("forwarded-tcpip", ssh.Marshal(struct {
					Host     string
					Port     uint32
					From     string
					FromPort uint32
				}{a.Host, port, from.IP.String(), uint32(from.Port)}))
				if err != nil {
					c.Close()
					return
				}
				go ssh.DiscardRequests(requests)
				joinStreams(ch, c)
			})
		}
	})
	return port, nil
}

// left is a channel that is not closed with its server: the exit status comes after.
type left struct{ io.ReadWriter }

func (left) Close() error { return nil }

// serveSFTP serves files on a channel.
func serveSFTP(ch ssh.Channel) error {
	var opts []sftp.ServerOption
	if home, err := os.UserHomeDir(); err == nil {
		opts = append(opts, sftp.WithServerWorkingDirectory(home))
	}
	srv, err := sftp.NewServer(left{ch}, opts...)
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := srv.Serve(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// shell is the user's own, or the one that every system has.
func shell() string {
	if s := os.Getenv("SHELL"); s != "" {
		if _, err := os.Stat(s); err == nil {
			return s
		}
	}
	if u, err := user.Current(); err == nil {
		if s := loginShell(u.Uid); s != "" {
			return s
		}
	}
	return "/bin/sh"
}
