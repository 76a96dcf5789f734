package intake

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/disk"
	"bireme.dev/bireme/internal/wire"
)

// Intake takes the output of a step that is streamed to the server from a pipe into a file of the keeper's. The job
// never has that file itself: what it can make of the node's disk is what the keeper writes, up to the bounds of the
// launch. What is over them is read and dropped, so that the job runs on.
//
// All intakes of a node share one rate, in turns: who prints much is slowed down by the pipe, and who prints little
// waits for one turn of each of the others at most. While only one prints much it has a rate of its own, which is
// higher: what a flood could take of node and server is the shared rate.
type Intake struct {
	host   *Host
	bounds wire.LogBounds
	fd     int      // of the pipe
	pipe   *os.File // the same
	file   int

	turn   sync.Mutex // held from a read of the pipe until it is in the file
	closed bool       // nothing is read any more
	paused bool       // by an upgrade, which has turn
	ended  chan struct{}
	load   load

	mu       sync.Mutex
	taken    int64  // bytes read
	dropping string // the limit because of which output is dropped; empty: it is kept
	unwanted bool   // the server takes no more of it
	freed    int64  // below which the file was given back
	changed  chan struct{}
	partial  time.Duration // boottime of the last piece that was not full; 0: none
}

const (
	intakeTurn = 64 << 10 // read at once
	// drainMost is what is taken at the end of a step from a pipe that somebody else may still write into: more than it
	// holds.
	drainMost = 4 << 20
	// freeStep is how much of a file is given back at once.
	freeStep = 1 << 20
)

// limits by the names of their settings.
const (
	limitJob  = "limits.log_per_job"
	limitDisk = "limits.min_free_disk"
)

// Host is what intakes of a keeper share.
type Host struct {
	Dir  string      // of the files
	Disk *disk.Watch // of that directory
	Log  *slog.Logger
	Go   func(func())    // runs the readers
	Stop <-chan struct{} // closed at the end of all
	Pace Pace
}

// pipeSize lets a task that prints much run on while its keeper is busy.
const pipeSize = 256 << 10

// New makes the pipe of a step's output into file and returns the end that its tasks write to. With owner >= 0 that
// end belongs to a user, so that /dev/stdout can be opened by name.
func New(h *Host, b wire.LogBounds, owner, file int) (in *Intake, theirs int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, fmt.Errorf("pipe: %w", err)
	}
	// A bounded request: a user has only so many pages for pipes.
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, pipeSize)
	if owner >= 0 {
		_ = unix.Fchown(p[1], owner, -1)
	}
	in = &Intake{host: h, bounds: b, fd: p[0], file: file}
	if err := in.start(); err != nil {
		if in.pipe != nil { // it has the descriptor, and would close that number again later
			err = errors.Join(err, in.pipe.Close())
		} else {
			err = errors.Join(err, unix.Close(p[0]))
		}
		return nil, -1, errors.Join(err, unix.Close(p[1]))
	}
	return in, p[1], nil
}

// start begins to read.
func (in *Intake) start() error {
	if err := unix.SetNonblock(in.fd, true); err != nil {
		return err
	}
	in.pipe = os.NewFile(uintptr(in.fd), "output")
	raw, err := in.pipe.SyscallConn()
	if err != nil {
		return err
	}
	in.host.Pace.set(in.bounds.Rate, in.bounds.Alone)
	in.ended = make(chan struct{})
	in.host.Go(func() {
		defer close(in.ended)
		for {
			n, done := 0, false
			err := raw.Read(func(uintptr) bool {
				var wait bool
				n, done, wait = in.once()
				return !wait
			})
			if err != nil || done {
				return
			}
			in.host.Pace.wait(&in.load, int64(n), in.host.Stop)
		}
	})
	return nil
}

// turns are the buffers of those whose turn it is.
var turns = sync.Pool{New: func() any { return new([intakeTurn]byte) }}

// once reads what the pipe has, and puts it where it belongs; wait: there was nothing.
func (in *Intake) once() (n int, done, wait bool) {
	in.turn.Lock()
	defer in.turn.Unlock()
	if in.closed {
		return 0, true, false
	}
	buf := turns.Get().(*[intakeTurn]byte)
	defer turns.Put(buf)
	n, err := unix.Read(in.fd, buf[:])
	switch {
	case errors.Is(err, unix.EINTR):
		return 0, false, false
	case errors.Is(err, unix.EAGAIN):
		return 0, false, true
	case err != nil || n == 0:
		return 0, true, false
	}
	in.put(buf[:n])
	return n, false, false
}

// put keeps output, or drops what is over a bound and says so in the file, once.
func (in *Intake) put(data []byte) {
	b, dir := in.bounds, in.host.Dir
	in.mu.Lock()
	room, why, was := int64(len(data)), "", in.dropping
	if b.Most > 0 && in.taken+room > b.Most {
		room, why = max(0, b.Most-in.taken), limitJob
	}
	in.taken += int64(len(data))
	unwanted := in.unwanted
	in.mu.Unlock()
	if unwanted {
		return
	}
	if room > 0 && in.host.Disk.Low(dir, b.MinFree, room) {
		room, why = 0, limitDisk
	}
	if room > 0 {
		if was != "" {
			in.write([]byte("[bireme: output is kept again from here on (" + was + ")]\n"))
		}
		if err := in.write(data[:room]); err != nil {
			why = limitDisk
			in.host.Log.Warn("output not kept", "err", err)
		}
		was = ""
	}
	if why != "" && why != was {
		in.write([]byte(in.stops(why)))
	}
	in.mu.Lock()
	if in.dropping = why; why == "" && room == 0 {
		in.dropping = was
	}
	if in.changed != nil {
		close(in.changed)
		in.changed = nil
	}
	in.mu.Unlock()
}

// stops is the line that ends what is kept.
func (in *Intake) stops(limit string) string {
	if limit == limitJob {
		return fmt.Sprintf("\n[bireme: the output ends here: this job has written %d bytes, as much as is kept (%s); "+
			"it runs on]\n", in.bounds.Most, limit)
	}
	return fmt.Sprintf("\n[bireme: output is dropped from here on: less than %d bytes of the node's disk are free "+
		"(%s); the job runs on]\n",
		in.bounds.MinFree, limit)
}

func (in *Intake) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(in.file, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Wait returns a channel that is closed when there is more.
func (in *Intake) Wait() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.changed == nil {
		in.changed = make(chan struct{})
	}
	return in.changed
}

// Finish takes what is left in the pipe of a step whose processes are dead, and closes it.
func (in *Intake) Finish() {
	if in == nil {
		return
	}
	in.turn.Lock()
	if !in.closed {
		in.drain()
		in.closed = true
	}
	in.turn.Unlock()
	in.mu.Lock()
	in.file = -1 // it is closed next, and its number may be another's then
	in.mu.Unlock()
	_ = in.pipe.Close()
	<-in.ended
}

// drain reads until nothing is there. in.turn is held.
func (in *Intake) drain() {
	buf := turns.Get().(*[intakeTurn]byte)
	defer turns.Put(buf)
	for left := drainMost; left > 0; {
		n, err := unix.Read(in.fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		in.put(buf[:n])
		left -= n
	}
}

// Free releases the disk space that nobody needs any more: everything below an offset. An offset beyond all output
// means that nobody wants what is to come either. It gives the offset from which on the file is there.
func (in *Intake) Free(below int64) int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.file < 0 {
		return in.freed
	}
	if below >= wire.LogFull {
		in.unwanted = true
		var st unix.Stat_t
		if unix.Fstat(in.file, &st) != nil {
			return in.freed
		}
		below = st.Size
	}
	if n := (below - in.freed) / freeStep * freeStep; n > 0 {
		// A file system that cannot do that keeps all of it: the bounds hold either way.
		if unix.Fallocate(in.file, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, in.freed, n) == nil {
			in.freed += n
		}
	}
	return in.freed
}

// Drops is the limit because of which output is dropped; empty: it is kept.
func (in *Intake) Drops() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.dropping
}

// Saved is an intake at rest.
type Saved struct {
	Pipe     int    `json:"pipe"` // descriptor; -1: the step has ended
	Taken    int64  `json:"taken"`
	Dropping string `json:"dropping,omitempty"`
	Unwanted bool   `json:"unwanted,omitempty"`
	Freed    int64  `json:"freed,omitempty"`
}

// Pause stops the intake between two reads, for a program that takes over; again lets it continue.
func (in *Intake) Pause() *Saved {
	in.turn.Lock()
	in.paused = true
	in.mu.Lock()
	defer in.mu.Unlock()
	s := &Saved{Pipe: in.fd, Taken: in.taken, Dropping: in.dropping, Unwanted: in.unwanted, Freed: in.freed}
	if in.closed {
		s.Pipe = -1
	}
	return s
}

func (in *Intake) Resume() {
	if in.paused {
		in.paused = false
		in.turn.Unlock()
	}
}

// Load takes an intake over.
func (s *Saved) Load(h *Host, b wire.LogBounds, file int) (*Intake, error) {
	in := &Intake{
		host: h, bounds: b, fd: s.Pipe, file: file, taken: s.Taken, dropping: s.Dropping,
		unwanted: s.Unwanted, freed: s.Freed,
	}
	if s.Pipe < 0 {
		in.closed, in.file = true, -1
		return in, nil
	}
	unix.CloseOnExec(s.Pipe)
	if err := in.start(); err != nil {
		return nil, fmt.Errorf("output on descriptor %s: %w", strconv.Itoa(s.Pipe), err)
	}
	return in, nil
}
