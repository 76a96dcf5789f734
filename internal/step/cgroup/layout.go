package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Layout says where control groups are mounted and where the calling process is in each hierarchy.
type Layout struct {
	V2 *Mount            // nil: no cgroup2 mount, or hidden from us, as in some containers
	V1 map[string]*Mount // by controller; controllers mounted together share a Mount
}

// Mount is one hierarchy.
type Mount struct {
	Point string // where it is mounted
	Own   string // directory of the calling process, below Point
}

// Detect reads the layout of this machine. It must not be called while a thread of this process has joined a Step.
func Detect() (Layout, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Layout{}, fmt.Errorf("read mounts: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Layout{}, fmt.Errorf("read own cgroups: %w", err)
	}
	l := parseLayout(mounts, own)
	if l.V2 != nil {
		if _, err := os.Stat(filepath.Join(l.V2.Own, "cgroup.controllers")); err != nil {
			l.V2 = nil
		}
	}
	return l, nil
}

// parseLayout understands /proc/self/mountinfo and /proc/self/cgroup.
func parseLayout(mountinfo, own []byte) Layout {
	paths := map[string]string{} // controller, or "" for v2 → path within the hierarchy
	for line := range bytes.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			paths[c] = parts[2]
		}
	}
	l := Layout{V1: map[string]*Mount{}}
	for line := range bytes.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(string(line)), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		root, point := left[3], left[4]
		switch right[0] {
		case "cgroup2":
			if own, found := paths[""]; found && l.V2 == nil {
				l.V2 = &Mount{Point: point, Own: below(point, root, own)}
			}
		case "cgroup":
			var m *Mount
			for opt := range strings.SplitSeq(right[2], ",") {
				own, found := paths[opt]
				if !found || opt == "" || l.V1[opt] != nil {
					continue
				}
				if m == nil {
					m = &Mount{Point: point, Own: below(point, root, own)}
				}
				l.V1[opt] = m
			}
		}
	}
	return l
}

// below finds a cgroup's directory under a mount that may show only a part of the hierarchy, as in a container.
func below(point, root, path string) string {
	if root != "/" {
		if rest, ok := strings.CutPrefix(path, root); ok && (rest == "" || rest[0] == '/') {
			path = rest
		} else {
			path = "/"
		}
	}
	return filepath.Join(point, path)
}
