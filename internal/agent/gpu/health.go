package gpu

import (
	"fmt"
	"slices"
	"strings"
)

// Level is how bad something is.
type Level uint8

// The levels. A device with a Warning is still used; one with a Failure is not.
const (
	Healthy Level = iota
	Warning
	Failure
)

func (l Level) String() string { return [...]string{"healthy", "warning", "failure"}[l] }

// Fault is something wrong with a device.
type Fault struct {
	Level Level
	Text  string
}

// Count is a number of faults so far; only its growth means something.
type Count struct {
	What  string
	N     int64
	Level Level // when it has grown by more than Allow between two looks
	Allow int64
}

// Health is what is to be said of a device.
type Health struct {
	Level  Level
	Faults []Fault // worst first
}

// String returns what is wrong.
func (h Health) String() string {
	var out []string
	for _, f := range h.Faults {
		out = append(out, f.Text)
	}
	return strings.Join(out, "; ")
}

func (h *Health) add(f Fault) {
	if slices.Contains(h.Faults, f) {
		return
	}
	h.Faults = append(h.Faults, f)
	h.Level = max(h.Level, f.Level)
	slices.SortStableFunc(h.Faults, func(a, b Fault) int { return int(b.Level) - int(a.Level) })
}

// badLooks is how many looks in a row a tool may fail before its devices count as failed.
const badLooks = 3

// Watch judges devices by what is seen of them over time. It begins with the devices that were found first: one that is
// missing later has failed.
type Watch struct {
	devices List
	counts  map[string]int64 // by UUID and what is counted: at the last look,
	failed  map[string]int64 // and of those that grew to a failure: before it did
	loads   int              // of the driver, as of the last look
	bad     int              // looks in a row in which a tool failed
}

// NewWatch makes a watch over devices.
func NewWatch(devices List) *Watch {
	return &Watch{devices: devices, counts: map[string]int64{}, failed: map[string]int64{}}
}

// Judge tells of each device how it is, by what was seen now, what the kernel log told (by PCI address) and what others
// found (by UUID).
func (w *Watch) Judge(seen []Seen, errs []error, kernel map[string][]Fault, others map[string][]Fault) []Health {
	w.bad++
	if len(errs) == 0 {
		w.bad = 0
	}
	out := make([]Health, len(w.devices))
	for i := range w.devices {
		d, h := &w.devices[i], &out[i]
		for _, f := range slices.Concat(kernel[slot(d.Bus)], others[d.UUID], others[d.Parent]) {
			h.add(f)
		}
		at := slices.IndexFunc(seen, func(s Seen) bool { return s.UUID == d.UUID })
		if at < 0 {
			h.add(w.missing(errs))
			continue
		}
		for _, f := range seen[at].Faults {
			h.add(f)
		}
		for _, c := range seen[at].Counts {
			w.grown(h, d.UUID, c)
		}
	}
	return out
}

// Loaded returns how often the driver was loaded so far: one that is loaded again has reset its devices.
func (w *Watch) Loaded(times int) {
	if times != w.loads {
		w.loads = times
		clear(w.failed)
		clear(w.counts)
	}
}

func (w *Watch) missing(errs []error) Fault {
	switch {
	case len(errs) == 0:
		return Fault{Failure, "its driver does not list it any more"}
	case w.bad >= badLooks:
		return Fault{Failure, errs[0].Error()}
	}
	return Fault{Warning, errs[0].Error()}
}

// grown notes a counter that has grown since the last look. What grew before the first one is nobody's job's. A failure
// stays until the counter is less than it was, for then the device was reset, or Loaded tells so.
func (w *Watch) grown(h *Health, uuid string, c Count) {
	key := uuid + " " + c.What
	old, known := w.counts[key]
	w.counts[key] = c.N
	if c.N < old {
		delete(w.failed, key)
	}
	since, failed := w.failed[key]
	switch grew := known && c.N-old > c.Allow; {
	case failed:
		old = since
	case !grew:
		return
	case c.Level == Failure:
		w.failed[key] = old
	}
	h.add(Fault{c.Level, fmt.Sprintf("%d new %s", c.N-old, c.What)})
}

// slot is a PCI address without its function, as the driver writes it in the kernel log.
func slot(bus string) string {
	at, _, _ := strings.Cut(bus, ".")
	return at
}
