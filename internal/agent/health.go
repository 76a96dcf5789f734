package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Bounds of the programs that are run for the node itself.
const (
	programTimeout = time.Minute     // as Slurm gives its health program
	rebootTimeout  = 5 * time.Minute // a program that restarts the machine should have done so
	engineTimeout  = 10 * time.Second
	maxMessage     = 200 // of what a program says, in bytes
)

// doctor looks after the node. Texts say which bound is passed, not by how much, so that what has not changed is not
// news.
type doctor struct {
	a       *Agent
	program []core.NodeFault // what the health program last said
	holders map[int]bool     // processes that held a GPU at the last look, when no job had one
}

// watchHealth looks at the node at an interval, and when the server asks or has new settings. It runs until ctx ends.
func (a *Agent) watchHealth(ctx context.Context) error {
	d := &doctor{a: a}
	for {
		a.mu.Lock()
		set := a.settings.Health
		a.mu.Unlock()
		var wait <-chan time.Time
		if set.Every > 0 {
			wait = time.After(set.Every)
		}
		run := false
		select {
		case <-ctx.Done():
			return nil
		case run = <-a.checkup:
		case <-wait:
		}
		a.mu.Lock()
		set = a.settings.Health
		a.mu.Unlock()
		if run || set.Program == "" {
			d.program = d.ask(ctx, set.Program)
		}
		faults := slices.Concat(d.look(ctx, &set), d.program)
		if ctx.Err() != nil { // what failed now failed because of that
			return nil
		}
		a.ledger.tell(wire.TypeHealth, wire.Health{Faults: faults}, nil)
	}
}

// checkHealth has the node looked at soon; program: also by its health program.
func (a *Agent) checkHealth(program bool) {
	for {
		select {
		case a.checkup <- program:
			return
		default:
		}
		select { // one that waits already is done together with this
		case had := <-a.checkup:
			program = program || had
		default:
		}
	}
}

// ask runs the health program. The first line it prints is what is wrong.
func (d *doctor) ask(ctx context.Context, program string) []core.NodeFault {
	if program == "" {
		return nil
	}
	text, err := d.a.runProgram(ctx, program, programTimeout)
	if err == nil {
		return nil
	}
	if text == "" {
		text = fmt.Sprintf("health program %s: %v", filepath.Base(program), err)
	}
	d.a.log.Warn("the health program fails", "program", program, "err", err, "says", text)
	return []core.NodeFault{{Check: "program", Text: text, Drain: true}}
}

// runProgram runs a program of the site's for the node as the agent's user, in a session of its own that is ended with
// it, and gives the first line of its output.
func (a *Agent) runProgram(ctx context.Context, program string, patience time.Duration) (first string, err error) {
	inner, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(inner, program)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "BIREME_NODE="+string(a.id.name), "SLURMD_NODENAME="+string(a.id.name),
		"BIREME_SERVER=unix:"+a.opt.Socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out head
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if inner.Err() != nil && ctx.Err() == nil {
		return fmt.Sprintf("%s did not end within %s", filepath.Base(program), patience), inner.Err()
	}
	line, _, _ := strings.Cut(strings.TrimLeft(out.String(), "\n"), "\n")
	if line = strings.ToValidUTF8(strings.TrimSpace(line), "?"); len(line) > maxMessage {
		line = strings.ToValidUTF8(line[:maxMessage], "") + "…"
	}
	return line, err
}

// head keeps the beginning of what is written to it, enough for a first line that is told.
type head struct{ bytes.Buffer }

func (h *head) Write(b []byte) (int, error) {
	if room := 16*maxMessage - h.Len(); room > 0 {
		h.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// look makes the built-in checks.
func (d *doctor) look(ctx context.Context, set *wire.HealthSettings) (out []core.NodeFault) {
	add := func(check, action, format string, args ...any) {
		out = append(out, core.NodeFault{Check: check, Text: fmt.Sprintf(format, args...), Drain: action == "drain"})
	}
	if on(set.Disk) {
		for _, dir := range full(d.places(), set.DiskPercent) {
			add("disk", set.Disk, "%s is more than %d%% full", dir, set.DiskPercent)
		}
	}
	if on(set.Memory) && scarce(d.a.root, set.MemoryPercent) {
		add("memory", set.Memory, "more than %d%% of the memory is in use", set.MemoryPercent)
	}
	if on(set.Mount) {
		for _, dir := range unmounted(d.a.root, set.Mounts) {
			add("mount", set.Mount, "%s is not mounted", dir)
		}
	}
	if on(set.GPUProcesses) {
		if list := d.strays(); len(list) > 0 {
			add("gpu_processes", set.GPUProcesses, "GPUs are held by processes of no job: %s", strings.Join(list, ", "))
		}
	}
	if kind, program := d.a.containers.makers.choose(&wire.Container{}); on(set.Engine) && kind != "" {
		if program == "" {
			add("engine", set.Engine, "this node is to make containers by %s, which is not there", kind)
		}
	} else if on(set.Engine) {
		inner, cancel := context.WithTimeout(ctx, engineTimeout)
		if err := d.a.containers.engine.Ping(inner); err != nil {
			add("engine", set.Engine, "%v", err)
		}
		cancel()
	}
	return out
}

func on(action string) bool { return action == "warn" || action == "drain" }

// places are the directories whose disk must have room.
func (d *doctor) places() []string {
	list := []string{d.a.opt.Dir, d.a.opt.TmpBase, "/tmp"}
	d.a.mu.Lock()
	if tmp := d.a.settings.TmpDir; tmp != "" {
		list[1] = tmp
	}
	d.a.mu.Unlock()
	return list
}

// full lists the directories on disks of which more is used than percent, each disk once.
func full(dirs []string, percent int64) (out []string) {
	var seen []unix.Fsid
	for _, dir := range dirs {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) != nil || st.Blocks == 0 || slices.Contains(seen, st.Fsid) {
			continue
		}
		seen = append(seen, st.Fsid)
		used, all := st.Blocks-st.Bfree, st.Blocks-st.Bfree+st.Bavail // as df counts: what root may use besides is not room
		if used*100 > all*uint64(percent) {
			out = append(out, dir)
		}
	}
	return out
}

// scarce reports whether more of the memory is used than percent.
func scarce(root fs.FS, percent int64) bool {
	all, err := hardware.MemInfo(root, "MemTotal")
	free, err2 := hardware.MemInfo(root, "MemAvailable")
	return errors.Join(err, err2) == nil && int64(all-free)*100 > int64(all)*percent
}

// unmounted lists the directories on which nothing is mounted.
func unmounted(root fs.FS, dirs []string) (out []string) {
	if len(dirs) == 0 {
		return nil
	}
	b, err := fs.ReadFile(root, "proc/self/mounts")
	if err != nil {
		return nil // a kernel without it is not the directories' fault
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 {
			have[unescapeMount(f[1])] = true
		}
	}
	for _, dir := range dirs {
		if !have[filepath.Clean(dir)] {
			out = append(out, dir)
		}
	}
	return out
}

// unescapeMount undoes the kernel's octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	for _, e := range [][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		s = strings.ReplaceAll(s, e[0], e[1])
	}
	return s
}

// gpuDaemons hold devices by right.
var gpuDaemons = []string{
	"nvidia-persiste", "nv-hostengine", "nvidia-smi", "nv-fabricmanage", "dcgm-exporter",
	"nvidia-mig-part", "Xorg",
}

// strays names processes that hold a GPU at two looks in a row though no job runs: they were left by one, or are
// nobody's.
func (d *doctor) strays() (out []string) {
	var files []string
	for i := range d.a.machine.GPUs {
		files = append(files, d.a.machine.GPUs[i].Files...)
	}
	if len(files) == 0 || len(d.a.ledger.jobKeys()) > 0 {
		d.holders = nil
		return nil
	}
	now := map[int]bool{}
	for pid, name := range holding(d.a.root, files) {
		if now[pid] = true; d.holders[pid] {
			out = append(out, fmt.Sprintf("%s (%d)", name, pid))
		}
	}
	d.holders = now
	slices.Sort(out)
	return out
}

// holding finds the processes that have one of some device files open.
func holding(root fs.FS, files []string) map[int]string {
	out := map[int]string{}
	dirs, _ := fs.ReadDir(root, "proc") // without it there is nothing to see
	for _, p := range dirs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		fds, _ := fs.ReadDir(root, "proc/"+p.Name()+"/fd") // it may have ended meanwhile
		for _, fd := range fds {
			to, err := fs.ReadLink(root, "proc/"+p.Name()+"/fd/"+fd.Name())
			if err != nil || !slices.Contains(files, to) {
				continue
			}
			b, _ := fs.ReadFile(root, "proc/"+p.Name()+"/comm")
			if name := strings.TrimSpace(string(b)); !slices.Contains(gpuDaemons, name) {
				out[pid] = name
			}
			break
		}
	}
	return out
}

// reboot runs the program that restarts the machine, once a request. The agent ends with the machine; one whose program
// fails says so.
func (a *Agent) reboot(order wire.Reboot) {
	a.mu.Lock()
	program, again := a.settings.RebootProgram, a.rebooting != nil && *a.rebooting == order
	a.rebooting = &order
	a.mu.Unlock()
	if again {
		return
	}
	a.work.Go(func() {
		a.log.Warn("restarting the machine", "program", program)
		text, err := "the settings name no program", error(fs.ErrNotExist)
		if program != "" {
			text, err = a.runProgram(context.WithoutCancel(a.life), program, rebootTimeout)
		}
		if err == nil {
			return
		}
		a.mu.Lock()
		a.rebooting = nil
		a.mu.Unlock()
		if text == "" {
			text = err.Error()
		}
		a.complain(wire.Problem{Reboot: true, Reason: "reboot failed: " + text})
	})
}
