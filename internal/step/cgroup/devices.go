package cgroup

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// In v2 there is no devices controller: a BPF program attached to the cgroup is asked for each access. Ours is a list
// of rules, assembled here: first those that refuse, then those that allow; the end of the list says what becomes of
// the rest.

// insn is one BPF instruction.
type insn struct {
	op  uint8
	reg uint8 // destination, source << 4
	off int16
	imm int32
}

// Operations used, and registers: the program is called with its context (access, major, minor) in r1 and answers in
// r0.
const (
	opLoad32  = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W
	opMovReg  = unix.BPF_ALU64 | 0xb0 | unix.BPF_X
	opMovImm  = unix.BPF_ALU64 | 0xb0 | unix.BPF_K
	opAndImm  = 0x04 | unix.BPF_AND | unix.BPF_K // 32 bits wide
	opRshImm  = 0x04 | unix.BPF_RSH | unix.BPF_K
	opJneImm  = unix.BPF_JMP | 0x50 | unix.BPF_K
	opExit    = unix.BPF_JMP | 0x90
	accMknod  = 1
	accRead   = 2
	accWrite  = 4
	accAll    = accMknod | accRead | accWrite
	devBlock  = 1
	devChar   = 2
	wildcard  = -1
	progType  = unix.BPF_PROG_TYPE_CGROUP_DEVICE
	hookPoint = unix.BPF_CGROUP_DEVICE
)

// deviceRule is one line of a list: "c 195:0 rwm", "b 8:* r", "a".
type deviceRule struct {
	kind         int32 // wildcard: both
	major, minor int32
	access       int32
}

func parseDevice(text string) (deviceRule, error) {
	bad := func() (deviceRule, error) {
		return deviceRule{}, fmt.Errorf("device rule %q: want TYPE MAJOR:MINOR ACCESS such as \"c 195:0 rwm\"", text)
	}
	if strings.TrimSpace(text) == "a" {
		return deviceRule{kind: wildcard, major: wildcard, minor: wildcard, access: accAll}, nil
	}
	f := strings.Fields(text)
	if len(f) != 3 {
		return bad()
	}
	var r deviceRule
	switch f[0] {
	case "c":
		r.kind = devChar
	case "b":
		r.kind = devBlock
	case "a":
		r.kind = wildcard
	default:
		return bad()
	}
	major, minor, ok := strings.Cut(f[1], ":")
	if !ok {
		return bad()
	}
	for _, n := range []struct {
		text string
		to   *int32
	}{{major, &r.major}, {minor, &r.minor}} {
		if n.text == "*" {
			*n.to = wildcard
			continue
		}
		v, err := strconv.ParseInt(n.text, 10, 32)
		if err != nil || v < 0 {
			return bad()
		}
		*n.to = int32(v)
	}
	for _, c := range f[2] {
		switch c {
		case 'r':
			r.access |= accRead
		case 'w':
			r.access |= accWrite
		case 'm':
			r.access |= accMknod
		default:
			return bad()
		}
	}
	return r, nil
}

// assemble makes the program that refuses what is in deny, allows what is in allow, and all the rest if rest says so. A
// rule that refuses is for every kind of access.
func assemble(deny, allow []deviceRule, rest bool) []insn {
	p := []insn{
		{op: opLoad32, reg: 2 | 1<<4, off: 0}, // r2: access << 16 | kind
		{op: opMovReg, reg: 3 | 2<<4},
		{op: opAndImm, reg: 3, imm: 0xffff}, // r3: kind
		{op: opRshImm, reg: 2, imm: 16},     // r2: access
		{op: opLoad32, reg: 4 | 1<<4, off: 4},
		{op: opLoad32, reg: 5 | 1<<4, off: 8},
	}
	for i, r := range slices.Concat(deny, allow) {
		verdict := int32(1)
		if i < len(deny) {
			verdict, r.access = 0, accAll
		}
		var tests []insn // each jumps to the next rule if it fails
		if r.kind != wildcard {
			tests = append(tests, insn{op: opJneImm, reg: 3, imm: r.kind})
		}
		if r.access != accAll {
			tests = append(tests,
				insn{op: opMovReg, reg: 0 | 2<<4},
				insn{op: opAndImm, reg: 0, imm: accAll &^ r.access},
				insn{op: opJneImm, reg: 0, imm: 0})
		}
		if r.major != wildcard {
			tests = append(tests, insn{op: opJneImm, reg: 4, imm: r.major})
		}
		if r.minor != wildcard {
			tests = append(tests, insn{op: opJneImm, reg: 5, imm: r.minor})
		}
		for i := range tests {
			if tests[i].op == opJneImm {
				tests[i].off = int16(len(tests) - i - 1 + 2)
			}
		}
		p = append(p, tests...)
		p = append(p, insn{op: opMovImm, reg: 0, imm: verdict}, insn{op: opExit})
	}
	last := int32(0)
	if rest {
		last = 1
	}
	return append(p, insn{op: opMovImm, reg: 0, imm: last}, insn{op: opExit})
}

// loadFilter loads a program into the kernel.
func loadFilter(p []insn) (fd, error) {
	license := [4]byte{'G', 'P', 'L', 0}
	attr := struct {
		progType, count uint32
		insns, license  uint64
		logLevel, size  uint32
		log             uint64
		version, flags  uint32
	}{
		progType: progType, count: uint32(len(p)),
		insns: uint64(uintptr(unsafe.Pointer(&p[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	n, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(p)
	runtime.KeepAlive(&license)
	if errno != 0 {
		return closed, fmt.Errorf("load device filter: %w", errno)
	}
	unix.CloseOnExec(int(n))
	return fd(n), nil
}

// attach puts a filter on a cgroup, or takes it off.
func attach(dir string, filter fd, on bool) error {
	target, err := open(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer target.close()
	attr := struct{ target, prog, hook, flags uint32 }{uint32(target), uint32(filter), hookPoint, 0}
	cmd := uintptr(unix.BPF_PROG_DETACH)
	if on {
		cmd, attr.flags = unix.BPF_PROG_ATTACH, unix.BPF_F_ALLOW_MULTI
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return fmt.Errorf("device filter of %s: %w", filepath.Base(dir), errno)
	}
	return nil
}

// canFilterDevices reports whether this process may load such programs.
func canFilterDevices() bool {
	f, err := loadFilter(assemble(nil, nil, true))
	f.close()
	return err == nil
}

// filterDevices lets a cgroup use devices as assemble says. The filter lasts as long as the cgroup or until unfilter.
func filterDevices(dir string, deny, allow []string, rest bool) (fd, error) {
	var rules [2][]deviceRule
	for i, list := range [][]string{deny, allow} {
		for _, text := range list {
			r, err := parseDevice(text)
			if err != nil {
				return closed, err
			}
			rules[i] = append(rules[i], r)
		}
	}
	f, err := loadFilter(assemble(rules[0], rules[1], rest))
	if err != nil {
		return closed, err
	}
	if err := attach(dir, f, true); err != nil {
		f.close()
		return closed, err
	}
	return f, nil
}

// unfilter takes a filter off and closes it.
func unfilter(dir string, filter *fd) error {
	if *filter == closed {
		return nil
	}
	err := attach(dir, *filter, false)
	filter.close()
	return err
}
