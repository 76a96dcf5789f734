package step

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/step/affinity"
	"bireme.dev/bireme/internal/step/files"
	"bireme.dev/bireme/internal/step/rlimit"
	"bireme.dev/bireme/internal/step/taskpid"
	"bireme.dev/bireme/internal/wire"
)

// fork brings the step's tasks to life, or says why not.
func (s *step) fork() *failure {
	k, l := s.k, s.l
	if !k.root && l.Identity.UID != k.uid && !l.StandsIn() {
		return launchFailed(fmt.Errorf("this node runs jobs of uid %d only, not of uid %d", k.uid, l.Identity.UID))
	}
	groups, err := k.supplementary(l.Identity)
	if err != nil {
		return launchFailed(err)
	}
	env := s.environ()
	if l.StandsIn() {
		env = s.standInEnviron()
	}
	if l.Program.LoginEnv {
		login, err := k.loginEnv(s, groups)
		if err != nil {
			return &failure{cause: wire.CauseEnvFailed, code: 1, message: err.Error()}
		}
		env = overlay(login, env)
	}
	if s.cancelled() {
		return &failure{cause: wire.CauseCancelled, message: "ended before it started"}
	}
	if len(l.Files) > 0 && l.Container == nil {
		o := files.Owner{Identity: l.Identity, Groups: groups}
		in, err := k.files.Lay(s.job.ref, o, l.Files, files.StartDir(env, k.homeOf(l.Identity.UID)))
		if err != nil {
			return launchFailed(err)
		}
		env = overlay(env, []string{files.Variable + "=" + in})
	}
	ready := s.prologs(groups, env)
	var f *failure
	err = k.threads.do(func(th *thread) { f = s.forkHere(th, groups, env, ready) })
	if err != nil && !errors.Is(err, errOwnView) {
		k.log.Error("a launcher thread was given up", "job", s.key.Job, "step", s.key.Step, "err", err)
	}
	return f
}

func (s *step) cancelled() bool {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	return s.end.cause != wire.CauseNone
}

// forkHere is fork on a launcher thread.
func (s *step) forkHere(th *thread, groups []uint32, env []string, ready []prepared) *failure {
	k, l := s.k, s.l
	defer func() { _ = unix.Chdir("/") }()
	if err := showVolumes(th, s); err != nil {
		return launchFailed(err)
	}
	if l.Program.Umask != nil && *l.Program.Umask != defaultUmask {
		unix.Umask(int(*l.Program.Umask & 0o777))
		defer unix.Umask(defaultUmask)
	}
	s.io = newStdio(s)
	if err := s.io.prepare(); err != nil {
		return launchFailed(err)
	}
	defer s.io.closeTheirs()
	var chdirErr error
	dir := l.Program.WorkDir
	if dir == "" {
		dir = "/"
	}
	err := k.asUser(th, l.Identity, groups, func() error {
		if chdirErr = unix.Chdir(dir); chdirErr != nil {
			dir = "/tmp"
			if err := unix.Chdir(dir); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
		return s.io.open(dir)
	})
	if err != nil {
		return launchFailed(err)
	}
	if chdirErr != nil { // as Slurm 22.05 and 25.05: continues in /tmp
		s.io.notice("couldn't chdir to `%s': %s: going to /tmp instead", l.Program.WorkDir, strerror(chdirErr))
	}
	script := ""
	if len(l.Script) > 0 && l.Container == nil {
		if script, err = k.scripts.Write(l.Identity, l.Key.Job, k.root, l.Script); err != nil {
			return launchFailed(err)
		}
		s.script = script
	}
	if s.cg != nil {
		defer func() {
			// A thread that stays in a job's cgroup would take the next job there.
			if err := s.cg.Leave(); err != nil {
				th.spoil(err)
			}
		}()
		if err := s.cg.Join(); err != nil {
			return launchFailed(err)
		}
	}
	return s.forkTasks(th, script, dir, groups, env, ready)
}

// forkTasks forks each task. If one fails those before it are killed by the caller's cleaning up.
func (s *step) forkTasks(th *thread, script, dir string, groups []uint32, env []string, ready []prepared) *failure {
	l := s.l
	tasks := l.Program.Tasks
	if len(tasks) == 0 {
		tasks = []wire.Task{{}}
	}
	if s.anchor == nil {
		dir = "" // the thread stands there already
	}
	if err := s.openMeeting(tasks); err != nil {
		return launchFailed(err)
	}
	for i, t := range tasks {
		argv, taskEnv := l.Program.Argv, env
		if len(t.Argv) > 0 && l.Container == nil {
			argv = t.Argv
		}
		if len(t.Env) > 0 {
			taskEnv = overlay(env, t.Env)
		}
		if ready != nil {
			if ready[i].err != nil {
				return s.spoilt(ready[i].err)
			}
			taskEnv = ready[i].env
		}
		path := script
		if script != "" {
			argv = append([]string{script}, argv...)
		} else if len(argv) == 0 {
			return launchFailed(errors.New("nothing to run: neither script nor program"))
		} else {
			err := s.k.asUser(th, l.Identity, groups, func() error {
				path = findProgram(argv[0], taskEnv)
				return nil
			})
			if err != nil {
				return launchFailed(err)
			}
		}
		fds := s.io.fds(i)
		if ready != nil && ready[i].prints != "" {
			tell(fds[1], ready[i].prints)
		}
		files := []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])}
		if l.Container != nil {
			feed, err := s.feed(groups, t)
			if err != nil {
				return launchFailed(err)
			}
			defer feed.Close()
			files = append(files, feed.Fd())
		}
		if s.pmi != nil {
			vars, inherit := s.pmi.Task(i, len(files))
			if taskEnv = overlay(taskEnv, vars); inherit != nil {
				files = append(files, inherit.Fd())
			}
		}
		attr := s.attr(groups)
		if s.io.tty {
			attr.Setctty = true
		}
		tune := s.tuning(t)
		if taskpid.Wanted(taskEnv) {
			taskEnv = taskpid.Reserve(taskEnv)
			tune = append(tune, func(pid int) error { return taskpid.Fill(pid, len(taskEnv)) })
		}
		if t.Note != "" {
			tune = append(tune, func(pid int) error {
				tell(fds[2], strings.Replace(t.Note, "%d", strconv.Itoa(pid), 1))
				return nil
			})
		}
		attr.Ptrace = tune != nil
		c := s.child(i)
		if tune != nil {
			c.stopped = make(chan struct{}, 1)
		}
		err := s.k.reaper.fork(c, func() (int, error) {
			return s.bear(th, func() (int, error) {
				return syscall.ForkExec(path, argv, &syscall.ProcAttr{
					Dir: dir, Env: taskEnv, Sys: attr, Files: files,
				})
			})
		})
		if err != nil {
			s.io.notice("execve(): %s: %s", argv[0], strerror(err))
			f := &failure{cause: wire.CauseExecFailed, code: 1, message: argv[0] + ": " + err.Error()}
			var errno syscall.Errno
			if errors.As(err, &errno) {
				f.code = int(errno)
			}
			return f
		}
		s.k.mu.Lock()
		s.tasks = append(s.tasks, c)
		s.k.mu.Unlock()
		if tune != nil {
			if err := s.release(c, tune); err != nil {
				return launchFailed(err)
			}
		}
	}
	return nil
}

// child is a task as the reaper knows it.
func (s *step) child(i int) *child {
	return &child{exited: func(status unix.WaitStatus, usage *unix.Rusage) {
		x := taskExit{task: i, status: status, usage: *usage}
		if len(s.l.Program.TaskEpilog) == 0 || s.l.StandsIn() {
			s.exits <- x
			return
		}
		s.k.later(func() { // until it is done the task has not ended
			s.epilogs(i)
			s.exits <- x
		})
	}}
}

// attr is how a process is born: leader of a session of its own, as the user, inside its cgroup.
func (s *step) attr(groups []uint32) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if s.cg != nil && s.cg.FD() >= 0 {
		a.UseCgroupFD, a.CgroupFD = true, s.cg.FD()
	}
	id := s.l.Identity
	if s.k.root && !s.l.StandsIn() && (id.UID != 0 || id.GID != 0 || len(groups) > 0) {
		a.Credential = &syscall.Credential{Uid: id.UID, Gid: id.GID, Groups: groups}
	}
	return a
}

// tuning says what must be set on a process between its birth and its first instruction; nil: nothing.
func (s *step) tuning(t wire.Task) []func(pid int) error {
	var list []func(int) error
	for name, want := range s.l.Limits.RLimits {
		res, known := rlimit.Names[name]
		if !known {
			continue
		}
		// -1 is RLIM_INFINITY. Nobody gets above what the site gave the keeper.
		lim := unix.Rlimit{Max: min(uint64(want.Hard), s.k.limits[res].Max)}
		lim.Cur = min(uint64(want.Soft), lim.Max)
		if lim == s.k.limits[res] {
			continue
		}
		list = append(list, func(pid int) error {
			return rlimit.Apply(pid, res, &lim, s.k.root, s.l.Identity.UID, s.l.Identity.GID)
		})
	}
	if n := s.l.Program.Nice; n != 0 {
		list = append(list, func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, n) })
	}
	if adj := s.l.Limits.OOMScoreAdj; adj != 0 {
		list = append(list, func(pid int) error {
			return os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(strconv.Itoa(adj)), 0)
		})
	}
	if t.CPUs != "" {
		set, err := affinity.Parse(t.CPUs)
		list = append(list, func(pid int) error {
			if err != nil {
				return err
			}
			return unix.SchedSetaffinity(pid, &set)
		})
	}
	return list
}

// release tunes a process that stands still at its exec and lets it go. Only the thread that forked it may.
func (s *step) release(c *child, tune []func(pid int) error) error {
	if !standing(c.pid) {
		<-c.stopped
		if c.gone.Load() { // its number may be another's by now
			return nil
		}
	}
	var faults []error
	for _, f := range tune {
		faults = append(faults, f(c.pid))
	}
	if err := syscall.PtraceDetach(c.pid); err != nil && !errors.Is(err, unix.ESRCH) {
		faults = append(faults, fmt.Errorf("let go of process %d: %w", c.pid, err))
	}
	return errors.Join(faults...)
}

// standing tells that a process has come to its exec, giving it a moment to: a fork returns just before. It spares the
// way round by the reaper, which wakes two threads. Only what this very thread traces can stand.
func standing(pid int) bool {
	const moments = 20
	var regs syscall.PtraceRegs
	for range moments {
		if syscall.PtraceGetRegs(pid, &regs) == nil {
			return true
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return false
}

// environ is the environment of the step's tasks.
func (s *step) environ() []string {
	env := s.l.Environ()
	own := make([]string, 0, 4)
	own = append(own, s.k.mark(s.key))
	if tmp := s.job.tmp; tmp != "" {
		own = append(own, "TMPDIR="+tmp, "SLURM_TMPDIR="+tmp, "BIREME_TMPDIR="+tmp)
	}
	return set(env, own)
}

// set puts variables into an environment in place; the first of a name is the one programs see, so none may be twice.
// It reads the environment once, however many variables there are: both are as many as a user says.
func set(env, vars []string) []string {
	if len(vars) <= 8 {
		return setFew(env, vars)
	}
	index := make(map[string]int, len(vars)) // name -> the last of vars with it
	for i, v := range vars {
		if name := nameOf(v); name != "" {
			index[name] = i
		}
	}
	put := make([]bool, len(vars))
	for i, e := range env {
		if len(index) == 0 {
			break
		}
		name := nameOf(e)
		if at, ok := index[name]; ok && name != "" {
			env[i], put[at] = vars[at], true
			delete(index, name)
		}
	}
	for i, v := range vars {
		at, known := index[nameOf(v)]
		if nameOf(v) == "" || known && at == i && !put[i] {
			env = append(env, v)
		}
	}
	return env
}

// setFew is set without an index, which costs more than it saves for a few variables.
func setFew(env, vars []string) []string {
	for _, v := range vars {
		name := v[:strings.IndexByte(v, '=')+1]
		if i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name) }); i >= 0 && name != "" {
			env[i] = v
		} else {
			env = append(env, v)
		}
	}
	return env
}

// nameOf is a variable's name, empty for what is no variable.
func nameOf(v string) string { return v[:max(0, strings.IndexByte(v, '='))] }

// overlay is set on a copy.
func overlay(env, vars []string) []string {
	return set(append(make([]string, 0, len(env)+len(vars)), env...), vars)
}

// findProgram looks for a program as execvp would, with the rights that the calling thread has to files. What is not
// found is returned as it is, for exec to fail on.
func findProgram(name string, env []string) string {
	if strings.Contains(name, "/") {
		return name
	}
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
			break
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		full := dir + "/" + name
		var st unix.Stat_t
		if unix.Stat(full, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
			unix.Faccessat(unix.AT_FDCWD, full, unix.X_OK, unix.AT_EACCESS) == nil {
			return full
		}
	}
	return name
}

// strerror is an error's text as C programs print it.
func strerror(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	text := []rune(errno.Error())
	text[0] = unicode.ToUpper(text[0])
	return string(text)
}
