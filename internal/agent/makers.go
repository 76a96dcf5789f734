package agent

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/launcher"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Vendors is the agent's part in containers that no engine makes but a program of the node, as the job's user
// (launcher). Which it is is found again for each launch: it may be installed meanwhile. When it is called: choose
// before a launch goes to the keeper; amend for each end; forget and keep for what is over. A launch's directory is in
// memory, for what is secret may be in it, and belongs to the user: nothing in it is believed.
type makers struct {
	engine string   // as the operator said it: a socket, or a maker by name; empty: what there is
	socket string   // of the engine
	oci    string   // the operator's OCI runtime; empty: what there is
	run    string   // of the launches' directories
	images string   // of the users' images
	dirs   []string // where programs are looked for beside PATH: Debian has some where an agent's may not lead
}

// byName are the programs of images, in the order they are looked for.
var byName = []struct{ program, kind string }{
	{"apptainer", wire.MakerApptainer}, {"singularity", wire.MakerApptainer}, {"enroot", wire.MakerEnroot},
}

// ociRuntimes are those of bundles, runc first: crun 1.8 runs nothing where there are cgroups of both versions.
var ociRuntimes = []string{"runc", "crun"}

// checkEngine says what is wrong with an operator's choice.
func checkEngine(engine string) error {
	if engine == "" || filepath.IsAbs(engine) {
		return nil
	}
	for _, b := range byName {
		if engine == b.program {
			return nil
		}
	}
	return core.Errorf(core.Invalid,
		"engine %q: want the absolute path of an engine's socket, or apptainer, singularity or enroot", engine)
}

func newMakers(opt *Options, socket, node string) *makers {
	run := filepath.Join(opt.Dir, "run")
	if os.Getuid() == 0 {
		run = filepath.Join(memory(), "bireme-containers")
	}
	return &makers{
		engine: opt.Engine, socket: socket, oci: opt.OCIRuntime, run: filepath.Join(run, node),
		images: filepath.Join(opt.Dir, "images"),
		dirs:   []string{"/usr/local/bin/", "/usr/bin/", "/usr/sbin/"},
	}
}

// memory is a directory that lies on no disk: /run, as everywhere, unless this machine has it elsewhere.
func memory() string {
	for _, dir := range []string{"/run", "/dev/shm"} {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC {
			return dir
		}
	}
	return "/run"
}

// ours makes a directory in which nobody else can put anything. Where it lies others may have been before.
func ours(dir string) error {
	if err := os.Mkdir(dir, 0o711); err == nil || !errors.Is(err, os.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o022 != 0 {
		return core.Errorf(core.Denied, "%s is not this agent's folder", dir)
	}
	return nil
}

// close removes the agent's directory when it ends, unless launches continue: theirs are in it.
func (m *makers) close() { _ = os.Remove(m.run) }

// choose says which maker runs a container; an empty kind leaves it to the engine. Images in files are for makers
// alone; those of registries for the engine, where there is one.
func (m *makers) choose(c *wire.Container) (kind, program string) {
	if c.Bundle != "" {
		return wire.MakerOCI, m.ociRuntime()
	}
	for _, b := range byName {
		if m.engine == b.program {
			return b.kind, m.find(b.program)
		}
	}
	file := path.IsAbs(c.Image)
	if !file && (m.engine != "" || isSocket(m.socket)) {
		return "", ""
	}
	order := slices.Clone(byName)
	if strings.HasSuffix(c.Image, ".sqsh") {
		slices.Reverse(order)
	}
	for _, b := range order {
		if p := m.find(b.program); p != "" {
			return b.kind, p
		}
	}
	if file {
		return wire.MakerApptainer, ""
	}
	return "", "" // whose socket is then told not to be there
}

func (m *makers) ociRuntime() string {
	if m.oci != "" {
		return m.find(m.oci)
	}
	for _, name := range ociRuntimes {
		if p := m.find(name); p != "" {
			return p
		}
	}
	return ""
}

// find returns a program's absolute path; empty: there is none.
func (m *makers) find(name string) string {
	for _, dir := range append([]string{""}, m.dirs...) {
		if p, err := exec.LookPath(dir + name); err == nil {
			if p, err = filepath.Abs(p); err == nil {
				return p
			}
		}
		if strings.Contains(name, "/") {
			break
		}
	}
	return ""
}

func isSocket(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&os.ModeSocket != 0
}

// launch makes of a launch one of the maker's program. Limits stay: it is processes.
func (a *Agent) launchByMaker(l *wire.Launch) {
	c, m := l.Container, a.containers.makers
	c.Init, c.Args, c.Caps = beside("bireme-init"), l.Program.Argv, a.containerCaps()
	files, gpus := a.machine.ShownDevices(l)
	c.Devices, c.GPUs = append(files, a.machine.NVIDIAFiles(l)...), gpus
	var err error
	if c.Run, c.Images, err = m.folders(l); err != nil {
		a.log.Error("folder of a container", "job", l.Key.Job, "step", l.Key.Step, "err", err)
	}
	if !c.Join {
		a.containers.expect(l.Key)
	}
	l.Program.Argv, l.Program.LoginEnv, l.Program.PMI = []string{beside("bireme-container")}, false, nil
}

// directories makes the launch's directory and that of its user's images.
func (m *makers) folders(l *wire.Launch) (run, images string, err error) {
	run = m.folder(l.Key)
	images = filepath.Join(m.images, strconv.FormatUint(uint64(l.Identity.UID), 10))
	if err := errors.Join(ours(filepath.Dir(m.run)), ours(m.run), ours(m.images)); err != nil {
		return "", "", err
	}
	for _, dir := range []string{run, images} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", "", err
		}
		if os.Getuid() == 0 {
			if err := os.Lchown(dir, int(l.Identity.UID), int(l.Identity.GID)); err != nil {
				return "", "", err
			}
		}
	}
	return run, images, nil
}

func (m *makers) folder(k wire.Key) string { return filepath.Join(m.run, k.String()) }

// said reads a short file of a launch's directory, which is its user's.
func (m *makers) said(k wire.Key, name string) (string, bool) {
	f, err := os.OpenFile(filepath.Join(m.folder(k), name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	return strings.ToValidUTF8(string(b), "?"), err == nil
}

// made reports whether a launch was a maker's.
func (m *makers) made(k wire.Key) bool {
	_, err := os.Lstat(m.folder(k))
	return err == nil
}

// amend puts into an end why the container could not be made. It reports whether x changed.
func (m *makers) amend(x *wire.Exited) bool {
	text, ok := m.said(x.Key, launcher.FaultFile)
	if !ok || x.Cause != wire.CauseNone {
		return false
	}
	x.ExitCode, x.Signal, x.Cause, x.Message = 0, wire.LaunchFailedSignal, wire.CauseLaunchFailed, text
	return true
}

// forget removes the directory of a launch.
func (m *makers) forget(k wire.Key) error { return os.RemoveAll(m.folder(k)) }

// keep removes the directories of launches that nobody knows.
func (m *makers) keep(alive func(key string) bool) error {
	list, err := os.ReadDir(m.run)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var faults []error
	for _, e := range list {
		if !alive(e.Name()) {
			faults = append(faults, os.RemoveAll(filepath.Join(m.run, e.Name())))
		}
	}
	return errors.Join(append(faults, err)...)
}
