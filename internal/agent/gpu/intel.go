package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// intel asks xpu-smi; where there is none, the kernel tells which cards have memory of their own.
type intel struct{ m Machine }

type xpu struct {
	ID     int    `json:"device_id"`
	Name   string `json:"device_name"`
	Kind   string `json:"device_function_type"`
	BDF    string `json:"pci_bdf_address"`
	UUID   string `json:"uuid"`
	Memory amount `json:"memory_physical_size_byte"`
}

// Look implements Vendor.
func (v *intel) Look(ctx context.Context) ([]Seen, error) {
	out, err := v.m.Run(ctx, "xpu-smi", "discovery", "-j")
	if errors.Is(err, exec.ErrNotFound) {
		return v.sysfs(), nil
	}
	if err != nil {
		return nil, err
	}
	var all struct {
		List []xpu `json:"device_list"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("xpu-smi discovery: %w", err)
	}
	var list []Seen
	for _, x := range all.List {
		if x.Kind == "virtual" {
			continue
		}
		if x.Memory == 0 { // told of one device only
			if out, err := v.m.Run(ctx, "xpu-smi", "discovery", "-d", strconv.Itoa(x.ID), "-j"); err == nil {
				_ = json.Unmarshal(out, &x) // without it its memory is not known
			}
		}
		s := Seen{Device: Device{
			Vendor: "intel", Name: x.Name, Model: Model(x.Name), UUID: x.UUID, Bus: busOf(x.BDF), Memory: core.Bytes(x.Memory),
			Visible: strconv.Itoa(len(list)),
		}}
		s.Files = drmFiles(v.m.Root, s.Bus)
		v.stats(ctx, x.ID, &s)
		list = append(list, s)
	}
	return list, nil
}

// stats reads how a device does.
func (v *intel) stats(ctx context.Context, id int, s *Seen) {
	out, err := v.m.Run(ctx, "xpu-smi", "stats", "-d", strconv.Itoa(id), "-j")
	if err != nil {
		return
	}
	var st struct {
		Device []xpuStat `json:"device_level"`
		Tiles  []struct {
			Data []xpuStat `json:"data_list"`
		} `json:"tile_level"`
	}
	if json.Unmarshal(out, &st) != nil {
		return
	}
	for _, t := range st.Tiles {
		for _, d := range t.Data {
			d.add(s, float64(len(st.Tiles)))
		}
	}
	for _, d := range st.Device {
		d.add(s, 1)
	}
}

type xpuStat struct {
	Kind  string  `json:"metrics_type"`
	Value float64 `json:"value"`
}

// add puts a number in its place; what tiles tell is of a part of the device each.
func (d xpuStat) add(s *Seen, tiles float64) {
	switch d.Kind {
	case "XPUM_STATS_GPU_UTILIZATION":
		s.Util = min(100, s.Util+d.Value/tiles)
	case "XPUM_STATS_MEMORY_USED": // MiB
		s.Used += core.Bytes(d.Value) * core.MiB
	case "XPUM_STATS_GPU_CORE_TEMPERATURE":
		s.Temp = max(s.Temp, d.Value)
	case "XPUM_STATS_POWER":
		s.Power += d.Value
	case "XPUM_STATS_RAS_ERROR_CAT_NON_COMPUTE_ERRORS_UNCORRECTABLE",
		"XPUM_STATS_RAS_ERROR_CAT_COMPUTE_ERRORS_UNCORRECTABLE",
		"XPUM_STATS_RAS_ERROR_CAT_CACHE_ERRORS_UNCORRECTABLE":
		if d.Value > 0 {
			s.Faults = append(s.Faults, Fault{Failure, fmt.Sprintf("%.0f uncorrectable errors", d.Value)})
		}
	}
}

// sysfs lists cards of Intel's with memory of their own: those inside a CPU are no accelerators to give out.
func (v *intel) sysfs() []Seen {
	cards, err := fs.Glob(v.m.Root, "sys/class/drm/card[0-9]*")
	if err != nil {
		return nil
	}
	var list []Seen
	for _, dir := range cards {
		memory := readText(v.m.Root, path.Join(dir, "lmem_total_bytes"))
		if strings.Contains(path.Base(dir), "-") || memory == "" ||
			readText(v.m.Root, path.Join(dir, "device/vendor")) != "0x8086" {
			continue
		}
		bus := field2(readText(v.m.Root, path.Join(dir, "device/uevent")), "PCI_SLOT_NAME")
		d := Device{
			Vendor: "intel", Name: "Intel GPU " + readText(v.m.Root, path.Join(dir, "device/device")), Model: "intel",
			UUID: "INTEL-" + bus, Bus: busOf(bus), Memory: core.Bytes(number(memory)), Visible: strconv.Itoa(len(list)),
		}
		d.Files = drmFiles(v.m.Root, d.Bus)
		list = append(list, Seen{Device: d})
	}
	return list
}

// field2 reads KEY=VALUE.
func field2(text, key string) string {
	for line := range strings.Lines(text) {
		if k, value, _ := strings.Cut(line, "="); k == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
