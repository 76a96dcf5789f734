package step

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core/filename"
	"bireme.dev/bireme/internal/step/intake"
	"bireme.dev/bireme/internal/wire"
)

// stdio is where a step's standard streams go.
type stdio struct {
	s      *step
	spec   *wire.Stdio
	log    string // path of the keeper's own log, in mode log
	tty    bool
	theirs []int    // to be closed once the tasks have them
	task   [][3]int // what each task gets

	streams *streams       // mode stream
	intake  *intake.Intake // mode log; nil: its tasks write the log themselves, as a keeper before this one had it

	mu       sync.Mutex
	out, err logFile // kept open while the step runs: for notices, and to read what it wrote
}

// logFile is an output file as the keeper remembers it. Users can replace what a path leads to, so a file is known by
// its inode.
type logFile struct {
	fd   int // -1: not open
	path string
	dev  uint64
	ino  uint64
	base int64 // where this step's output begins
	file bool  // a regular file, so it can be read back
}

func newStdio(s *step) *stdio {
	return &stdio{s: s, spec: &s.l.Stdio, out: logFile{fd: -1}, err: logFile{fd: -1}}
}

// prepare opens what belongs to the keeper, not to the user.
func (o *stdio) prepare() error {
	n := max(1, len(o.s.l.Program.Tasks))
	o.task = make([][3]int, n)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/null: %w", err)
	}
	o.theirs = append(o.theirs, null)
	for i := range o.task {
		o.task[i] = [3]int{null, null, null}
	}
	switch o.spec.Mode {
	case wire.StdioLog:
		o.log = filepath.Join(o.s.k.logDir(), o.s.key.String())
		f, err := unix.Open(o.log, unix.O_RDWR|unix.O_CREAT|unix.O_APPEND|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return fmt.Errorf("%s: %w", o.log, err)
		}
		o.keep(&o.out, f, o.log)
		o.err = o.out
		owner := -1
		if o.s.k.root {
			owner = int(o.s.l.Identity.UID)
		}
		in, theirs, err := intake.New(&o.s.k.outputs, o.s.l.Stdio.Bounds, owner, f)
		if err != nil {
			return err
		}
		o.intake = in
		o.theirs = append(o.theirs, theirs)
		for i := range o.task {
			o.task[i][1], o.task[i][2] = theirs, theirs
		}
	case wire.StdioStream:
		return o.openStreams(n)
	case wire.StdioFiles, "":
	default:
		return fmt.Errorf("stdio mode %q is not known", o.spec.Mode)
	}
	return nil
}

// open opens the user's files, as the user, in the directory the step runs in.
func (o *stdio) open(dir string) error {
	for i := range o.task {
		rank := i
		if t := o.s.l.Program.Tasks; len(t) > 0 {
			rank = t[i].Rank
		}
		if err := o.openTask(dir, i, rank); err != nil {
			return err
		}
	}
	return nil
}

func (o *stdio) openTask(dir string, i, rank int) error {
	spec := o.spec
	share := func(pattern string, n int) bool { return i > 0 && !filename.PerTask(pattern) && o.task[0][n] >= 0 }
	if p := spec.Stdin; p != "" {
		if share(p, 0) {
			o.task[i][0] = o.task[0][0]
		} else if f, err := o.openFile(dir, p, rank, unix.O_RDONLY, nil); err != nil {
			return err
		} else {
			o.task[i][0] = f
		}
	}
	write := unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	if spec.Append {
		write = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND
	}
	if p := spec.Stdout; p != "" {
		if share(p, 1) {
			o.task[i][1] = o.task[0][1]
		} else {
			f, err := o.openFile(dir, p, rank, write, &o.out)
			if err != nil {
				return err
			}
			o.task[i][1] = f
		}
		if spec.Stderr == "" && o.streams == nil {
			o.task[i][2] = o.task[i][1]
			if i == 0 {
				o.err = o.out
			}
		}
	}
	p := spec.Stderr
	if p == "" {
		return nil
	}
	if p == spec.Stdout { // two openings of one file would write over each other
		o.task[i][2] = o.task[i][1]
		if i == 0 {
			o.err = o.out
		}
		return nil
	}
	if share(p, 2) {
		o.task[i][2] = o.task[0][2]
		return nil
	}
	f, err := o.openFile(dir, p, rank, write, &o.err)
	o.task[i][2] = f
	return err
}

// openFile opens one file of the user. Missing directories of output are made, as Slurm does from 23.02 on.
func (o *stdio) openFile(dir, pattern string, rank, flags int, kept *logFile) (int, error) {
	path := filename.Expand(pattern, o.spec.Names, rank)
	if path == "" {
		return -1, fmt.Errorf("%q: empty file name", pattern)
	}
	if path[0] != '/' {
		path = filepath.Join(dir, path)
	}
	// Without O_NONBLOCK a named pipe that nobody reads would hold this thread forever.
	flags |= unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK
	f, err := unix.Open(path, flags, 0o666)
	if errors.Is(err, unix.ENOENT) && flags&unix.O_CREAT != 0 && os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		f, err = unix.Open(path, flags, 0o666)
	}
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	_, _ = unix.FcntlInt(uintptr(f), unix.F_SETFL, flags&unix.O_APPEND)
	if kept != nil && kept.fd < 0 {
		o.keep(kept, f, path)
	} else {
		o.theirs = append(o.theirs, f)
	}
	return f, nil
}

// keep remembers an open output file.
func (o *stdio) keep(l *logFile, f int, path string) {
	*l = logFile{fd: f, path: path}
	var st unix.Stat_t
	if unix.Fstat(f, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		l.dev, l.ino, l.base, l.file = st.Dev, st.Ino, st.Size, true
	}
}

func (o *stdio) fds(task int) [3]int { return o.task[task] }

// closeTheirs closes the keeper's copies of what the tasks have got.
func (o *stdio) closeTheirs() {
	for _, f := range o.theirs {
		_ = unix.Close(f)
	}
	o.theirs = nil
}

// notice writes a line of the keeper's own into the step's error output.
func (o *stdio) notice(format string, args ...any) {
	if o == nil || o.spec.NoticePrefix == "" {
		return
	}
	line := o.spec.NoticePrefix + fmt.Sprintf(format, args...) + "\n"
	if o.streams != nil {
		o.streams.notice(line)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err.fd >= 0 && o.err.file { // a full pipe would hold us
		_, _ = unix.Write(o.err.fd, []byte(line))
	}
}

// writeTimeout is how long one piece of what a task finds in its output may wait for a reader.
const writeTimeout = time.Second

// tell writes into a task's output before the task does. That may be a named pipe of the user which nobody reads: there
// is no reason then to end the task, or to hold up the thread that starts everybody's.
func tell(fd int, text string) {
	const atOnce = 4096 // what a pipe with room takes without waiting
	for len(text) > 0 {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, int(writeTimeout/time.Millisecond))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 || p[0].Revents&unix.POLLOUT == 0 {
			return
		}
		if n, err = unix.Write(fd, []byte(text[:min(len(text), atOnce)])); err != nil || n <= 0 {
			return
		}
		text = text[n:]
	}
}

// maxInline is the longest tail that travels with the exit.
const maxInline = 1 << 20

// finish closes the files, notes the size of the output and returns the end of it, if that is short enough.
func (o *stdio) finish(x *wire.Exited) []byte {
	if o == nil {
		return nil
	}
	if o.streams != nil {
		o.streams.finish(o.s)
	}
	o.intake.Finish()
	o.mu.Lock()
	defer o.mu.Unlock()
	var tail []byte
	if o.out.fd >= 0 && o.out.file && (o.s.key.Step == wire.BatchStep || o.log != "") {
		var st unix.Stat_t
		if unix.Fstat(o.out.fd, &st) == nil && st.Size > 0 {
			x.LogSize = st.Size
			x.LogFrom = min(o.out.base, st.Size)
			keep := o.spec.KeepTail
			if keep == 0 {
				keep = maxInline
			}
			if most := o.spec.Bounds.Most; most > 0 && (keep < 0 || keep > most) {
				keep = most
			}
			if keep > 0 && o.log == "" {
				x.LogFrom = max(x.LogFrom, st.Size-keep)
			}
			if n := x.LogSize - x.LogFrom; n > 0 && n <= maxInline {
				tail, _ = o.out.read(x.LogFrom, int(n))
			}
		}
	}
	if o.out.fd >= 0 {
		_ = unix.Close(o.out.fd)
	}
	if o.err.fd >= 0 && o.err.fd != o.out.fd {
		_ = unix.Close(o.err.fd)
	}
	o.out.fd, o.err.fd = -1, -1
	return tail
}

// tail reads again what finish gave.
func (o *stdio) tail(x *wire.Exited) []byte {
	if n := x.LogSize - x.LogFrom; o == nil || n <= 0 || n > maxInline {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b, _ := o.read(&o.out, x.LogFrom, int(x.LogSize-x.LogFrom))
	return b
}

// read returns bytes of one of the files. One that has been closed is opened as the user: what a path leads to by now
// is the user's choice, and root must not open that.
func (o *stdio) read(l *logFile, offset int64, n int) (b []byte, err error) {
	if l.fd >= 0 || o.log != "" {
		return l.read(offset, n)
	}
	k, id := o.s.k, o.s.l.Identity
	groups, err := k.supplementary(id)
	if err != nil {
		return nil, err
	}
	spoilt := k.threads.do(func(th *thread) {
		err = k.asUser(th, id, groups, func() (err error) {
			b, err = l.read(offset, n)
			return err
		})
	})
	return b, errors.Join(err, spoilt)
}

// read returns bytes of the file. It opens it again for reading: by the descriptor while there is one, else by its
// path, and then only if the path still leads to the same file.
func (l *logFile) read(offset int64, n int) ([]byte, error) {
	if !l.file {
		return nil, errors.New("the output is not a regular file")
	}
	path := l.path
	if l.fd >= 0 {
		path = "/proc/self/fd/" + strconv.Itoa(l.fd)
	}
	f, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	file := os.NewFile(uintptr(f), path)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(f, &st); err != nil {
		return nil, err
	}
	if st.Dev != l.dev || st.Ino != l.ino {
		return nil, fmt.Errorf("%s: replaced by another file", l.path)
	}
	n = int(min(int64(n), max(st.Size-offset, 0)))
	b := make([]byte, n)
	got, err := file.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:got], err
}

// size is how long the file is now.
func (l *logFile) size() int64 {
	var st unix.Stat_t
	if l.fd >= 0 && unix.Fstat(l.fd, &st) == nil {
		return st.Size
	}
	if unix.Stat(l.path, &st) == nil && st.Dev == l.dev && st.Ino == l.ino {
		return st.Size
	}
	return 0
}

// forget drops what is kept for a step that has been acknowledged.
func (o *stdio) forget() {
	if o == nil {
		return
	}
	if o.log != "" {
		_ = os.Remove(o.log)
	}
	if o.streams != nil {
		o.streams.drop()
	}
}
