package step

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// A step in a container is a stand-in to the keeper: a program of ours that runs with the keeper's own rights, in the
// step's place and with its streams, and to which what the user sent is nothing but data.

// feed is the launch as the stand-in gets it, on descriptor 3, with the groups that this node knows of its user: in
// memory, because secrets are in its environment.
func (s *step) feed(groups []uint32, t wire.Task) (*os.File, error) {
	l := *s.l
	l.Identity.Groups = groups
	if len(t.Argv) > 0 { // for inside: here only the stand-in runs, with rights that no user has
		box := *l.Container
		box.Args, l.Container = t.Argv, &box
	}
	if box := *l.Container; len(l.Volumes) > 0 || box.Volumes != nil {
		box.Volumes = nil
		for i, v := range l.Volumes {
			box.Volumes = append(box.Volumes, core.Mount{
				Source: s.k.volumes.At(s.job.ref, i), Target: v.Target, ReadOnly: v.ReadOnly,
			})
		}
		l.Container = &box
	}
	b, err := wire.AppendFrame(nil, wire.TypeLaunch, &l, l.Payload()...)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("launch", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "launch")
	if _, err = f.Write(b); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("hand a launch to its container: %w", err)
	}
	return f, nil
}

// standInEnviron is the environment of a stand-in; what a task gets of its own is added to it.
func (s *step) standInEnviron() []string {
	return []string{s.k.mark(s.key), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}
