package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Ports reaches the ports of replicas. Its fields are set once; the zero values of the others will do.
type Ports struct {
	Node core.NodeName
	Log  *slog.Logger
	// PID is the first process of a launch; 0: there is none.
	PID func(k wire.Key) int
	// Inside is the process that a launch's program is, where its first one only stands in for it.
	Inside func(ctx context.Context, k wire.Key, pid int) (int, error)
	// Upgrade dials a server and turns the connection into one for a service.
	Upgrade func(ctx context.Context, path string) (net.Conn, error)

	conns atomic.Int32
	mu    sync.Mutex
	taken map[int32]wire.Key // ports of the node that replicas without a network of their own have
}

// maxServiceConns bounds the connections to services' replicas on this node.
const maxServiceConns = 8192

// dialReplicaTime is how long the port of a replica may take to answer.
const dialReplicaTime = 5 * time.Second

// Open joins a new connection to a server with one to the port of a replica. Why that cannot be is told to the
// server in its place.
func (a *Ports) Open(ctx context.Context, o wire.OpenService) {
	if a.conns.Add(1) > maxServiceConns {
		a.conns.Add(-1)
		a.refuse(ctx, o, core.Errorf(core.Exhausted, "the node has too many connections to replicas"))
		return
	}
	defer a.conns.Add(-1)
	near, err := a.dial(ctx, o)
	if err != nil {
		a.refuse(ctx, o, err)
		return
	}
	defer near.Close()
	far, err := a.Upgrade(ctx, wire.PathService+o.Token)
	if err != nil {
		a.Log.Debug("connection of a service", "job", o.Key.Job, "err", err)
		return
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
	defer stop()
	done := make(chan struct{})
	go func() { // ends with either connection
		defer close(done)
		_, _ = io.Copy(near, far) // an end is an end, however it came
		_ = near.Close()
	}()
	_, _ = io.Copy(far, near)
	_ = far.Close()
	<-done
}

// refuse tells the server why there is no connection.
func (a *Ports) refuse(ctx context.Context, o wire.OpenService, why error) {
	c, err := a.Upgrade(ctx, wire.PathService+o.Token+"?error="+url.QueryEscape(why.Error()))
	if err == nil {
		_ = c.Close()
	}
}

// dialReplica connects to a port of a launch, in the network that its processes see.
func (a *Ports) dial(ctx context.Context, o wire.OpenService) (net.Conn, error) {
	pid := a.PID(o.Key)
	if pid == 0 {
		return nil, core.Errorf(core.Unavailable, "the replica's program is not started yet")
	}
	ctx, cancel := context.WithTimeout(ctx, dialReplicaTime)
	defer cancel()
	inside, err := a.Inside(ctx, o.Key, pid)
	if err != nil {
		return nil, core.Errorf(core.Unavailable, "the replica's container does not run yet")
	}
	shared, err := sharesNetwork(inside)
	if err != nil {
		return nil, err
	}
	if shared {
		if err := a.mayShare(o, pid, inside); err != nil {
			return nil, err
		}
	}
	conn, err := dialInside(ctx, inside, o.Port)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, core.Errorf(core.Unavailable, "nothing listens on port %d of the replica", o.Port)
	}
	if err != nil {
		return nil, core.Errorf(core.Unavailable, "port %d of the replica cannot be reached: %v", o.Port, err)
	}
	return conn, nil
}

// sharesNetwork reports whether a process has the node's own network.
func sharesNetwork(pid int) (bool, error) {
	theirs, err1 := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
	own, err2 := os.Stat("/proc/self/ns/net")
	if err := errors.Join(err1, err2); err != nil {
		return false, core.Errorf(core.Unavailable, "the replica's program has ended")
	}
	return os.SameFile(theirs, own), nil
}

// mayShare keeps replicas without a network of their own from what is not theirs on the node's: the agent is root, and
// reaches every port. What listens must be the user's whose replica it is, and of two replicas of one user it is the
// first one's, until that has ended.
func (a *Ports) mayShare(o wire.OpenService, pid, inside int) error {
	if inside != pid { // its root is the node's to the kernel's table of listeners
		return core.Errorf(core.Unavailable, "a replica in a container needs a network of its own, not the node's")
	}
	uid, err := uidOf(pid)
	if err != nil {
		return core.Errorf(core.Unavailable, "the replica's program has ended")
	}
	if err := listens(o.Port, uid); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if holder, taken := a.taken[o.Port]; taken && holder != o.Key && a.PID(holder) != 0 {
		return core.Errorf(core.Unavailable, "port %d of node %s is that of job %d: replicas that are processes share the "+
			"ports of their node; containers, or another node, have their own", o.Port, a.Node, holder.Job)
	}
	if a.taken == nil {
		a.taken = map[int32]wire.Key{}
	}
	a.taken[o.Port] = o.Key
	return nil
}

// dialInside connects to a port of the loopback address in the network namespace of a process.
func dialInside(ctx context.Context, pid int, port int32) (net.Conn, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	var d net.Dialer
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	if same, err := sameFile(theirs, own); err != nil || same {
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, "tcp4", address)
	}
	type result struct {
		conn net.Conn
		err  error
	}
	out := make(chan result, 1)
	go func() { // a thread of its own, which ends with it where it cannot be brought back
		runtime.LockOSThread()
		if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			out <- result{err: fmt.Errorf("enter its network: %w", err)}
			return
		}
		// The socket is made by this goroutine: for one address of one kind the dialer starts no others.
		conn, err := d.DialContext(ctx, "tcp4", address)
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		out <- result{conn, err}
	}()
	r := <-out
	return r.conn, r.err
}

func sameFile(a, b *os.File) (bool, error) {
	x, err := a.Stat()
	if err != nil {
		return false, err
	}
	y, err := b.Stat()
	return os.SameFile(x, y), err
}
