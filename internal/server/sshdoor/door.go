package sshdoor

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
)

// Key is a public key with which a user may connect to a job.
type Key struct {
	User core.UserName
	Key  ssh.PublicKey
}

// Limits bound what callers have of the door.
type Limits struct {
	Connections int // open, of all users
	PerUser     int // open, of one
}

// Config is what a door stands on. All functions are safe for use by several goroutines.
type Config struct {
	HostKey ssh.Signer
	// Job finds a job, live or ended.
	Job func(context.Context, core.JobID) (*core.Job, error)
	// Keys are those that open a job at this moment, of users who may use it.
	Keys func(context.Context, *core.Job) ([]Key, error)
	// Connect opens a connection to the server's HTTP API on which all calls are the user's. The address is the caller's.
	Connect func(user core.UserName, from net.Addr) (net.Conn, error)
	// Hold says of a job that its clients are to be seen from the first moment on, by a step; nil: of none.
	Hold func(*core.Job) bool
	// LogOffset is where the output of an attempt from a time on begins; nil: at the beginning.
	LogOffset func(ctx context.Context, job core.JobID, attempt int32, from time.Time) (int64, error)
	Audit     func(*core.AuditEntry)
	Limits    func() Limits
	Log       *slog.Logger
}

// Bounds of what a caller may do before and after the door knows who calls.
const (
	handshakeTime = 20 * time.Second
	maxAuthTries  = 6
	maxStrangers  = 512 // connections that have shown no key yet, of all addresses
	maxPerAddress = 64  // and of one
	maxChannels   = 256 // open, of one connection
	keepalive     = 15 * time.Second
	keyTicks      = 4 // keepalives between two looks whether the key still opens the job
	lookupTime    = 5 * time.Second
	stepTime      = 30 * time.Second // to make a step
)

// Door takes connections. Make it with New.
type Door struct {
	Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	listener  net.Listener
	conns     map[net.Conn]struct{}
	callers   map[*caller]struct{}
	strangers map[string]int // by address
	unknown   int
	users     map[core.UserName]int
	closed    bool
}

// New makes a door that nobody comes through yet.
func New(c Config) *Door {
	ctx, cancel := context.WithCancel(context.Background())
	return &Door{
		Config: c, ctx: ctx, cancel: cancel, conns: map[net.Conn]struct{}{}, strangers: map[string]int{},
		users: map[core.UserName]int{}, callers: map[*caller]struct{}{},
	}
}

// Serve takes the connections of a listener until Close.
func (d *Door) Serve(l net.Listener) error {
	d.mu.Lock()
	d.listener = l
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return l.Close()
	}
	pause := 5 * time.Millisecond
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // too many open files: those who are here go first
			d.Log.Warn("no SSH connection taken", "err", err)
			select {
			case <-time.After(pause):
			case <-d.ctx.Done():
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		if !d.enter(c) {
			_ = c.Close() // nobody is known to be there who could be told
			continue
		}
		d.work.Go(func() { d.serve(c) })
	}
}

// Close ends the listener and all connections and waits for them.
func (d *Door) Close() {
	d.cancel()
	d.mu.Lock()
	d.closed = true
	if d.listener != nil {
		_ = d.listener.Close()
	}
	for c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.work.Wait()
}

// Recheck has every connection looked at again: its key, or its user's right to the job, may be gone. It does not wait
// for that.
func (d *Door) Recheck() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.callers {
		k.recheck()
	}
}

func (k *caller) recheck() {
	select {
	case k.again <- struct{}{}:
	default: // it will look anyway
	}
}

// follow enters a connection among those that Recheck reaches. What has changed since its key was looked at is seen.
func (d *Door) follow(k *caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.callers[k] = struct{}{}
	k.recheck()
}

func (d *Door) unfollow(k *caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.callers, k)
}

// enter counts a connection of somebody who has not said who they are.
func (d *Door) enter(c net.Conn) bool {
	addr := hostOf(c.RemoteAddr())
	limits := d.Limits()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.conns) >= limits.Connections || d.unknown >= maxStrangers || d.strangers[addr] >= maxPerAddress {
		return false
	}
	d.conns[c] = struct{}{}
	d.strangers[addr]++
	d.unknown++
	return true
}

// known counts a connection as a user's, no longer as a stranger's. It reports whether the user may have one more.
func (d *Door) known(c net.Conn, user core.UserName) bool {
	most := d.Limits().PerUser
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(c)
	if user != "" && d.users[user] >= most {
		return false
	}
	if user != "" {
		d.users[user]++
	}
	return true
}

// forget takes a connection from the count of strangers. d.mu is held.
func (d *Door) forget(c net.Conn) {
	addr := hostOf(c.RemoteAddr())
	d.unknown--
	if d.strangers[addr]--; d.strangers[addr] <= 0 {
		delete(d.strangers, addr)
	}
}

// leave ends what enter and known counted.
func (d *Door) leave(c net.Conn, user core.UserName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	if user == "" {
		return
	}
	if d.users[user]--; d.users[user] <= 0 {
		delete(d.users, user)
	}
}

func hostOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.IP.String()
	}
	return a.String()
}
