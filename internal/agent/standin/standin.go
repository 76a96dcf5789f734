package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// endTimeout is how long an engine may take to tell of a container that ended.
const endTimeout = 20 * time.Second

// standIn is one container's.
type standIn struct {
	l      *wire.Launch
	c      *wire.Container
	key    wire.Key
	folder string
	engine *docker.Client
	env    []string
	auth   *docker.Auth
	image  *docker.Image
	had    map[string][]string // names of the images that the engine had before the last pull, by id
	// fetching is the note of a pull with credentials that is not over; nil: there is none.
	fetching *os.File
	id       string
	shown    []shown

	mu      sync.Mutex
	conn    *wire.PassConn // to the first process inside; nil: not there yet
	joined  map[int]*wire.PassConn
	next    int
	stopped int // the signal that came before there was anybody to hand it to
}

// Main is the life of a launch's stand-in; feed is where that was read. It returns the status to exit with. With host
// it is that of a step's own container, which ends with the step.
func Main(l *wire.Launch, feed *os.File, host bool) (int, error) {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	if l.Container.Step && !host {
		if err := startHost(feed); err != nil {
			return 1, err
		}
	}
	feed.Close()
	if l.Container.Join || l.Container.Step && !host {
		return join(l, signals)
	}
	l.Container.Hold = l.Container.Hold || host
	s := &standIn{
		l: l, c: l.Container, key: l.Key, folder: Folder(l.Container.Dir, l.Key), engine: docker.New(l.Container.Engine),
		joined: map[int]*wire.PassConn{}, next: 1,
	}
	var auth string
	s.env, auth = core.TakeRegistryAuth(l.Environ())
	if auth != "" {
		s.auth = new(docker.Auth)
		if err := json.Unmarshal([]byte(auth), s.auth); err != nil {
			return 1, fmt.Errorf("%s is not what a registry could be told", "registry_auth") // its text is a secret
		}
	}
	end := s.run(signals)
	if l.Container.Gang != nil && end.Cause == wire.CauseLaunchFailed && portTaken(end.Message) {
		end.Cause = wire.CausePortTaken
	}
	if err := end.write(s.folder); err != nil {
		return 1, err
	}
	if end.Signal != 0 {
		return 128 + end.Signal, nil
	}
	return end.ExitCode, nil
}

// failed is an end before the beginning.
func failed(err error) *End {
	return &End{RunEnded: wire.RunEnded{
		Cause: wire.CauseLaunchFailed, Signal: wire.LaunchFailedSignal,
		Message: err.Error(),
	}}
}

// run is the container's life.
func (s *standIn) run(signals <-chan os.Signal) *End {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	inside, outside, err := s.listen()
	if err != nil {
		return failed(err)
	}
	defer inside.Close()
	defer outside.Close()
	go s.handOn(signals, cancel) // until the process ends
	if err := s.start(ctx); err != nil {
		if sig := s.stoppedBy(); sig != 0 {
			return &End{RunEnded: wire.RunEnded{Signal: sig, Message: "ended before its container ran"}}
		}
		return failed(err)
	}
	ended := make(chan ending, 1)
	go func() { // until the container ends, or we do
		code, err := s.engine.Wait(ctx, s.id)
		ended <- ending{code, err}
	}()
	conn, end := s.meet(inside, ended)
	if end != nil {
		return end
	}
	inside.Close() // nobody else is to dial it
	if err := s.tellRun(conn); err != nil {
		return s.died(ctx, ended)
	}
	if len(s.c.Ports) > 0 {
		s.tellPorts(ctx)
	}
	if s.c.Gang == nil || s.c.Hold {
		s.doing("")
	}
	go s.takeJoins(outside)
	for {
		f, err := conn.Next()
		if err != nil {
			return s.died(ctx, ended)
		}
		if end := s.take(f); end != nil {
			s.awaitRemoval(ctx)
			return end
		}
	}
}

// removalTimeout is how long an engine may take to remove a container that has ended before the job's end is told all
// the same. What is left then is the agent's to remove.
const removalTimeout = 5 * time.Second

// awaitRemoval returns when the engine has removed the container: whoever hears that the job has ended finds nothing of
// it.
func (s *standIn) awaitRemoval(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	_ = s.engine.WaitRemoved(ctx, s.id) // an engine that is away, or slow, holds up no end
}

// ending is what the engine tells of a container that ended.
type ending struct {
	code int
	err  error
}

// listen opens the two doors: for the container's first process, and for stand-ins of steps that join.
func (s *standIn) listen() (inside, outside *net.UnixListener, err error) {
	in := filepath.Join(s.folder, "in")
	if err := os.RemoveAll(s.folder); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(in, 0o711); err != nil {
		return nil, nil, err
	}
	// Whatever the step's umask is: the user inside goes through the one, nobody else through the other.
	if err := errors.Join(os.Chmod(in, 0o711), os.Chmod(s.folder, 0o700)); err != nil {
		return nil, nil, err
	}
	if inside, err = listenIn(in, "sock"); err != nil {
		return nil, nil, err
	}
	// An engine may map root inside to somebody else; the directory around it keeps others away.
	if err = os.Chmod(filepath.Join(in, "sock"), 0o666); err == nil {
		outside, err = listenIn(s.folder, "join")
	}
	if err != nil {
		inside.Close()
	}
	return inside, outside, err
}

func listenIn(dir, name string) (*net.UnixListener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: instanceOf(d, name), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by a path that will not lead there any more
	return l, nil
}

// start has the container made and started, and the image fetched if the engine lacks it.
func (s *standIn) start(ctx context.Context) error {
	spec, err := s.spec()
	if err != nil {
		return err
	}
	name := Name(string(s.c.Node), s.key.String())
	s.id, err = s.engine.Create(ctx, name, spec)
	fetched := errors.Is(err, os.ErrNotExist)
	if fetched {
		told, end := pullProgress(s.note, s.c.Image)
		err = s.pull(ctx, told)
		if end(); err != nil {
			return err
		}
		s.id, err = s.engine.Create(ctx, name, spec)
	}
	if err != nil {
		return fmt.Errorf("make a container of image %s: %w", s.c.Image, err)
	}
	if err := s.own(ctx, name, spec, fetched); err != nil {
		return errors.Join(err, s.engine.Remove(context.WithoutCancel(ctx), s.id))
	}
	if err := s.engine.Start(ctx, s.id); err != nil {
		return fmt.Errorf("start a container of image %s: %w", s.c.Image, err)
	}
	return nil
}

// own makes sure that the container, which does not run yet, is of an image that its user may have. It is the
// container's own image that is looked at: what a name leads to may change meanwhile.
func (s *standIn) own(ctx context.Context, name string, spec *docker.Spec, fetched bool) error {
	id, err := s.engine.ImageOf(ctx, s.id)
	if err != nil {
		return err
	}
	if !fetched {
		if fetched, err = s.allowed(ctx, id); err != nil {
			return err
		}
		if fetched { // the name may lead to another image now; the container of the old one is in the way and goes
			if s.id, err = s.engine.Create(ctx, name, spec); err != nil {
				return fmt.Errorf("make a container of image %s: %w", s.c.Image, err)
			}
			if id, err = s.engine.ImageOf(ctx, s.id); err != nil {
				return err
			}
		}
	}
	if fetched {
		if err := s.noteAccess(ctx, id); err != nil {
			return err
		}
		if err := s.endPull(); err != nil {
			return err
		}
	}
	s.image, err = s.engine.Image(ctx, id)
	return err
}

// doing writes what is done at the moment to where the agent finds it; empty: the job runs.
func (s *standIn) doing(text string) { s.note("doing", text) }

// note leaves a word for the agent. Nothing depends on it.
func (s *standIn) note(name, text string) {
	tmp := filepath.Join(s.folder, name+".new")
	if os.WriteFile(tmp, []byte(text), 0o600) == nil {
		_ = os.Rename(tmp, filepath.Join(s.folder, name))
	}
}

// fromInside bounds one message of a container's first process, which root inside can be: the stand-in's memory is the
// node's.
const fromInside = 1 << 20

// meet waits for the container's first process.
func (s *standIn) meet(l *net.UnixListener, ended <-chan ending) (*wire.PassConn, *End) {
	type accepted struct {
		c   *net.UnixConn
		err error
	}
	ch := make(chan accepted, 1)
	go func() { // until somebody dials or the listener is closed
		c, err := l.AcceptUnix()
		ch <- accepted{c, err}
	}()
	select {
	case a := <-ch:
		if a.err != nil {
			return nil, failed(a.err)
		}
		pid, err := peerOf(a.c)
		if err == nil {
			err = s.verify(pid)
		}
		if err == nil {
			s.note("pid", strconv.Itoa(int(pid)))
		}
		if err != nil {
			a.c.Close() // which ends the container
			return nil, failed(err)
		}
		conn := wire.NewPassConn(a.c)
		conn.Bound(fromInside)
		return conn, nil
	case e := <-ended:
		err := e.err
		if err == nil {
			err = fmt.Errorf("the container ended with status %d before bireme-init had said a word", e.code)
		}
		return nil, failed(fmt.Errorf("image %s: %w", s.c.Image, err))
	}
}

// peerOf asks the kernel which process dialled.
func peerOf(c *net.UnixConn) (int32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var fault error
	err = raw.Control(func(fd uintptr) { cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, fault); err != nil {
		return 0, err
	}
	return cred.Pid, nil
}

// tellRun says what the container is for.
func (s *standIn) tellRun(conn *wire.PassConn) error {
	c := s.c
	r := wire.Run{
		Argv: c.Args, WorkDir: c.WorkDir, User: c.User, Umask: s.l.Program.Umask, TTY: s.l.Stdio.PTY,
		ImageEnv: c.ImageEnv, ScriptLen: len(s.l.Script),
		FilesLen: len(s.l.Files), Terminal: c.Terminal,
	}
	r.Hold, r.RLimits = c.Hold, c.Limits.RLimits
	if c.Gang != nil {
		g := *c.Gang
		g.Bridge, r.Gang = !c.Host, &g
	}
	if c.User == "" {
		r.User = s.image.Config.User
	}
	if c.Submitter {
		uid := s.l.Identity.UID
		r.UID, r.GID, r.Groups = &uid, s.l.Identity.GID, s.l.Identity.Groups
	}
	script := s.l.Script
	if c.Own {
		script, r.ScriptLen = nil, 0
		r.Argv = append(append([]string{}, s.image.Config.Entrypoint...), s.image.Config.Cmd...)
		if len(c.Entry) > 0 {
			r.Argv = append(append([]string{}, c.Entry...), c.Args...)
		}
	}
	err := conn.Send(wire.TypeRun, r, []*os.File{os.Stdin, os.Stdout, os.Stderr}, script, s.l.Files, wire.JoinEnv(s.env))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	if s.stopped != 0 && err == nil {
		err = conn.Send(wire.TypeRunSignal, wire.RunSignal{Number: s.stopped}, nil)
	}
	return err
}

// take acts on a frame from inside; it gives the end of the first program.
func (s *standIn) take(f wire.Frame) *End {
	var about struct {
		ID int `json:"id"`
	}
	if f.Decode(&about) != nil {
		return nil
	}
	switch {
	case f.Type == wire.TypeRunEnded && about.ID == 0:
		e := &End{Image: s.image.Digest(), ImageID: s.image.ID}
		if f.Decode(&e.RunEnded) != nil {
			return nil
		}
		if e.OOMKills > 0 && e.Cause == wire.CauseNone && (e.ExitCode != 0 || e.Signal != 0) {
			e.Cause = wire.CauseOOM
			e.Message = fmt.Sprintf("out of memory: the kernel killed %d process%s of the container", e.OOMKills,
				map[bool]string{false: "es"}[e.OOMKills == 1])
		}
		return e
	case about.ID != 0:
		s.toJoined(about.ID, f)
	case f.Type == wire.TypeRunStarted:
		s.doing("")
	case f.Type == wire.TypeRunDoing:
		var d wire.RunDoing
		if f.Decode(&d) == nil {
			s.doing(plain(d.Text))
		}
	}
	return nil
}

// plain makes one short line of what comes from inside a container, where anybody may have written it.
func plain(text string) string {
	const most = 300
	text = strings.ToValidUTF8(text[:min(len(text), most)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// died finds out why the first process is gone without a word.
func (s *standIn) died(ctx context.Context, ended <-chan ending) *End {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	e := &End{}
	if s.image != nil {
		e.Image, e.ImageID = s.image.Digest(), s.image.ID
	}
	e.Signal, e.Message = int(unix.SIGKILL), "the container was killed"
	select {
	case x := <-ended:
		if x.err != nil {
			e.Message = "the container is gone: " + x.err.Error()
			break
		}
		if st, err := s.engine.State(ctx, s.id); err == nil && st.OOMKilled {
			e.Cause, e.Message = wire.CauseOOM, "out of memory: the container was killed by the kernel"
		} else if err == nil && st.Error != "" {
			e.Message = "the container was killed: " + st.Error
		}
	case <-ctx.Done():
		e.Message = "the container's first process is gone, and the engine does not say why"
	}
	return e
}

// handOn hands signals on to the container. Before there is one, those that mean an end are the end.
func (s *standIn) handOn(signals <-chan os.Signal, cancel context.CancelFunc) {
	for sig := range signals {
		n := sig.(syscall.Signal)
		switch n {
		case unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE, unix.SIGWINCH:
			continue
		}
		s.mu.Lock()
		conn := s.conn
		if conn == nil && (n == unix.SIGTERM || n == unix.SIGINT || n == unix.SIGHUP || n == unix.SIGQUIT) {
			s.stopped = int(n)
			cancel()
		}
		s.mu.Unlock()
		if conn != nil && !s.c.Step { // each task of a step has a stand-in that is told
			_ = conn.Send(wire.TypeRunSignal, wire.RunSignal{Number: int(n)}, nil) // whoever is gone needs none
		}
	}
}

func (s *standIn) stoppedBy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}
