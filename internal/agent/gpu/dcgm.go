package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// DCGM asks NVIDIA's own health monitor, where it is installed and its daemon runs. It gives faults by UUID of the
// devices it was told, which DCGM counts as nvidia-smi does.
func (m Machine) DCGM(ctx context.Context, devices List) (map[string][]Fault, error) {
	if m.Run == nil {
		m.Run = run
	}
	out, err := m.Run(ctx, "dcgmi", "health", "-c", "-j")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	by, err := parseDCGM(out)
	if err != nil {
		return nil, err
	}
	found := map[string][]Fault{}
	for i := range devices {
		d := &devices[i]
		if d.Vendor == "nvidia" && !d.Part() {
			if n, err := strconv.Atoi(d.Visible); err == nil && len(by[n]) > 0 {
				found[d.UUID] = by[n]
			}
		}
	}
	return found, nil
}

// dcgmNode is a part of DCGM's report: a value, or parts by name.
type dcgmNode struct {
	Value    string              `json:"value"`
	Children map[string]dcgmNode `json:"children"`
}

// parseDCGM finds what ails each device: below its number the report has a level for each system and what was found
// there.
func parseDCGM(out []byte) (map[int][]Fault, error) {
	var report struct {
		Body map[string]dcgmNode `json:"body"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("dcgmi health -c -j: %w", err)
	}
	by := map[int][]Fault{}
	for name, node := range report.Body {
		if !strings.HasPrefix(name, "GPU") {
			continue
		}
		if n, err := strconv.Atoi(strings.Trim(strings.TrimPrefix(name, "GPU"), " :")); err == nil {
			by[n] = append(by[n], node.faults(name)...)
			continue
		}
		for id, one := range node.Children {
			if n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(id), "GPU ")); err == nil {
				by[n] = append(by[n], one.faults(id)...)
			}
		}
	}
	for n := range by {
		slices.SortFunc(by[n], func(a, b Fault) int { return strings.Compare(a.Text, b.Text) })
	}
	return by, nil
}

// faults lists the systems that are not healthy.
func (d dcgmNode) faults(name string) []Fault {
	level, bad := map[string]Level{"warning": Warning, "failure": Failure, "fail": Failure}[strings.ToLower(d.Value)]
	var below []Fault
	var said []string
	for _, key := range slices.Sorted(maps.Keys(d.Children)) {
		c := d.Children[key]
		if f := c.faults(key); len(f) > 0 {
			below = append(below, f...)
		} else if c.Value != "" && len(c.Children) == 0 && !strings.EqualFold(c.Value, "healthy") {
			said = append(said, c.Value)
		}
	}
	if !bad || len(below) > 0 {
		return below
	}
	return []Fault{{level, strings.TrimSuffix(fmt.Sprintf("DCGM: %s: %s", name, strings.Join(said, ", ")), ": ")}}
}
