package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// usual are the pseudo-devices every program needs: null, zero, full, random, urandom, tty, ptmx and pseudo-terminals.
var usual = []string{
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm",
}

// devState is which devices a job may use. The zero value: all.
type devState struct {
	allow []string // nil: all but deny
	deny  []string
}

func (d devState) free() bool { return d.allow == nil && len(d.deny) == 0 }

func (d devState) equal(e devState) bool {
	return (d.allow == nil) == (e.allow == nil) && slices.Equal(d.allow, e.allow) && slices.Equal(d.deny, e.deny)
}

// DeviceRule names the device behind a file as a rule for all access; empty if there is no such file, and so nothing to
// deny.
func DeviceRule(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		if os.IsNotExist(err) {
			return "", nil
		}
		return "", fmt.Errorf("%s: %w", path, err)
	}
	kind := "c"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
	case unix.S_IFBLK:
		kind = "b"
	default:
		return "", fmt.Errorf("%s is no device file", path)
	}
	return fmt.Sprintf("%s %d:%d rwm", kind, unix.Major(st.Rdev), unix.Minor(st.Rdev)), nil
}

func (j *Job) limitDevices(want devState) error {
	if want.equal(j.devs) {
		return nil
	}
	if err := j.mkdir(devices); err != nil {
		return err
	}
	dir := j.dir(devices)
	var err error
	if j.v2(devices) {
		if err = unfilter(dir, &j.filter); err == nil && !want.free() {
			var allow []string
			if want.allow != nil {
				allow = slices.Concat(usual, want.allow)
			}
			j.filter, err = filterDevices(dir, want.deny, allow, want.allow == nil)
		}
	} else if err = j.limitDevicesV1(dir, want); err == nil {
		err = j.enter(devices)
	}
	if err != nil {
		return err
	}
	j.devs = want
	return nil
}

// limitDevicesV1 goes from the present rules to others.
func (j *Job) limitDevicesV1(dir string, want devState) error {
	write := func(file string, rules ...string) error {
		for _, rule := range rules {
			if err := writeFile(dir, file, rule); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	switch {
	case want.allow != nil:
		if err = write("devices.deny", "a"); err == nil {
			err = write("devices.allow", slices.Concat(usual, want.allow)...)
		}
	case j.devs.allow != nil:
		err = write("devices.allow", "a")
	default: // one by one: below a restricted cgroup nobody may allow all
		err = write("devices.allow", j.devs.deny...)
	}
	if err == nil {
		err = write("devices.deny", want.deny...)
	}
	if err != nil || len(want.deny) == 0 {
		return err
	}
	return checkDenied(dir, want.deny)
}

// checkDenied makes sure that the rules hold. Where a cgroup has a list of what is allowed, the kernel takes out a line
// that is the same as the rule and ignores one that merely covers it.
func checkDenied(dir string, deny []string) error {
	b, err := os.ReadFile(filepath.Join(dir, "devices.list"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "a ") {
			return nil // all but exceptions, which are not told
		}
		r, err := parseDevice(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		for _, text := range deny {
			d, err := parseDevice(text)
			if err != nil {
				return err
			}
			if r.access&(accRead|accWrite) != 0 && covers(r, d) {
				return fmt.Errorf("device %s cannot be denied: the node's own cgroup allows %s", text, strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// covers reports whether a rule with wildcards is about a device.
func covers(r, device deviceRule) bool {
	return (r.kind == wildcard || r.kind == device.kind) && (r.major == wildcard || r.major == device.major) &&
		(r.minor == wildcard || r.minor == device.minor)
}
