package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// tenstorrent asks tt-smi for a snapshot; where there is none, the kernel's driver names the cards.
type tenstorrent struct{ m Machine }

type ttDevice struct {
	Board struct {
		Bus    string `json:"bus_id"` // N/A for a chip that is reached through another of its board
		Kind   string `json:"board_type"`
		ID     string `json:"board_id"`
		DRAM   any    `json:"dram_status"`
		Coords string `json:"coords"`
	} `json:"board_info"`
	Telemetry struct {
		Power amount `json:"power"`
		Temp  amount `json:"asic_temperature"`
	} `json:"telemetry"`
	SMBus struct {
		Faults   string `json:"FAULTS"`
		Throttle string `json:"THROTTLER"`
	} `json:"smbus_telem"`
}

// ttMemory is what a board has, by its maker's data sheets.
var ttMemory = map[string]core.Bytes{"n150": 12, "n300": 24, "p100": 28, "p150": 32, "p300": 64, "e75": 8, "e150": 8}

// Look implements Vendor.
func (v *tenstorrent) Look(ctx context.Context) ([]Seen, error) {
	files, _ := fs.Glob(v.m.Root, "dev/tenstorrent/[0-9]*")
	out, err := v.m.Run(ctx, "tt-smi", "-s", "--snapshot_no_tty")
	if errors.Is(err, exec.ErrNotFound) {
		return v.sysfs(files), nil
	}
	if err != nil {
		return nil, err
	}
	var snap struct {
		Devices []ttDevice `json:"device_info"`
	}
	if err := json.Unmarshal(out, &snap); err != nil {
		return nil, fmt.Errorf("tt-smi -s: %w", err)
	}
	var list []Seen
	for i := range snap.Devices {
		t := &snap.Devices[i]
		if t.Board.Bus == "" || t.Board.Bus == "N/A" { // the other half of a board
			if at := slices.IndexFunc(list, func(s Seen) bool { return s.UUID == t.Board.ID }); at >= 0 {
				t.read(&list[at])
			}
			continue
		}
		model := ttModel(t.Board.Kind)
		s := Seen{Device: Device{
			Vendor: "tenstorrent", Name: "Tenstorrent " + t.Board.Kind, Model: model, UUID: t.Board.ID, Bus: busOf(t.Board.Bus),
			Memory: ttMemory[model] * core.GiB, Visible: strconv.Itoa(len(list)),
			Files: []string{"/dev/tenstorrent/" + strconv.Itoa(len(list))},
		}}
		t.read(&s)
		list = append(list, s)
	}
	return list, nil
}

// read adds what a chip tells to its board.
func (t *ttDevice) read(s *Seen) {
	s.Power += float64(t.Telemetry.Power)
	s.Temp = max(s.Temp, float64(t.Telemetry.Temp))
	if bits(t.SMBus.Faults) != 0 {
		s.Faults = append(s.Faults, Fault{Failure, "its board reports faults " + t.SMBus.Faults})
	}
	if t.Board.DRAM == false || t.Board.DRAM == "False" {
		s.Faults = append(s.Faults, Fault{Failure, "its memory is not trained"})
	}
	if bits(t.SMBus.Throttle) != 0 {
		s.Faults = append(s.Faults, Fault{Warning, fmt.Sprintf("slowed down (%.0f C)", s.Temp)})
	}
}

func bits(hex string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(hex, "0x"), 16, 64) // "N/A" and nothing: none
	return n
}

// ttModel is the board's name without its variant: "n300 L" is n300, "p150a" p150.
func ttModel(kind string) string {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(kind)), " ")
	return strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz")
}

func (v *tenstorrent) sysfs(files []string) []Seen {
	var list []Seen
	for _, f := range files {
		n := path.Base(f)
		dir := "sys/class/tenstorrent/tenstorrent!" + n
		kind := readText(v.m.Root, path.Join(dir, "tt_card_type"))
		model := ttModel(kind)
		d := Device{
			Vendor: "tenstorrent", Name: "Tenstorrent " + kind, Model: model,
			UUID:    readText(v.m.Root, path.Join(dir, "tt_serial")),
			Bus:     busOf(field2(readText(v.m.Root, path.Join(dir, "device/uevent")), "PCI_SLOT_NAME")),
			Memory:  ttMemory[model] * core.GiB,
			Visible: n, Files: []string{"/dev/tenstorrent/" + n},
		}
		if d.Model == "" {
			d.Model = "tenstorrent"
		}
		if d.UUID == "" {
			d.UUID = "TT-" + n
		}
		list = append(list, Seen{Device: d})
	}
	return list
}
