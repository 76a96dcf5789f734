package grammar

import (
	"fmt"
	"strconv"
	"strings"
)

// signals are Linux's, by number; the first name of a number is the one printed.
var signals = [...]struct {
	name string
	num  int
}{
	{"HUP", 1},
	{"INT", 2},
	{"QUIT", 3},
	{"ILL", 4},
	{"TRAP", 5},
	{"ABRT", 6},
	{"IOT", 6},
	{"BUS", 7},
	{"FPE", 8},
	{"KILL", 9},
	{"USR1", 10},
	{"SEGV", 11},
	{"USR2", 12},
	{"PIPE", 13},
	{"ALRM", 14},
	{"TERM", 15},
	{"STKFLT", 16},
	{"CHLD", 17},
	{"CLD", 17},
	{"CONT", 18},
	{"STOP", 19},
	{"TSTP", 20},
	{"TTIN", 21},
	{"TTOU", 22},
	{"URG", 23},
	{"XCPU", 24},
	{"XFSZ", 25},
	{"VTALRM", 26},
	{"PROF", 27},
	{"WINCH", 28},
	{"IO", 29},
	{"POLL", 29},
	{"PWR", 30},
	{"SYS", 31},
}

const (
	maxSignal  = 64 // the last realtime signal
	wantSignal = "a signal's name or number, such as USR1, SIGUSR1 or 10"
)

// ParseSignal reads a signal's name, in any case, with or without SIG, or its number.
func ParseSignal(s string) (int, error) {
	t := &text{what: "signal", want: wantSignal, in: s}
	if s != "" && isDigit(s[0]) {
		n, err := t.number(maxSignal)
		switch {
		case err != nil:
			return 0, err
		case !t.end():
			return 0, t.unexpected()
		case n == 0:
			return 0, t.fail(0, "there is no signal 0")
		}
		return int(n), nil
	}
	name := s
	if t.takeFold("SIG") {
		name = s[t.pos:]
	}
	for _, sig := range signals {
		if strings.EqualFold(sig.name, name) {
			return sig.num, nil
		}
	}
	return 0, t.fail(0, "unknown signal")
}

// SignalName returns the name without SIG, or the number where there is none.
func SignalName(n int) string {
	for _, sig := range signals {
		if sig.num == n {
			return sig.name
		}
	}
	return strconv.Itoa(n)
}

// SignalSpec is what --signal asks for: a warning some time before the limit.
type SignalSpec struct {
	Signal      int
	Seconds     int  // before the limit
	Batch       bool // B: to the batch shell only, not to the steps
	Reservation bool // R: the job may overlap a reservation
}

// defaultWarning is the lead Slurm gives a --signal without @SEC.
const defaultWarning = 60

// ParseSignalSpec reads [{R|B}:]SIG[@SEC]; the letters may be joined, SEC is 0 to 65535.
func ParseSignalSpec(s string) (SignalSpec, error) {
	t := &text{what: "signal", want: "[{R|B}:]SIG[@SEC], such as B:USR1@300", in: s}
	spec := SignalSpec{Seconds: defaultWarning}
	if flags, _, found := strings.Cut(s, ":"); found {
		if flags == "" {
			return SignalSpec{}, t.fail(0, "no R or B before ':'")
		}
		for i := range len(flags) {
			switch flags[i] | 0x20 {
			case 'b':
				spec.Batch = true
			case 'r':
				spec.Reservation = true
			default:
				return SignalSpec{}, t.fail(i, "%q is neither R nor B", flags[i])
			}
		}
		t.pos = len(flags) + 1
	}
	name, sec, timed := strings.Cut(s[t.pos:], "@")
	num, err := ParseSignal(name)
	if err != nil {
		return SignalSpec{}, t.fail(t.pos, "%q is not a signal", name)
	}
	spec.Signal = num
	if timed {
		t.pos = len(s) - len(sec)
		n, err := t.number(65535)
		if err != nil {
			return SignalSpec{}, err
		}
		if !t.end() {
			return SignalSpec{}, t.unexpected()
		}
		spec.Seconds = int(n)
	}
	return spec, nil
}

func (s SignalSpec) String() string {
	var flags string
	if s.Reservation {
		flags += "R"
	}
	if s.Batch {
		flags += "B"
	}
	if flags != "" {
		flags += ":"
	}
	return fmt.Sprintf("%s%s@%d", flags, SignalName(s.Signal), s.Seconds)
}
