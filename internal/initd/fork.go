package initd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// identity is whom a program runs as.
type identity struct {
	uid, gid uint32
	groups   []uint32
	home     string
	name     string
}

// place is whom and where a program runs, and with which variables.
type place struct {
	id   identity
	vars []string
	dir  string
}

// place finds out where a program is to run.
func (s *server) place(r wire.Run, env []byte) (p place, err error) {
	id, err := whoever(r)
	if err != nil {
		return p, fmt.Errorf("user %q: %w", r.User, err)
	}
	image := s.env
	if r.ID != 0 { // whoever looks in finds the job's own variables
		image = merge(image, s.vars, false)
	}
	vars := merge(image, env, r.ImageEnv)
	vars = fallback(vars, "HOME", id.home)
	if id.name != "" && r.UID == nil {
		vars = fallback(fallback(vars, "USER", id.name), "LOGNAME", id.name)
	}
	vars = withGang(vars, s.gang)
	dir := r.WorkDir
	if dir == "" {
		dir, _ = os.Getwd()
	}
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		dir = filepath.Join(valueOf(vars, "HOME"), dir[1:])
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return p, fmt.Errorf("working directory %s: the container has no such directory", dir)
	}
	return place{id, vars, dir}, nil
}

// fork starts a program in a session of its own. The lock is held, so that its end is not seen before its beginning.
func (s *server) fork(r wire.Run, script, env []byte, files []*os.File) (pid int, fault *wire.RunEnded) {
	failed := func(format string, args ...any) *wire.RunEnded {
		return &wire.RunEnded{
			Cause: wire.CauseLaunchFailed, Signal: wire.LaunchFailedSignal,
			Message: fmt.Sprintf(format, args...),
		}
	}
	p, err := s.place(r, env)
	if err != nil {
		return 0, failed("%v", err)
	}
	list := make([]uintptr, 0, 4)
	for _, f := range files {
		list = append(list, f.Fd())
	}
	argv := r.Argv
	var term *terminal
	if r.Terminal && r.ID == 0 {
		if term, err = openTerminal(p.id); err != nil {
			return 0, failed("a terminal: %v", err)
		}
		list = []uintptr{term.slave.Fd(), term.slave.Fd(), term.slave.Fd()}
	}
	if len(script) > 0 {
		var inFile []byte
		if argv, inFile = commandLine(script, argv, term != nil); inFile != nil {
			f, err := memory(inFile)
			if err != nil {
				if term != nil {
					term.close()
				}
				return 0, failed("%v", err)
			}
			defer f.Close()
			list = append(list, f.Fd())
		}
	}
	if len(argv) == 0 || argv[0] == "" {
		return 0, failed("nothing to run: the image names no program and the job has none")
	}
	if r.Umask != nil {
		defer unix.Umask(unix.Umask(int(*r.Umask & 0o777)))
	}
	path := find(argv[0], p.dir, p.vars)
	if limits := limitArgs(r.RLimits); limits != "" && executable(path, p.dir) {
		argv, path = append([]string{"bireme-init", "limit", limits, path}, argv...), running
	}
	if pid, err = p.fork(path, argv, r.TTY || term != nil, list); err != nil {
		if term != nil {
			term.close()
		}
		return 0, cannotRun(argv[0], path, len(script) > 0, err)
	}
	if term != nil {
		return pid, s.watch(term, pid, files)
	}
	return pid, nil
}

// watch copies what the first program writes on its terminal to the job's output. The lock is held.
func (s *server) watch(t *terminal, pid int, files []*os.File) *wire.RunEnded {
	out, err := dup(files[1:2])
	if err != nil {
		t.close() // which ends the program
		return &wire.RunEnded{
			Cause: wire.CauseLaunchFailed, Signal: wire.LaunchFailedSignal, Message: "output: " + err.Error(),
		}
	}
	s.terminal = t
	var to io.Writer = out[0]
	if s.ranks != nil {
		to = s.ranks.out.Rank(0)
	}
	t.started(pid, to, func() { closeAll(out) })
	return nil
}

// fork starts a program in its place.
func (p *place) fork(path string, argv []string, tty bool, files []uintptr) (int, error) {
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: tty}
	if !p.id.ours() {
		sys.Credential = &syscall.Credential{Uid: p.id.uid, Gid: p.id.gid, Groups: p.id.groups}
	}
	return syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: p.dir, Env: p.vars, Files: files, Sys: sys})
}

// ours reports whether this process is that user already. Then nothing is to be changed, and without rights nothing
// could be: root inside may have none (sbatch --container-image).
func (id identity) ours() bool {
	switch {
	case int(id.uid) != os.Getuid():
		return false
	case id.uid != 0 || id.gid == 0 && len(id.groups) == 0:
		return true
	}
	have, err := os.Getgroups()
	lacks := func(g uint32) bool { return g != id.gid && !slices.Contains(have, int(g)) }
	return err == nil && int(id.gid) == os.Getgid() && !slices.ContainsFunc(id.groups, lacks)
}

// cannotRun says why a program was not executed.
func cannotRun(name, path string, script bool, err error) *wire.RunEnded {
	end := &wire.RunEnded{ExitCode: ExitCannotRun, Cause: wire.CauseExecFailed, Message: fmt.Sprintf("%s: %v", name, err)}
	if errors.Is(err, fs.ErrNotExist) {
		end.ExitCode = ExitNotFound
		if _, there := os.Lstat(path); there == nil {
			end.Message = fmt.Sprintf("%s: the image lacks the program or the loader that it needs", name)
		} else if script {
			end.Message = fmt.Sprintf("the image has no %s, which the commands need; an image without a shell runs "+
				"its own program: leave the commands out", name)
		} else {
			end.Message = fmt.Sprintf("%s: the image has no such program", name)
		}
	}
	return end
}

// memory makes a file of no file system: an image may have no place to write, and a script is nobody else's business.
func memory(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("script", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "script")
	if _, err := f.Write(b); err != nil {
		f.Close()
		return nil, fmt.Errorf("keep the script: %w", err)
	}
	return f, nil
}

// imageEnv is what the image sets, without what the engine adds for the user root.
func imageEnv(env []string) []string {
	return slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "HOME=") })
}

// merge lays the job's variables, NUL-separated, over the image's, or the other way round.
func merge(image []string, job []byte, imageWins bool) []string {
	var over []string
	for e := range bytes.SplitSeq(job, []byte{0}) {
		if len(e) > 0 {
			over = append(over, string(e))
		}
	}
	base := image
	if imageWins {
		base, over = over, image
	}
	out := slices.Clone(base)
	at := make(map[string]int, len(out))
	for i, e := range out {
		name, _, _ := strings.Cut(e, "=")
		at[name] = i
	}
	for _, e := range over {
		name, _, _ := strings.Cut(e, "=")
		if i, ok := at[name]; ok {
			out[i] = e
			continue
		}
		at[name] = len(out)
		out = append(out, e)
	}
	return out
}

func valueOf(env []string, name string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// fallback sets a variable that is not set.
func fallback(env []string, name, value string) []string {
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
		return env
	}
	return append(env, name+"="+value)
}

// find looks for a program as execvp would. What is not found is returned as it is, for exec to fail on.
func find(name, dir string, env []string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, p := range filepath.SplitList(valueOf(env, "PATH")) {
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		full := filepath.Join(p, name)
		if st, err := os.Stat(full); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return full
		}
	}
	return name
}

// whoever finds out whom a program runs as: by number, or by what the image's own files say.
func whoever(r wire.Run) (identity, error) {
	if r.UID != nil {
		id := identity{uid: *r.UID, gid: r.GID, groups: r.Groups, home: "/"}
		if u, err := user.LookupId(strconv.Itoa(int(*r.UID))); err == nil {
			id.home, id.name = u.HomeDir, u.Username
		}
		return id, nil
	}
	name, group, hasGroup := strings.Cut(r.User, ":")
	if name == "" {
		name = "0"
	}
	id := identity{home: "/"}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err == nil {
		id.uid, id.gid, id.home, id.name = number(u.Uid), number(u.Gid), u.HomeDir, u.Username
		if list, err := u.GroupIds(); err == nil {
			for _, g := range list {
				id.groups = append(id.groups, number(g))
			}
		}
	} else {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return id, errors.New("the image knows no such user")
		}
		id.uid = uint32(n)
		if n == 0 {
			id.home = "/root"
		}
	}
	if !hasGroup {
		return id, nil
	}
	id.groups = nil
	if g, err := user.LookupGroup(group); err == nil {
		id.gid = number(g.Gid)
		return id, nil
	}
	n, err := strconv.ParseUint(group, 10, 32)
	if err != nil {
		return id, fmt.Errorf("the image knows no group %q", group)
	}
	id.gid = uint32(n)
	return id, nil
}

func number(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32) // from a passwd file that was parsed
	return uint32(n)
}
