package standin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// initInside is where those who join find bireme-init. What is ours and runs before the job does lies elsewhere, in a
// directory that nobody can name beforehand: an image can lead a mount to any place by a link.
const initInside = wire.InitInside

// spec says the launch in the engine's words.
func (s *standIn) spec() (spec *docker.Spec, err error) {
	c, lim := s.c, &s.c.Limits
	place := "/.bireme-" + rand.Text()
	spec = &docker.Spec{
		Image: c.Image, User: "0:0", // of which bireme-init becomes the user that the image or the job names
		Entrypoint:  []string{place + "/init", "serve", place + "/run/sock"},
		Healthcheck: docker.Healthcheck{Test: []string{"NONE"}},
		// where NVIDIA's runtime is the default, an image can ask for all
		Env:    []string{"NVIDIA_VISIBLE_DEVICES=void"},
		Labels: map[string]string{docker.LabelNode: string(c.Node), docker.LabelKey: s.key.String()},
	}
	if filepath.IsAbs(c.WorkDir) {
		spec.WorkingDir = c.WorkDir
	}
	h := &spec.HostConfig
	h.Memory, h.ShmSize, h.Privileged = lim.Memory, int64(c.Shm), c.Privileged
	if lim.Memory > 0 {
		h.MemorySwap = lim.Memory + max(0, lim.Swap)
		if lim.Swap < 0 {
			h.MemorySwap = -1
		}
	}
	switch {
	case lim.CPUs != "":
		h.CpusetCpus = lim.CPUs
	case c.CPUs > 0 && !c.Submitter && int(c.CPUs) < runtime.NumCPU():
		h.NanoCpus = int64(c.CPUs) * 1e9
	}
	if lim.PIDs > 0 {
		h.PidsLimit = &lim.PIDs
	}
	h.NetworkMode = "bridge"
	if c.Host {
		h.NetworkMode = "host"
	}
	if g := c.Gang; g != nil {
		s.gang(spec, g)
	}
	for _, p := range c.Ports {
		if !c.Host {
			publish(spec, p.Container, c.Publish, "")
		}
	}
	h.LogConfig.Type = "none" // output does not pass the engine
	h.AutoRemove = true
	if c.Submitter {
		// Root inside would be the node's root to all that is mounted, so there is none, whatever the image holds.
		id := &s.l.Identity
		spec.User = fmt.Sprintf("%d:%d", id.UID, id.GID)
		for _, g := range id.Groups {
			h.GroupAdd = append(h.GroupAdd, strconv.FormatUint(uint64(g), 10))
		}
		h.SecurityOpt, h.CapDrop = []string{"no-new-privileges"}, []string{"ALL"}
		s.noLowPorts(h)
	}
	if c.Bounded && !c.Privileged {
		// Root inside keeps what it needs of its own files and processes. It gets more by no program of the image
		// either: who has all that root has here gains nothing by a set-user-id program, so those are left to images
		// whose users need them (sudo).
		h.CapDrop, h.CapAdd = []string{"ALL"}, slices.Clone(c.Caps)
		if c.NetRaw && !slices.Contains(h.CapAdd, "NET_RAW") {
			h.CapAdd = append(h.CapAdd, "NET_RAW")
		}
		if !slices.Contains(h.CapAdd, "NET_BIND_SERVICE") {
			s.noLowPorts(h)
		}
	}
	for _, d := range c.Devices {
		h.Devices = append(h.Devices, docker.Device{PathOnHost: d, PathInContainer: d, CgroupPermissions: "rwm"})
	}
	if len(c.GPUs) > 0 {
		spec.Env = nil
		h.DeviceRequests = []docker.DeviceRequest{{Driver: "nvidia", DeviceIDs: c.GPUs, Capabilities: [][]string{{"gpu"}}}}
	}
	h.Mounts = []docker.Mount{
		{Type: "bind", Source: c.Init, Target: place + "/init", ReadOnly: true},
		{Type: "bind", Source: filepath.Join(s.folder, "in"), Target: place + "/run", ReadOnly: true},
		{Type: "bind", Source: c.Init, Target: initInside, ReadOnly: true},
	}
	for _, m := range c.Volumes { // the keeper made the folder, and nobody else comes to it
		h.Mounts = append(h.Mounts, docker.Mount{Type: "bind", Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	for _, m := range c.Mounts {
		source, err := s.source(m)
		if err != nil {
			return nil, err
		}
		if source != "" {
			h.Mounts = append(h.Mounts, docker.Mount{Type: "bind", Source: source, Target: m.Target, ReadOnly: m.ReadOnly})
		}
	}
	return spec, nil
}

// noLowPorts keeps the low ports from all inside, which Docker gives to everybody. To the world they are the node's,
// and file servers take who calls from one for its root. On the node's own network the node's setting holds.
func (s *standIn) noLowPorts(h *docker.HostConfig) {
	if !s.c.Host {
		h.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "1024"}
	}
}

// shown is something of the node that a submitting user mounted: the open file is what that user could open.
type shown struct {
	file   *os.File
	target string
}

// source returns the path that the engine is to mount; empty: nothing. A submitting user gets only what that user could
// open, with the user's rights. The engine mounts by name, and names can be changed meanwhile: verify looks at what it
// mounted.
func (s *standIn) source(m core.Mount) (string, error) {
	if s.c.Submitter {
		fd, err := openAs(s.l.Identity, m.Source)
		switch {
		case err != nil && m.Optional && os.IsNotExist(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("mount %s, as user %d: %w", m.Source, s.l.Identity.UID, err)
		}
		s.shown = append(s.shown, shown{os.NewFile(uintptr(fd), m.Source), m.Target})
		return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	}
	if s.c.Bounded {
		return s.within(m)
	}
	_, err := os.Stat(m.Source)
	if os.IsNotExist(err) && m.Optional {
		return "", nil
	}
	if os.IsNotExist(err) { // as dstack: an instance volume is made where it is missing
		err = os.MkdirAll(m.Source, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("mount %s: %w", m.Source, err)
	}
	return m.Source, nil
}

// verify makes sure that the container has what its user could open, and not what somebody put in its place. Nothing of
// the job runs yet; pid is the container's first process.
func (s *standIn) verify(pid int32) error {
	defer func() {
		for _, m := range s.shown {
			m.file.Close()
		}
	}()
	if len(s.shown) == 0 {
		return nil
	}
	root, err := os.Open("/proc/" + strconv.Itoa(int(pid)) + "/root")
	if err != nil {
		return err
	}
	defer root.Close()
	for _, m := range s.shown {
		fd, err := unix.Openat2(int(root.Fd()), m.target,
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
		if err != nil {
			return fmt.Errorf("mount %s: look at it inside: %w", m.file.Name(), err)
		}
		var have, want unix.Stat_t
		err = errors.Join(unix.Fstat(fd, &have), unix.Fstat(int(m.file.Fd()), &want))
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
		if have.Dev != want.Dev || have.Ino != want.Ino {
			return fmt.Errorf("mount %s: it was changed while the container was made", m.file.Name())
		}
	}
	return nil
}

// openAs opens a path with a user's rights, to be mounted: what cannot be read is not shown.
func openAs(id wire.Identity, path string) (fd int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if err = becomeHere(id); err != nil {
			return
		}
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	}()
	<-done
	return fd, err
}

// becomeHere gives this thread a user's rights to files. The calls of the standard library would change every thread.
func becomeHere(id wire.Identity) error {
	if os.Getuid() != 0 {
		return nil
	}
	groups := append([]uint32{id.GID}, id.Groups...)
	for _, c := range []struct {
		name string
		nr   uintptr
		a, b uintptr
	}{
		{"setgroups", unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0]))},
		{"setfsgid", unix.SYS_SETFSGID, uintptr(id.GID), 0},
		{"setfsuid", unix.SYS_SETFSUID, uintptr(id.UID), 0},
	} {
		// the others tell what was before
		if _, _, e := unix.RawSyscall(c.nr, c.a, c.b, 0); e != 0 && c.nr == unix.SYS_SETGROUPS {
			return os.NewSyscallError(c.name, e)
		}
	}
	return nil
}

// instanceOf shortens a socket's path to what the kernel takes.
func instanceOf(f *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) + "/" + name
}
