package gpu

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Device is one accelerator, or the part of one that is given out by itself.
type Device struct {
	Vendor string     // nvidia, amd, intel, tenstorrent, fake
	Name   string     // as its maker calls it
	Model  string     // the word people ask for: h200, mi300x; of a part its profile: 1g.10gb
	UUID   string     //
	Bus    string     // its PCI address, as the kernel writes it
	Memory core.Bytes // 0: not known
	// Capability as core.Unit has it.
	Capability int32
	Files      []string // its device files. Parts of one device share some
	// Visible is what programs call it: its number among its maker's, or the UUID of a part.
	Visible string
	Parent  string // UUID of the device it is a part of
	// Variable names devices to programs, where they know neither CUDA's nor their maker's. Those names hold whatever
	// is hidden.
	Variable string
	// Where it is, as core.Unit says it.
	Socket, Links int32
}

// Part reports whether it is a part of a device.
func (d *Device) Part() bool { return d.Parent != "" }

// Reading is how a device does.
type Reading struct {
	Util   float64    // percent of the time that something ran on it
	Used   core.Bytes // of its memory
	Temp   float64    // degrees Celsius
	Power  float64    // watts
	Faults []Fault    // that are there now
	Counts []Count    // of faults that matter when they grow
}

// Seen is a device and how it does.
type Seen struct {
	Device
	Reading
}

// Vendor knows the devices of one maker.
type Vendor interface {
	// Look finds them; none and no error where there are none. A tool that is there and fails is an error.
	Look(ctx context.Context) ([]Seen, error)
}

// Machine is where vendors look: a file system and programs. Zero fields are the real ones.
type Machine struct {
	Root fs.FS
	// Run gives the output of a program; exec.ErrNotFound where there is no such program.
	Run func(ctx context.Context, name string, args ...string) ([]byte, error)
}

// toolTimeout is how long a maker's tool may take. They hang when the driver does.
const toolTimeout = 15 * time.Second

func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, exec.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second // a child of it may hold its output
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("%s did not answer within %s", name, toolTimeout)
	case err != nil:
		return out, fmt.Errorf("%s: %w: %s", name, err, firstLine(out))
	}
	return out, nil
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}

// Vendors are all makers whose devices are known.
func (m Machine) Vendors() []Vendor {
	if m.Root == nil {
		m.Root = os.DirFS("/")
	}
	if m.Run == nil {
		m.Run = run
	}
	return []Vendor{&nvidia{m: m}, &amd{m: m}, &intel{m: m}, &gaudi{m: m}, &tenstorrent{m: m}}
}

// Look asks all vendors. A tool that fails keeps no other from answering.
func Look(ctx context.Context, vendors []Vendor) (all []Seen, errs []error) {
	for _, v := range vendors {
		list, err := v.Look(ctx)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, list...)
	}
	return all, errs
}

// List is the devices of a machine; a unit's index is its place.
type List []Device

// Count makes of devices what a node offers: how many of each model, and of each what is known.
func (l List) Count() (list []core.Gres, units []core.Unit) {
	for n := range l {
		d := &l[n]
		if i := slices.IndexFunc(list, func(g core.Gres) bool { return g.Type == d.Model }); i >= 0 {
			list[i].Count++
		} else {
			list = append(list, core.Gres{Name: "gpu", Type: d.Model, Count: 1})
		}
		units = append(units, core.Unit{
			Name: "gpu", Type: d.Model, Index: int32(n), Socket: d.Socket, Links: d.Links,
			Memory: d.Memory, Vendor: d.Vendor, Capability: d.Capability,
		})
	}
	return list, units
}

// Of are the devices behind a job's units. A unit's number says which it is, whatever its model is called: a site may
// have names of its own. A number that no device has, because somebody else than detection described the node, is
// nothing here.
func (l List) Of(given []core.GresAlloc) (out []Device) {
	for _, g := range given {
		if g.Name != "gpu" {
			continue
		}
		for _, u := range g.Units {
			if u >= 0 && int(u) < len(l) {
				out = append(out, l[u])
			}
		}
	}
	return out
}

// Denied lists the device files that are not among those of a job's units: whatever is not known to be its own is
// another's.
func (l List) Denied(given []core.GresAlloc) []string {
	mine := l.Of(given)
	var out, keep []string // parts of one device share files
	for i := range mine {
		keep = append(keep, mine[i].Files...)
	}
	for i := range l {
		for _, f := range l[i].Files {
			if !slices.Contains(keep, f) && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// Model shortens a product name to the word people ask for: "NVIDIA A100-SXM4-80GB" is "a100", "NVIDIA GeForce RTX
// 4090" is "rtx4090", "AMD Instinct MI300X" is "mi300x", "Intel(R) Data Center GPU Max 1550" is "max1550".
func Model(name string) string {
	f := strings.Fields(strings.NewReplacer("(r)", "", "(tm)", "", "[", "", "]", "").Replace(strings.ToLower(name)))
	for len(f) > 1 && slices.Contains(families, f[0]) {
		f = f[1:]
	}
	if len(f) == 0 {
		return ""
	}
	word, _, _ := strings.Cut(f[0], "-")
	if slices.Contains(series, word) && len(f) > 1 {
		next, _, _ := strings.Cut(f[1], "-")
		word += next
		if (next == "pro" || next == "rx") && len(f) > 2 {
			word += f[2]
		}
	}
	return word
}

// families come before the model and are not part of it; series are its first half.
var (
	families = []string{
		"nvidia", "geforce", "tesla", "quadro", "graphics", "device", "amd", "instinct", "radeon",
		"intel", "data", "center", "gpu",
	}
	series = []string{"rtx", "gtx", "titan", "rx", "max", "flex", "arc", "pro"}
)

// busOf writes a PCI address as the kernel does: nvidia-smi has eight digits of domain, the kernel four.
func busOf(bus string) string {
	bus = strings.ToLower(strings.TrimSpace(bus))
	if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) > 4 {
		return domain[len(domain)-4:] + ":" + rest
	}
	return bus
}

// drmFiles are the device files of a graphics device that the kernel's DRM drives.
func drmFiles(root fs.FS, bus string) []string {
	entries, err := fs.ReadDir(root, "sys/bus/pci/devices/"+bus+"/drm")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "card") || strings.HasPrefix(e.Name(), "renderD") {
			out = append(out, "/dev/dri/"+e.Name())
		}
	}
	return out
}
