package sshdoor

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
)

// caller is one connection of a known user to a job.
type caller struct {
	d *Door
	*guest
	ctx  context.Context // ends with the connection
	work sync.WaitGroup
	api  *client.Client
	open atomic.Int32 // channels
	// again says that the key may open the job no more.
	again chan struct{}

	mu      sync.Mutex
	way     *dialing // into the job; nil: not needed yet
	forward ssh.Conn // the one that asked last for a port inside the job
}

// serve is one connection's life.
func (d *Door) serve(c net.Conn) {
	var user core.UserName
	defer func() { d.leave(c, user) }()
	defer c.Close()
	conn, channels, requests, g, err := d.handshake(c)
	if err != nil {
		d.known(c, "")
		d.Log.Debug("SSH connection refused", "addr", hostOf(c.RemoteAddr()), "err", err)
		return
	}
	if !d.known(c, g.user) {
		d.audit(g, "", core.Errorf(core.Exhausted, "too many SSH connections (ssh.connections_per_user)").
			Because("limit_connections"))
		_ = conn.Close()
		return
	}
	user = g.user
	d.audit(g, "", nil)
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	transport := &http.Transport{
		DialContext:    func(context.Context, string, string) (net.Conn, error) { return d.Connect(g.user, g.addr) },
		ReadBufferSize: 256 << 10, WriteBufferSize: 64 << 10, DisableCompression: true, MaxIdleConnsPerHost: 4,
	}
	defer transport.CloseIdleConnections()
	api, err := client.New(client.Settings{Servers: []string{"http+insecure://bireme"}, Timeout: lookupTime},
		client.WithTransport(transport))
	if err != nil {
		d.Log.Error("client of the API", "err", err)
		return
	}
	k := &caller{d: d, guest: g, ctx: ctx, api: api, again: make(chan struct{}, 1)}
	d.follow(k)
	defer d.unfollow(k)
	k.work.Go(func() { k.watch(conn) })
	k.work.Go(func() {
		_ = conn.Wait() // however the client went: what it waits for ends
		cancel()
	})
	if d.Hold != nil && d.Hold(g.job) {
		k.work.Go(func() { _, _ = k.dial() }) // why it failed is said to who asks for something
	}
	k.session(conn, channels, requests, true)
	cancel()
	k.closeJob()
	k.work.Wait()
}

// session serves what is asked for on a connection, until it ends. An inner connection, of port 10022, is served the
// same way but leads to no further one.
func (k *caller) session(conn ssh.Conn, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request, outer bool) {
	var all sync.WaitGroup
	all.Go(func() { k.global(conn, requests) })
	for c := range channels {
		if k.open.Add(1) > maxChannels {
			k.open.Add(-1)
			_ = c.Reject(ssh.ResourceShortage, "too many open channels")
			continue
		}
		all.Go(func() {
			defer k.open.Add(-1)
			k.channel(c, outer)
		})
	}
	all.Wait()
	_ = conn.Wait() // however the client went
}

// watch ends a connection whose client does not answer any more, whose key opens the job no more, and one that nobody
// uses of a job that is over.
func (k *caller) watch(conn ssh.Conn) {
	t := time.NewTicker(keepalive)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-k.ctx.Done():
			_ = conn.Close()
			return
		case <-k.again:
			if !k.mayStay() {
				k.end(conn)
				return
			}
			continue
		case <-t.C:
		}
		if n%keyTicks == 0 && !k.mayStay() { // tokens expire without an event
			k.end(conn)
			return
		}
		answered := make(chan error, 1)
		go func() { // ends with the connection
			_, _, err := conn.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		select {
		case err := <-answered:
			if err != nil {
				return
			}
		case <-time.After(2 * keepalive):
			_ = conn.Close()
			return
		case <-k.ctx.Done():
			_ = conn.Close()
			return
		}
		if k.open.Load() == 0 && k.over() {
			_ = conn.Close()
			return
		}
	}
}

// end closes a connection whose key opens the job no more.
func (k *caller) end(conn ssh.Conn) {
	k.d.audit(k.guest, "", core.Errorf(core.Denied, "the key opens the job no more: the connection was ended").
		Because("bad_key"))
	_ = conn.Close()
}

// over reports whether nothing more can happen to the job.
func (k *caller) over() bool {
	ctx, cancel := context.WithTimeout(k.ctx, lookupTime)
	defer cancel()
	j, err := k.d.Job(ctx, k.target.Job)
	return err == nil && (j == nil || j.State.Final())
}

// directTCP is what a client says of a connection that it wants made.
type directTCP struct {
	Host     string
	Port     uint32
	From     string
	FromPort uint32
}

// local reports whether it is a port of the job's own.
func (t *directTCP) local() bool {
	if t.Host == "localhost" {
		return true
	}
	ip := net.ParseIP(t.Host)
	return ip != nil && ip.IsLoopback()
}

// channel serves one channel.
func (k *caller) channel(c ssh.NewChannel, outer bool) {
	switch c.ChannelType() {
	case "direct-tcpip":
		var to directTCP
		if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil {
			_ = c.Reject(ssh.ConnectionFailed, err.Error())
			return
		}
		switch {
		case to.local() && to.Port == attach.LogsPort:
			k.accept(c, k.logs)
			return
		case to.local() && to.Port == attach.SSHPort && outer:
			k.accept(c, k.inner)
			return
		}
	case "session", "direct-streamlocal@openssh.com":
	default:
		_ = c.Reject(ssh.UnknownChannelType, c.ChannelType()+" is not served")
		return
	}
	job, err := k.dial()
	if err != nil {
		k.refuse(c, err)
		return
	}
	relay(c, job.conn)
}

// accept takes a channel that is served here.
func (k *caller) accept(c ssh.NewChannel, serve func(net.Conn)) {
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests) // ends with the channel
	conn := &channelConn{Channel: ch, from: k.addr}
	defer conn.Close()
	serve(conn)
}

// refuse says why the job cannot be reached: to who wants a program in words, for their terminal.
func (k *caller) refuse(c ssh.NewChannel, why error) {
	if c.ChannelType() != "session" {
		_ = c.Reject(ssh.ConnectionFailed, why.Error())
		return
	}
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for r := range requests {
		switch r.Type {
		case "shell", "exec", "subsystem":
			_ = r.Reply(true, nil)
			_, _ = ch.Stderr().Write([]byte("bireme: " + why.Error() + "\r\n"))
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{exitRefused}))
			return
		}
		if r.WantReply {
			_ = r.Reply(true, nil)
		}
	}
}

// exitRefused is the status of a program that could not be started, as of ssh itself.
const exitRefused = 255

// inner serves SSH inside a connection that has been let in: nobody is asked again.
func (k *caller) inner(c net.Conn) {
	cfg := &ssh.ServerConfig{Config: algorithms, ServerVersion: version, NoClientAuth: true}
	cfg.AddHostKey(k.d.HostKey)
	stop := time.AfterFunc(handshakeTime, func() { _ = c.Close() })
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	stop.Stop()
	if err != nil {
		return
	}
	k.session(conn, channels, requests, false)
}

// global answers what concerns a connection as a whole: ports that the job's side is to listen on.
func (k *caller) global(conn ssh.Conn, requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "tcpip-forward", "cancel-tcpip-forward":
			ok, reply := false, []byte(nil)
			k.mu.Lock()
			k.forward = conn
			k.mu.Unlock()
			if job, err := k.dial(); err == nil {
				ok, reply, err = job.conn.SendRequest(r.Type, true, r.Payload)
				ok = ok && err == nil
			}
			if r.WantReply {
				_ = r.Reply(ok, reply)
			}
		default:
			if r.WantReply {
				_ = r.Reply(false, nil) // keepalives want an answer, not a yes
			}
		}
	}
}

// channelConn is a channel as a connection.
type channelConn struct {
	ssh.Channel
	from net.Addr
}

func (c *channelConn) LocalAddr() net.Addr              { return c.from }
func (c *channelConn) RemoteAddr() net.Addr             { return c.from }
func (c *channelConn) SetDeadline(time.Time) error      { return nil }
func (c *channelConn) SetReadDeadline(time.Time) error  { return nil }
func (c *channelConn) SetWriteDeadline(time.Time) error { return nil }
