package step

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/disk"
	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/files"
	"bireme.dev/bireme/internal/step/intake"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/step/rlimit"
	"bireme.dev/bireme/internal/step/spool"
	"bireme.dev/bireme/internal/step/volumes"
	"bireme.dev/bireme/internal/wire"
)

// Config is what a keeper is told at its start.
type Config struct {
	Dir    string // state: lock, journal, logs; only the keeper's user may enter
	Spool  string // scripts; users must be able to reach it. Empty: Dir/spool
	Socket string // empty: Dir/keeper.sock
	// Cgroup names the keeper's cgroups, below its own or, with a leading slash, from the root. Empty: a name made from
	// Dir; "none": work without; "pidns": without, but with PID namespaces, as where there are no cgroups.
	Cgroup  string
	Program string // version of this binary
	// Unkillable is how long dying processes are waited for where a launch does not say; zero: 60 s.
	Unkillable time.Duration
}

// Keeper is the parent of a node's user processes.
type Keeper struct {
	cfg      Config
	log      *slog.Logger
	root     bool
	uid      uint32
	tree     *cgroup.Tree // nil: no cgroups
	pidns    bool         // each step has a PID namespace
	ownNS    [2]int       // descriptors of the keeper's own, with pidns
	bootID   string
	instance string
	lock     *os.File
	listener *net.UnixListener
	journal  *journal.Journal
	timers   *clock.Timers
	threads  *threads
	accounts account.Book
	files    *files.Records // of runs of processes
	scripts  *spool.Scripts
	tmps     *spool.TempDirs
	volumes  *volumes.Volumes
	outputs  intake.Host // of output that is streamed to the server
	disk     disk.Watch  // of the keeper's directory
	limits   rlimit.Set  // the keeper's own, which children inherit

	conn    atomic.Pointer[session]
	work    sync.WaitGroup // steps, hooks, answers
	serving sync.WaitGroup // sessions
	stop    chan struct{}  // closed by Shutdown
	stopped sync.Once

	mu     sync.Mutex
	steps  map[wire.Key]*step
	jobs   map[wire.JobRef]*job
	reaper reaper
	ending bool // no launches any more
	idleT  *clock.Timer
}

// New takes hold of dir and cleans up after a keeper that died there. There is one keeper per dir at a time.
func New(log *slog.Logger, cfg Config) (*Keeper, error) {
	k := &Keeper{
		cfg: cfg, log: log, uid: uint32(os.Geteuid()), root: os.Geteuid() == 0,
		steps: map[wire.Key]*step{}, jobs: map[wire.JobRef]*job{}, stop: make(chan struct{}),
	}
	k.accounts.Run = k.getent
	if err := k.open(); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *Keeper) open() error {
	var err error
	if k.cfg.Dir, err = filepath.Abs(k.cfg.Dir); err != nil {
		return err
	}
	k.outputs = intake.Host{Dir: k.logDir(), Disk: &k.disk, Log: k.log, Go: k.work.Go, Stop: k.stop}
	if k.cfg.Spool == "" {
		k.cfg.Spool = filepath.Join(k.cfg.Dir, "spool")
	}
	if k.cfg.Socket == "" {
		k.cfg.Socket = filepath.Join(k.cfg.Dir, "keeper.sock")
	}
	if k.cfg.Unkillable == 0 {
		k.cfg.Unkillable = time.Minute
	}
	// Users run their scripts from the spool, so they must be able to pass; what is secret below has a mode of its own.
	for dir, mode := range map[string]os.FileMode{k.cfg.Dir: 0o711, k.cfg.Spool: 0o711, k.logDir(): 0o700} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return fmt.Errorf("make %s: %w", dir, err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			return err
		}
	}
	before, err := inherited()
	if err != nil {
		return err
	}
	if before == nil {
		if k.lock, err = takeLock(filepath.Join(k.cfg.Dir, "keeper.lock")); err != nil {
			return err
		}
	}
	// Orphans of jobs come to us, not to init.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become child subreaper: %w", err)
	}
	k.limits = rlimit.OfChildren()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	k.bootID = strings.TrimSpace(string(boot))
	var id [8]byte
	_, _ = unix.Getrandom(id[:], 0)
	k.instance = hex.EncodeToString(id[:])
	if k.timers, err = clock.NewTimers(); err != nil {
		return err
	}
	k.reaper.init(&k.mu)
	k.threads = newThreads()
	k.files = files.Open(filepath.Join(k.cfg.Dir, "files"), k.asOwner)
	k.scripts = spool.NewScripts(k.cfg.Spool)
	k.tmps = spool.NewTempDirs("."+treeName(k.cfg.Dir), filepath.Join(k.cfg.Dir, "tmp-bases"))
	k.volumes = volumes.Open(filepath.Join(k.cfg.Dir, "volumes"), k.runMount)
	if before != nil {
		return handover{k}.resume(before)
	}
	if err := (recovery{k}).recover(); err != nil {
		return err
	}
	if err := k.openTree(); err != nil {
		return err
	}
	return k.listen()
}

func (k *Keeper) logDir() string   { return filepath.Join(k.cfg.Dir, "logs") }
func (k *Keeper) treeFile() string { return filepath.Join(k.cfg.Dir, "cgroups") }

// detect is a variable for tests of what other machines have.
var detect = cgroup.Detect

// openTree finds out how well processes can be contained here.
func (k *Keeper) openTree() error {
	switch k.cfg.Cgroup {
	case "none":
		return nil
	case "pidns":
		return k.openNamespaces()
	}
	name := k.cfg.Cgroup
	if name == "" {
		name = treeName(k.cfg.Dir)
	}
	layout, err := detect()
	if err != nil {
		return err
	}
	k.tree, err = cgroup.Prepare(layout, name)
	if errors.Is(err, cgroup.ErrNone) {
		k.log.Warn("no cgroups", "err", err)
		return k.openNamespaces()
	}
	if err != nil {
		return err
	}
	return k.tree.Save(k.treeFile())
}

// treeName makes a cgroup name that two keepers of one machine do not share.
func treeName(dir string) string {
	h := uint64(14695981039346656037)
	for i := range len(dir) {
		h = (h ^ uint64(dir[i])) * 1099511628211
	}
	return fmt.Sprintf("bireme-%012x", h>>16)
}

func (k *Keeper) containment() wire.Containment {
	switch {
	case k.pidns:
		return wire.PIDNS
	case k.tree == nil:
		return wire.Weak
	case k.tree.V2():
		return wire.CgroupV2
	default:
		return wire.CgroupV1
	}
}

// takeLock makes sure that there is one keeper here. The kernel drops the lock with the process, however it ends.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another keeper holds %s: %w", path, err)
	}
	return f, nil
}

func (k *Keeper) listen() error {
	// The lock is ours, so a socket that is there is a dead one's.
	if err := os.Remove(k.cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: k.cfg.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	k.listener = l
	return os.Chmod(k.cfg.Socket, 0o600) // who connects before is asked by accept, as everybody is
}

// Run serves agents until ctx ends or one sends Shutdown; then it kills all jobs, cleans and returns.
func (k *Keeper) Run(ctx context.Context) error {
	reaping := make(chan struct{})
	go func() { defer close(reaping); k.reaper.run() }()
	timing := make(chan struct{})
	go func() { defer close(timing); k.timers.Run() }()
	k.serving.Go(k.accept)
	select {
	case <-ctx.Done():
	case <-k.stop:
	}
	_ = k.listener.Close()
	k.killAll()
	k.work.Wait()
	if s := k.conn.Load(); s != nil {
		_ = s.c.Close()
	}
	k.serving.Wait()
	k.reaper.close()
	<-reaping
	k.timers.Close()
	<-timing
	k.threads.close()
	k.purge()
	err := k.clean()
	k.close()
	return err
}

// killAll ends every job and waits for it.
func (k *Keeper) killAll() {
	k.mu.Lock()
	k.ending = true
	var jobs []*job
	for _, j := range k.jobs {
		jobs = append(jobs, j)
	}
	k.mu.Unlock()
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() { _ = j.finish(nil) })
	}
	wg.Wait()
}

// clean removes the cgroups at the very end.
func (k *Keeper) clean() error {
	if k.tree == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.cfg.Unkillable)
	defer cancel()
	dirs := k.tree.Dirs()
	k.tree.Close()
	return errors.Join(cgroup.Clean(ctx, dirs), os.Remove(k.treeFile()))
}

func (k *Keeper) close() {
	if k.pidns {
		closeNamespace(&k.ownNS)
	}
	for _, c := range []io.Closer{closer(k.listener), closer(k.journal), closer(k.lock)} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// closer hides a nil pointer inside an interface.
func closer[T any, P interface {
	*T
	io.Closer
}](p P) io.Closer {
	if p == nil {
		return nil
	}
	return p
}
