package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// xids are the messages of NVIDIA's driver that say something about the device rather than about the program on it, by
// their number. Those of programs (13, 31, 43, 45, 68, 69 …) are nobody else's concern.
var xids = map[int]Fault{
	48:  {Failure, "double bit ECC error"},
	62:  {Failure, "its microcontroller halted"},
	63:  {Warning, "a row of memory was remapped"},
	64:  {Failure, "a row of memory could not be remapped"},
	74:  {Failure, "NVLink error"},
	79:  {Failure, "it has fallen off the bus"},
	92:  {Warning, "many corrected ECC errors"},
	94:  {Warning, "contained ECC error"},
	95:  {Failure, "uncontained ECC error"},
	119: {Failure, "its firmware does not answer"},
	120: {Failure, "its firmware failed"},
	140: {Failure, "unrecovered ECC error"},
	143: {Failure, "it failed to start"},
	144: {Warning, "NVLink fault (SAW)"},
	145: {Warning, "NVLink fault (RLW)"},
	149: {Warning, "NVLink fault (NETIR)"},
	154: {Warning, "its driver asks for recovery"},
}

// KernelLog collects what the kernel says of devices. A driver that is loaded again has reset them: what was before is
// over.
type KernelLog struct {
	by    map[string]map[int]Fault // by PCI address without function
	loads int
}

// Take reads one message.
func (k *KernelLog) Take(line string) {
	if strings.Contains(line, "NVRM: loading NVIDIA UNIX") {
		k.by = nil
		k.loads++
		return
	}
	_, rest, ok := strings.Cut(line, "NVRM: Xid (PCI:")
	if !ok {
		return
	}
	bus, rest, ok := strings.Cut(rest, "): ")
	if !ok {
		return
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, err := strconv.Atoi(digits)
	f, bad := xids[n]
	if err != nil || !bad {
		return
	}
	if k.by == nil {
		k.by = map[string]map[int]Fault{}
	}
	at := slot(busOf(bus))
	if k.by[at] == nil {
		k.by[at] = map[int]Fault{}
	}
	k.by[at][n] = Fault{f.Level, fmt.Sprintf("Xid %d: %s", n, f.Text)}
}

// Loads is how often the driver was loaded.
func (k *KernelLog) Loads() int { return k.loads }

// Faults returns what stands, by PCI address without function.
func (k *KernelLog) Faults() map[string][]Fault {
	out := map[string][]Fault{}
	for bus, by := range k.by {
		for _, n := range slices.Sorted(maps.Keys(by)) {
			out[bus] = append(out[bus], by[n])
		}
	}
	return out
}
