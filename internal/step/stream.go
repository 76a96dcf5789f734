package step

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/window"
	"bireme.dev/bireme/internal/wire"
)

// streams are the standard streams of a step that go over the agent's connection. What was read is kept until it is
// acknowledged, at most a window each, so a lost connection loses nothing and a slow reader slows the program down.
type streams struct {
	k   *Keeper
	key wire.Key
	pty *os.File // master of the step's terminal, nil: none

	mu      sync.Mutex
	changed sync.Cond
	outs    []*outStream
	ins     []*inStream
	seq     int64 // srun's last frame of input
	dropped bool
	readers sync.WaitGroup
	writers sync.WaitGroup
}

// outStream is one task's output or error.
type outStream struct {
	task, fd int
	file     *os.File
	// order is held from where the offset of some bytes is taken until they are sent: the agent takes what comes after a
	// gap for the end of what it will get, and drops what comes then.
	order   sync.Mutex
	unacked window.Window
	ended   bool
}

// inStream is one task's input.
type inStream struct {
	task    int
	file    *os.File
	pending []byte
	next    int64 // offset expected from the agent
	written int64
	eof     bool
	broken  bool // the task closed its input: the rest is swallowed
}

// openStreams makes pipes, or a terminal, for the streams that no file was named for.
func (o *stdio) openStreams(tasks int) error {
	st := &streams{k: o.s.k, key: o.s.key}
	st.changed.L = &st.mu
	o.streams = st
	if o.spec.PTY {
		return o.openPTY(st)
	}
	for i := range tasks {
		if o.spec.Stdin == "" {
			f, err := o.pipe(i, 0, true)
			if err != nil {
				return err
			}
			st.ins = append(st.ins, &inStream{task: i, file: f})
		}
		for fd, path := range map[int]string{1: o.spec.Stdout, 2: o.spec.Stderr} {
			if path != "" {
				continue
			}
			f, err := o.pipe(i, fd, false)
			if err != nil {
				return err
			}
			st.outs = append(st.outs, &outStream{task: i, fd: fd, file: f})
		}
	}
	st.start()
	return nil
}

// pipeSize lets a task that prints much run on while its keeper is busy, and fills the frames.
const pipeSize = 256 << 10

// pipe makes a pipe, gives one end to a task and returns the other.
func (o *stdio) pipe(task, fd int, input bool) (*os.File, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	ours, theirs := p[0], p[1]
	if input {
		ours, theirs = theirs, ours
	}
	o.task[task][fd] = theirs
	o.theirs = append(o.theirs, theirs)
	if !input {
		// a bounded wish: a user has only so many pages for pipes
		_, _ = unix.FcntlInt(uintptr(ours), unix.F_SETPIPE_SZ, pipeSize)
	}
	if err := unix.SetNonblock(ours, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(ours), "pipe"), nil
}

// openPTY makes a terminal for the first task; the others get none of it.
func (o *stdio) openPTY(st *streams) error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	raw, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var number uint32
	var fault error
	if err := raw.Control(func(fd uintptr) {
		if fault = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); fault != nil {
			return
		}
		number, fault = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
	}); err != nil || fault != nil {
		return errors.Join(err, fault)
	}
	path := fmt.Sprintf("/dev/pts/%d", number)
	slave, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	o.theirs = append(o.theirs, slave)
	if o.s.k.root {
		if err := unix.Fchown(slave, int(o.s.l.Identity.UID), -1); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	st.pty, o.tty = master, true
	st.resize(o.spec.Rows, o.spec.Cols)
	o.task[0] = [3]int{slave, slave, slave}
	st.outs = append(st.outs, &outStream{task: 0, fd: 1, file: master})
	st.ins = append(st.ins, &inStream{task: 0, file: master})
	st.start()
	return nil
}

func (st *streams) resize(rows, cols uint16) {
	if st.pty == nil || rows == 0 || cols == 0 {
		return
	}
	if raw, err := st.pty.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
	}
}

func (st *streams) start() {
	for _, s := range st.outs {
		st.readers.Go(func() { st.pump(s) })
	}
	for _, s := range st.ins {
		st.writers.Go(func() { st.feed(s) })
	}
}

// pump reads one output and sends it, never more than a window ahead of the acknowledgements.
func (st *streams) pump(s *outStream) {
	for {
		st.mu.Lock()
		for !st.dropped && s.unacked.Len() >= wire.StreamWindow {
			st.changed.Wait()
		}
		buf := s.unacked.Room()
		st.mu.Unlock()
		n, err := s.file.Read(buf)
		s.order.Lock()
		st.mu.Lock()
		dropped := st.dropped
		offset := s.unacked.End()
		if !dropped {
			s.unacked.Add(n)
		}
		s.ended = err != nil // end of file, or EIO from a terminal nobody has open any more
		st.mu.Unlock()
		if !dropped && (n > 0 || err != nil) {
			st.k.send(wire.TypeData, wire.Data{Key: st.key, Task: s.task, FD: s.fd, Offset: offset, EOF: err != nil}, buf[:n])
		}
		s.order.Unlock()
		if err != nil {
			return
		}
	}
}

// notice puts a line of the keeper's own into the error stream of the first task that can still speak. It is not held
// back by a full window: it is short, and there are few.
func (st *streams) notice(line string) {
	for {
		var to *outStream
		st.mu.Lock()
		for _, s := range st.outs {
			if !s.ended && (to == nil || s.task < to.task || s.task == to.task && s.fd == 2) {
				to = s
			}
		}
		dropped := st.dropped
		st.mu.Unlock()
		if to == nil || dropped || st.say(to, line) {
			return
		}
	}
}

// say sends a line on a stream, unless that has ended meanwhile.
func (st *streams) say(to *outStream, line string) bool {
	to.order.Lock()
	defer to.order.Unlock()
	st.mu.Lock()
	if to.ended {
		st.mu.Unlock()
		return false
	}
	offset := to.unacked.End()
	to.unacked.Put([]byte(line))
	st.mu.Unlock()
	st.k.send(wire.TypeData, wire.Data{Key: st.key, Task: to.task, FD: to.fd, Offset: offset}, []byte(line))
	return true
}

// ack lets go of what has been consumed.
func (st *streams) ack(a wire.DataAck) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.outs {
		if s.task == a.Task && s.fd == a.FD {
			s.unacked.Ack(a.Offset)
		}
	}
	st.changed.Broadcast()
}

// resend repeats what a new agent may not have. A broken connection ends its own session.
func (st *streams) resend(c *wire.Conn) {
	type piece struct {
		d wire.Data
		b []byte
	}
	var list []piece
	st.mu.Lock()
	for _, s := range st.outs {
		if s.unacked.Len() > 0 || s.ended {
			d := wire.Data{Key: st.key, Task: s.task, FD: s.fd, Offset: s.unacked.Start(), EOF: s.ended}
			list = append(list, piece{d, s.unacked.Bytes()})
		}
	}
	acks := make([]wire.DataAck, 0, len(st.ins))
	for _, s := range st.ins {
		acks = append(acks, wire.DataAck{Key: st.key, Task: s.task, Offset: s.written})
	}
	st.mu.Unlock()
	for _, p := range list {
		_ = c.Send(wire.TypeData, p.d, p.b)
	}
	for _, a := range acks {
		_ = c.Send(wire.TypeDataAck, a)
	}
}

// taken is how much input has come for each task, and srun's last frame in it.
func (st *streams) taken() (have []int64, seq int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	have = make([]int64, len(st.ins))
	for i, s := range st.ins {
		have[i] = s.next
	}
	return have, st.seq
}

// input takes bytes for the tasks' standard input. The agent keeps to the window, so pending stays small.
func (st *streams) input(d wire.Data, b []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.seq = max(st.seq, d.Seq)
	for _, s := range st.ins {
		if d.Task >= 0 && d.Task != s.task || s.eof {
			continue
		}
		rest := b
		if skip := s.next - d.Offset; skip > 0 { // repeated after a reconnect
			rest = b[min(skip, int64(len(b))):]
		} else if skip < 0 || len(s.pending)+len(b) > 2*wire.StreamWindow {
			continue // a gap, or a sender that ignores the window
		}
		s.pending = append(s.pending, rest...)
		s.next += int64(len(rest))
		s.eof = d.EOF
	}
	st.changed.Broadcast()
}

// feed writes one task's input.
func (st *streams) feed(s *inStream) {
	for {
		st.mu.Lock()
		for len(s.pending) == 0 && !s.eof && !st.dropped {
			st.changed.Wait()
		}
		b := s.pending
		s.pending = nil
		last := s.eof || st.dropped
		broken := s.broken
		st.mu.Unlock()
		if len(b) > 0 && !broken {
			if _, err := s.file.Write(b); err != nil {
				broken = true
			}
		}
		st.mu.Lock()
		s.broken = broken
		s.written += int64(len(b))
		written, more := s.written, len(s.pending) > 0
		st.mu.Unlock()
		if len(b) > 0 {
			st.k.send(wire.TypeDataAck, wire.DataAck{Key: st.key, Task: s.task, Offset: written})
		}
		if last && !more {
			break
		}
	}
	if s.file != st.pty {
		_ = s.file.Close()
	} else {
		_, _ = s.file.Write([]byte{4}) // end of transmission, as typed on a terminal
	}
}

// streamTimeout is how long output is waited for once no process of the step is left, as Slurm's EioTimeout.
const streamTimeout = 60 * time.Second

// finish drains the outputs of a step without processes.
func (st *streams) finish(s *step) {
	late := st.k.timers.At(clock.Now()+streamTimeout, st.drop)
	st.readers.Wait()
	st.k.timers.Cancel(late)
	st.mu.Lock()
	for _, in := range st.ins {
		in.eof = true
	}
	st.changed.Broadcast()
	st.mu.Unlock()
	if st.pty != nil {
		_ = st.pty.Close()
	} else {
		for _, in := range st.ins {
			_ = in.file.Close() // frees a writer whose pipe nobody reads
		}
	}
	st.writers.Wait()
	for _, out := range st.outs {
		if out.file != st.pty {
			_ = out.file.Close()
		}
	}
}

// drop gives up on a reader: output is thrown away from here on.
func (st *streams) drop() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.dropped = true
	for _, s := range st.outs {
		s.unacked.Ack(s.unacked.End())
		_ = s.file.SetReadDeadline(time.Now().Add(time.Second)) // an escaped process may hold the pipe
	}
	st.changed.Broadcast()
}
