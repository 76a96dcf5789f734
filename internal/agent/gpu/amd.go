package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// amd asks amd-smi, or rocm-smi where that is all there is.
type amd struct {
	m      Machine
	static []amdGPU // does not change, and asking takes a second
}

// amdGPU is one entry of what amd-smi prints about each device (list, static and metric laid over each other).
type amdGPU struct {
	Index int    `json:"gpu"`
	BDF   string `json:"bdf"`
	UUID  string `json:"uuid"`
	ASIC  struct {
		Name string `json:"market_name"`
	} `json:"asic"`
	Bus struct {
		BDF string `json:"bdf"`
	} `json:"bus"`
	VRAM struct {
		Size amount `json:"size"`
	} `json:"vram"`
	Usage struct {
		GFX amount `json:"gfx_activity"`
	} `json:"usage"`
	Memory struct {
		Total amount `json:"total_vram"`
		Used  amount `json:"used_vram"`
	} `json:"mem_usage"`
	Power struct {
		Socket   amount `json:"socket_power"`
		Throttle string `json:"throttle_status"`
	} `json:"power"`
	Temp struct {
		Edge    amount `json:"edge"`
		Hotspot amount `json:"hotspot"`
	} `json:"temperature"`
	ECC struct {
		Uncorrectable amount `json:"total_uncorrectable_count"`
	} `json:"ecc"`
	PCIe struct {
		Replays amount `json:"replay_count"`
	} `json:"pcie"`
}

// amount is {"value": 5, "unit": "MB"}, a bare number, or "N/A".
type amount float64

// UnmarshalJSON implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(b []byte) error {
	var with struct {
		Value json.RawMessage `json:"value"`
	}
	if len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &with); err != nil {
			return err
		}
		b = with.Value
	}
	*a = amount(number(strings.Trim(string(b), `"`)))
	return nil
}

// Look implements Vendor.
func (v *amd) Look(ctx context.Context) ([]Seen, error) {
	if v.static == nil {
		list, err := v.ask(ctx, "static")
		if errors.Is(err, exec.ErrNotFound) {
			return v.rocm(ctx)
		}
		if err != nil {
			return nil, err
		}
		names, err := v.ask(ctx, "list")
		if err != nil {
			return nil, err
		}
		for i := range list {
			if at := slices.IndexFunc(names, func(n amdGPU) bool { return n.Index == list[i].Index }); at >= 0 {
				list[i].UUID, list[i].BDF = names[at].UUID, names[at].BDF
			}
		}
		v.static = list
	}
	if len(v.static) == 0 {
		return nil, nil
	}
	now, err := v.ask(ctx, "metric")
	if err != nil {
		return nil, err
	}
	var out []Seen
	for i := range v.static {
		if at := slices.IndexFunc(now, func(n amdGPU) bool { return n.Index == v.static[i].Index }); at >= 0 {
			out = append(out, v.seen(&v.static[i], &now[at]))
		}
	}
	return out, nil
}

// ask runs a subcommand. ROCm 7 wraps the list that those before print.
func (v *amd) ask(ctx context.Context, what string) ([]amdGPU, error) {
	out, err := v.m.Run(ctx, "amd-smi", what, "--json")
	if err != nil {
		return nil, err
	}
	var list []amdGPU
	var wrapped struct {
		GPUs []amdGPU `json:"gpu_data"`
	}
	if err = json.Unmarshal(out, &list); err != nil {
		if err = json.Unmarshal(out, &wrapped); err != nil {
			return nil, fmt.Errorf("amd-smi %s: %w", what, err)
		}
		list = wrapped.GPUs
	}
	return list, nil
}

func (v *amd) seen(is, does *amdGPU) Seen {
	bus := is.Bus.BDF
	if bus == "" {
		bus = is.BDF
	}
	size := max(is.VRAM.Size, does.Memory.Total)
	s := Seen{
		Device: Device{
			Vendor: "amd", Name: is.ASIC.Name, Model: Model(is.ASIC.Name), UUID: is.UUID, Bus: busOf(bus),
			Memory:  core.Bytes(size) * core.MiB,
			Visible: strconv.Itoa(is.Index),
		},
		Reading: Reading{
			Util: float64(does.Usage.GFX), Used: core.Bytes(does.Memory.Used) * core.MiB, Power: float64(does.Power.Socket),
			Temp: float64(max(does.Temp.Hotspot, does.Temp.Edge)),
		},
	}
	if s.UUID == "" {
		s.UUID = "AMD-" + s.Bus
	}
	s.Files = drmFiles(v.m.Root, s.Bus)
	if n := does.ECC.Uncorrectable; n > 0 {
		s.Faults = append(s.Faults, Fault{Failure, fmt.Sprintf("%.0f uncorrectable ECC errors", float64(n))})
	}
	if t := does.Power.Throttle; t == "THROTTLED" {
		s.Faults = append(s.Faults, Fault{Warning, fmt.Sprintf("slowed down (%.0f C)", s.Temp)})
	}
	s.Counts = []Count{{What: "PCIe replays", N: int64(does.PCIe.Replays), Level: Warning, Allow: 8}}
	return s
}

// rocm asks rocm-smi, which has one table of texts for each card.
func (v *amd) rocm(ctx context.Context) ([]Seen, error) {
	out, err := v.m.Run(ctx, "rocm-smi", "--showproductname", "--showuniqueid", "--showbus", "--showmeminfo", "vram",
		"--showuse", "--showtemp", "--json")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var cards map[string]map[string]string
	if err := json.Unmarshal(out, &cards); err != nil {
		return nil, fmt.Errorf("rocm-smi: %w", err)
	}
	var list []Seen
	for n := 0; ; n++ {
		c, ok := cards[fmt.Sprintf("card%d", n)]
		if !ok {
			return list, nil
		}
		text := func(keys ...string) string {
			for _, k := range keys {
				if c[k] != "" && c[k] != "N/A" {
					return c[k]
				}
			}
			return ""
		}
		name := text("Card Series", "Card series", "Card Model", "Card model")
		s := Seen{
			Device: Device{
				Vendor: "amd", Name: name, Model: Model(name), UUID: text("Unique ID"), Bus: busOf(text("PCI Bus")),
				Memory: core.Bytes(number(text("VRAM Total Memory (B)"))), Visible: strconv.Itoa(n),
			},
			Reading: Reading{
				Util: number(text("GPU use (%)")), Used: core.Bytes(number(text("VRAM Total Used Memory (B)"))),
				Temp: number(text("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)")),
			},
		}
		if s.UUID == "" {
			s.UUID = "AMD-" + s.Bus
		}
		s.Files = drmFiles(v.m.Root, s.Bus)
		list = append(list, s)
	}
}

// readText reads a short file of the kernel's.
func readText(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
