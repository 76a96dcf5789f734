package gpu

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// nvidia asks nvidia-smi, once for all there is to know; and once more for the links between devices, which stay.
type nvidia struct {
	m     Machine
	links []int32 // by device; nil: not asked yet
	able  []int32 // compute capability by device; likewise
}

// smiLog is what of `nvidia-smi -q -x` is read, as driver 580 writes it. Older drivers have other names for some of it.
type smiLog struct {
	GPUs []smiGPU `xml:"gpu"`
}

type smiGPU struct {
	ID     string `xml:"id,attr"`
	Name   string `xml:"product_name"`
	UUID   string `xml:"uuid"`
	Minor  string `xml:"minor_number"`
	MIG    string `xml:"mig_mode>current_mig"`
	Parts  []mig  `xml:"mig_devices>mig_device"`
	Memory struct {
		Total string `xml:"total"`
		Used  string `xml:"used"`
	} `xml:"fb_memory_usage"`
	Util     string `xml:"utilization>gpu_util"`
	Temp     string `xml:"temperature>gpu_temp"`
	Power    string `xml:"gpu_power_readings>average_power_draw"`
	PowerNow string `xml:"gpu_power_readings>instant_power_draw"`
	PowerOld string `xml:"gpu_power_readings>power_draw"`
	Recovery string `xml:"gpu_recovery_action"`
	PCI      struct {
		Replays  string `xml:"replay_counter"`
		MaxWidth string `xml:"pci_gpu_link_info>link_widths>max_link_width"`
		Width    string `xml:"pci_gpu_link_info>link_widths>current_link_width"`
	} `xml:"pci"`
	ECC struct {
		SRAMParity string `xml:"volatile>sram_uncorrectable_parity"`
		SRAMSecded string `xml:"volatile>sram_uncorrectable_secded"`
		SRAM       string `xml:"volatile>sram_uncorrectable"`
		DRAM       string `xml:"volatile>dram_uncorrectable"`
		Threshold  string `xml:"aggregate>sram_threshold_exceeded"`
		Channel    string `xml:"channel_repair_pending"`
		TPC        string `xml:"tpc_repair_pending"`
		Broken     string `xml:"unrepairable_memory"`
	} `xml:"ecc_errors"`
	Retiring string `xml:"retired_pages>pending_retirement"`
	Rows     struct {
		Pending string `xml:"remapped_row_pending"`
		Failure string `xml:"remapped_row_failure"`
	} `xml:"remapped_rows"`
	Throttle smiThrottle `xml:"clocks_event_reasons"`
	Old      smiThrottle `xml:"clocks_throttle_reasons"` // before driver 535
	Fabric   string      `xml:"fabric>health>summary"`
}

type smiThrottle struct {
	Thermal    string `xml:"clocks_event_reason_hw_thermal_slowdown"`
	Brake      string `xml:"clocks_event_reason_hw_power_brake_slowdown"`
	Software   string `xml:"clocks_event_reason_sw_thermal_slowdown"`
	OldThermal string `xml:"clocks_throttle_reason_hw_thermal_slowdown"`
	OldBrake   string `xml:"clocks_throttle_reason_hw_power_brake_slowdown"`
	OldSoft    string `xml:"clocks_throttle_reason_sw_thermal_slowdown"`
}

// mig is a part of a device.
type mig struct {
	Instance string `xml:"gpu_instance_id"`
	Compute  string `xml:"compute_instance_id"`
	UUID     string `xml:"uuid"` // driver 560 and later
	Total    string `xml:"fb_memory_usage>total"`
	Used     string `xml:"fb_memory_usage>used"`
}

// Look implements Vendor.
func (v *nvidia) Look(ctx context.Context) ([]Seen, error) {
	out, err := v.m.Run(ctx, "nvidia-smi", "-q", "-x")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var log smiLog
	if err := xml.Unmarshal(out, &log); err != nil {
		return nil, fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	if v.links == nil && len(log.GPUs) > 0 {
		topo, _ := v.m.Run(ctx, "nvidia-smi", "topo", "-m") // without it nothing is known of links
		v.links = parseLinks(string(topo), len(log.GPUs))
		// drivers before 510 do not tell
		able, _ := v.m.Run(ctx, "nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
		v.able = parseCapabilities(string(able))
	}
	parts := v.parts(ctx, log.GPUs)
	var list []Seen
	for i := range log.GPUs {
		g := &log.GPUs[i]
		s := Seen{Device: v.device(g, i), Reading: g.reading()}
		if i < len(v.links) {
			s.Links = v.links[i]
		}
		if i < len(v.able) {
			s.Capability = v.able[i]
		}
		if len(parts[i]) == 0 {
			list = append(list, s)
		}
		for k, p := range parts[i] {
			list = append(list, v.part(&s, g, i, k, p))
		}
	}
	v.linkErrors(ctx, list)
	return list, nil
}

// parseCapabilities reads a line a device: 9.0. What cannot be read is not known.
func parseCapabilities(text string) (out []int32) {
	for line := range strings.Lines(text) {
		major, minor, _ := strings.Cut(strings.TrimSpace(line), ".")
		a, err := strconv.ParseUint(major, 10, 8)
		b, err2 := strconv.ParseUint(minor, 10, 8)
		if err != nil || err2 != nil || b > 9 {
			a, b = 0, 0
		}
		out = append(out, int32(10*a+b))
	}
	return out
}

func (v *nvidia) device(g *smiGPU, index int) Device {
	d := Device{
		Vendor: "nvidia", Name: g.Name, Model: Model(g.Name), UUID: g.UUID, Bus: busOf(g.ID),
		Memory:  mebibytes(g.Memory.Total),
		Visible: strconv.Itoa(index),
	}
	// The number of its file is the driver's minor, which need not be the index: that goes by PCI address.
	if _, err := strconv.Atoi(g.Minor); err == nil {
		d.Files = []string{"/dev/nvidia" + g.Minor}
	}
	return d
}

func (g *smiGPU) reading() Reading {
	r := Reading{Util: number(g.Util), Used: mebibytes(g.Memory.Used), Temp: number(g.Temp), Power: number(g.Power)}
	for _, other := range []string{g.PowerNow, g.PowerOld} {
		if r.Power == 0 {
			r.Power = number(other)
		}
	}
	fault := func(is bool, level Level, format string, args ...any) {
		if is {
			r.Faults = append(r.Faults, Fault{level, fmt.Sprintf(format, args...)})
		}
	}
	dram, sram := number(g.ECC.DRAM), number(g.ECC.SRAMParity)+number(g.ECC.SRAMSecded)+number(g.ECC.SRAM)
	fault(dram > 0, Failure, "%.0f uncorrectable ECC errors in memory", dram)
	fault(sram > 0, Failure, "%.0f uncorrectable ECC errors on the chip", sram)
	fault(g.ECC.Threshold == "Yes", Failure, "more ECC errors on the chip than its maker allows")
	fault(g.ECC.Broken == "Yes", Failure, "memory that cannot be repaired")
	fault(g.Rows.Failure == "Yes", Failure, "a row of memory could not be remapped")
	fault(g.Recovery != "" && g.Recovery != "None" && g.Recovery != "N/A", recoveryLevel(g.Recovery),
		"its driver asks for: %s", g.Recovery)
	fault(g.Fabric == "Unhealthy", Failure, "its fabric is unhealthy")
	fault(g.Rows.Pending == "Yes", Warning, "a row of memory is to be remapped at the next reset")
	fault(g.Retiring == "Yes", Warning, "a page of memory is to be retired at the next reset")
	fault(g.ECC.Channel == "Yes" || g.ECC.TPC == "Yes", Warning, "a repair waits for the next reset")
	t := [...]smiThrottle{g.Throttle, g.Old}
	is := func(words ...string) bool {
		for _, w := range words {
			if w == "Active" {
				return true
			}
		}
		return false
	}
	fault(is(t[0].Thermal, t[1].OldThermal, t[0].Software, t[1].OldSoft), Warning, "slowed down by heat (%.0f C)", r.Temp)
	fault(is(t[0].Brake, t[1].OldBrake), Warning, "slowed down by its power supply")
	most, width := number(strings.TrimSuffix(g.PCI.MaxWidth, "x")), number(strings.TrimSuffix(g.PCI.Width, "x"))
	fault(width > 0 && width < most, Warning, "its PCIe link has %.0f of %.0f lanes", width, most)
	r.Counts = append(r.Counts, Count{What: "PCIe replays", N: int64(number(g.PCI.Replays)), Level: Warning, Allow: 8})
	return r
}

// recoveryLevel: what is to be reset or rebooted serves nobody; what is to be drained serves on for those who have it.
func recoveryLevel(action string) Level {
	if strings.HasPrefix(action, "Drain") {
		return Warning
	}
	return Failure
}

// parts finds the parts of divided devices: their profiles are only in `nvidia-smi -L`.
func (v *nvidia) parts(ctx context.Context, gpus []smiGPU) map[int][]migName {
	divided := false
	for i := range gpus {
		divided = divided || gpus[i].MIG == "Enabled" && len(gpus[i].Parts) > 0
	}
	if !divided {
		return nil
	}
	list, err := v.m.Run(ctx, "nvidia-smi", "-L")
	if err != nil {
		return nil
	}
	return parseParts(string(list))
}

// migName is a line of `nvidia-smi -L` about a part.
type migName struct{ profile, uuid string }

func parseParts(list string) map[int][]migName {
	parts, at := map[int][]migName{}, -1
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		switch {
		case len(f) > 1 && f[0] == "GPU":
			at = -1
			if n, err := strconv.Atoi(strings.TrimSuffix(f[1], ":")); err == nil {
				at = n
			}
		case len(f) > 1 && f[0] == "MIG" && at >= 0:
			_, id, _ := strings.Cut(line, "UUID:")
			parts[at] = append(parts[at], migName{f[1], strings.TrimRight(strings.TrimSpace(id), ")")})
		}
	}
	return parts
}

// part makes the k-th part of a device. Its use is told only for the whole; its memory is its own, and it may use its
// device by the files of its own capabilities.
func (v *nvidia) part(whole *Seen, g *smiGPU, index, k int, name migName) Seen {
	s := *whole
	s.Model, s.UUID, s.Visible, s.Parent = name.profile, name.uuid, name.uuid, whole.UUID
	if k >= len(g.Parts) {
		return s
	}
	p := g.Parts[k]
	s.Memory, s.Used = mebibytes(p.Total), mebibytes(p.Used)
	dir := fmt.Sprintf("proc/driver/nvidia/capabilities/gpu%s/mig/gi%s", g.Minor, p.Instance)
	for _, access := range []string{path.Join(dir, "access"), path.Join(dir, "ci"+p.Compute, "access")} {
		if minor := field(v.m.Root, access, "DeviceFileMinor"); minor != "" {
			s.Files = append(s.Files[:len(s.Files):len(s.Files)], "/dev/nvidia-caps/nvidia-cap"+minor)
		}
	}
	return s
}

// field reads a line "key: value" of a file.
func field(root fs.FS, name, key string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, value, _ := strings.Cut(line, ":"); strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// linkErrors counts the errors of NVLink, where there is one.
func (v *nvidia) linkErrors(ctx context.Context, list []Seen) {
	linked := false
	for i := range list {
		linked = linked || list[i].Links != 0
	}
	if !linked {
		return
	}
	out, err := v.m.Run(ctx, "nvidia-smi", "nvlink", "-e")
	if err != nil {
		return
	}
	counts := parseLinkErrors(string(out))
	for i := range list {
		list[i].Counts = append(list[i].Counts, counts[list[i].UUID]...)
	}
}

// parseLinkErrors adds up lines such as "Link 3: Replay Errors: 0" below "GPU 0: … (UUID: …)".
func parseLinkErrors(text string) map[string][]Count {
	out, at := map[string][]Count{}, ""
	sums := map[string]map[string]int64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if _, id, ok := strings.Cut(line, "UUID:"); ok && strings.HasPrefix(line, "GPU ") {
			at = strings.TrimRight(strings.TrimSpace(id), ")")
			sums[at] = map[string]int64{}
			continue
		}
		f := strings.Split(line, ":")
		if at == "" || len(f) != 3 || !strings.HasPrefix(f[0], "Link ") {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(f[2]), 10, 64)
		if err == nil {
			sums[at][strings.TrimSpace(f[1])] += n
		}
	}
	for id, by := range sums {
		out[id] = append(out[id],
			Count{What: "NVLink recovery errors", N: by["Recovery Errors"], Level: Failure},
			Count{What: "NVLink replay errors", N: by["Replay Errors"], Level: Warning, Allow: 10},
			Count{What: "NVLink CRC errors", N: by["CRC Errors"], Level: Warning, Allow: 100})
	}
	return out
}

// number reads the number that a text begins with; 0 for "N/A".
func number(text string) float64 {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, _ := strconv.ParseFloat(word, 64) // what is no number is not known
	return v
}

func mebibytes(text string) core.Bytes { return core.Bytes(number(text)) * core.MiB }
