package launcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// The files of a launch's directory.
const (
	FaultFile = "fault" // why it could not be
	DoingFile = "doing" // what is done at the moment; empty: the job runs
)

// Fetching begins what a launch says while its image comes.
const Fetching = "fetching image "

// initInside is bireme-init, where it is wanted.
const initInside = wire.InitInside

// scriptFD is where the script lies inside.
const scriptFD = 3

// launcher is one step's.
type launcher struct {
	l      *wire.Launch
	c      *wire.Container
	env    []string // the job's
	auth   string   // what a registry wants to know
	script *os.File // nil: none
	path   string   // where what runs inside finds it
	files  []core.Mount
}

// command is what the launcher becomes.
type command struct {
	argv []string
	env  []string
}

// Main becomes the program that makes the container of a launch, which env is the environment of. It returns only why
// that cannot be.
func Main(l *wire.Launch, env []string) error {
	err := become(l, env)
	if dir := l.Container.Run; dir != "" {
		_ = os.WriteFile(filepath.Join(dir, FaultFile), []byte(err.Error()), 0o600) // our error output says it too
	}
	return err
}

func become(l *wire.Launch, env []string) error {
	c := l.Container
	switch {
	case os.Getuid() == 0 && l.Identity.UID != 0:
		return errors.New("the node's step keeper is of an earlier version, and runs no containers without an engine")
	case c.Run == "":
		return errors.New("the node has no folder for it: see its agent's log")
	case c.Gang != nil && c.Gang.Each:
		return fmt.Errorf("this node makes containers by %s: a run on several nodes needs Docker or Podman, or "+
			"sbatch and srun", c.Maker)
	case c.Hold: // steps have containers of their own: nothing is held but the place
		x := &launcher{c: c}
		x.doing("")
		return os.NewSyscallError("pause", unix.Pause())
	}
	make := map[string]func(*launcher) (*command, error){
		wire.MakerApptainer: (*launcher).apptainer, wire.MakerEnroot: (*launcher).enroot, wire.MakerOCI: (*launcher).oci,
	}[c.Maker]
	if make == nil {
		return fmt.Errorf("%q makes no containers", c.Maker)
	}
	x := &launcher{l: l, c: c}
	x.env, x.auth = core.TakeRegistryAuth(env)
	if len(l.Script) > 0 && !c.Own {
		if err := x.keepScript(); err != nil {
			return err
		}
	}
	if err := x.stage(); err != nil {
		return err
	}
	cmd, err := make(x)
	if err != nil {
		return err
	}
	x.doing("")
	if x.script != nil {
		if err := unix.Dup3(int(x.script.Fd()), scriptFD, 0); err != nil { // and it stays open
			return os.NewSyscallError("dup3", err)
		}
	}
	if err := unix.Exec(cmd.argv[0], cmd.argv, cmd.env); err != nil {
		return fmt.Errorf("%s: %w", cmd.argv[0], err)
	}
	return nil
}

// keepScript puts the script where what is inside can read it by a descriptor.
func (x *launcher) keepScript() error {
	fd, err := unix.MemfdCreate("script", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "script")
	if f.Fd() == scriptFD { // dup3 wants another
		if fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, scriptFD+1); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		f = os.NewFile(uintptr(fd), "script")
	}
	if _, err := f.Write(x.l.Script); err != nil {
		return fmt.Errorf("keep the script: %w", err)
	}
	x.script, x.path = f, fmt.Sprintf("/proc/self/fd/%d", scriptFD)
	return nil
}

// inside is what runs in the container; nil: the image's own program.
func (x *launcher) inside() []string {
	switch {
	case x.script != nil:
		return append(append(wire.Interpreter(x.l.Script), x.path), x.c.Args...)
	case x.c.Own && len(x.c.Entry) > 0 && !x.c.Join:
		return append(slices.Clone(x.c.Entry), x.c.Args...)
	case x.c.Own && !x.c.Join:
		return nil
	}
	return x.c.Args
}

// nobody is the uid of users without an account.
const nobody = 65534

// forEngines tells of wishes that only an engine grants.
func (x *launcher) forEngines() error {
	switch {
	case x.l.Identity.UID == nobody:
		return fmt.Errorf("this node makes containers by %s, as the job's user: %s has no account on the cluster's "+
			"machines (unix_name), and all who have none "+
			"would be one user here; it needs Docker or Podman", x.c.Maker, cmp.Or(x.l.Identity.Name, "the user"))
	case x.c.Privileged:
		return fmt.Errorf(
			"this node makes containers by %s, as the job's user: a privileged one needs Docker or Podman", x.c.Maker)
	case x.c.User != "":
		return fmt.Errorf("this node makes containers by %s, as the job's user: another (%s) needs Docker or Podman",
			x.c.Maker, x.c.User)
	}
	return nil
}

// shared are the variables that mean the same inside: not those of the node's own directories, and not those that an
// image sets for its programs, where the image is to win.
func (x *launcher) shared() []string {
	drop := []string{"TMPDIR", "SLURM_TMPDIR", "BIREME_TMPDIR"}
	if x.c.ImageEnv {
		drop = append(drop, "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "HOME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_",
			"LANG", "LC_ALL")
	}
	return slices.DeleteFunc(slices.Clone(x.env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(drop, name) || !variable(name)
	})
}

// variable reports whether a shell could set it: the makers' scripts do.
func variable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// outer is the environment of the maker itself, which may have its helpers beside it.
func (x *launcher) outer(more ...string) []string {
	env := []string{"PATH=" + filepath.Dir(x.c.Program) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, e := range x.env {
		if name, _, _ := strings.Cut(e, "="); name == "HOME" || name == "TMPDIR" || name == "USER" || name == "LOGNAME" {
			env = append(env, e)
		}
	}
	return append(env, more...)
}

// tmp is the job's own directory for what is short-lived; empty: there is none.
func (x *launcher) tmp() string {
	for _, e := range x.env {
		if v, ok := strings.CutPrefix(e, "BIREME_TMPDIR="); ok {
			return v
		}
	}
	return ""
}

// mounts are those of the job that the node has, with what of ours is needed inside.
func (x *launcher) mounts() ([]core.Mount, error) {
	var out []core.Mount
	if len(x.c.Args) > 0 && x.c.Args[0] == initInside { // bireme ssh runs it
		out = append(out, core.Mount{Source: x.c.Init, Target: initInside, ReadOnly: true})
	}
	for _, m := range x.c.Mounts {
		switch _, err := os.Stat(m.Source); {
		case err == nil:
			out = append(out, m)
		case !m.Optional || !os.IsNotExist(err):
			return nil, fmt.Errorf("mount %s, as user %d: %w", m.Source, x.l.Identity.UID, err)
		}
	}
	return append(out, x.files...), nil
}

// doing writes what is done at the moment to where the agent finds it.
func (x *launcher) doing(text string) {
	tmp := filepath.Join(x.c.Run, DoingFile+".new")
	if os.WriteFile(tmp, []byte(text), 0o600) == nil { // nothing depends on it
		_ = os.Rename(tmp, filepath.Join(x.c.Run, DoingFile))
	}
}
