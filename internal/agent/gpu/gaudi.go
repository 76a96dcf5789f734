package gpu

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// gaudi asks hl-smi for Intel's Gaudi accelerators.
type gaudi struct{ m Machine }

// gaudiFields are asked for, in this order.
const gaudiFields = "index,module_id,name,uuid,bus_id,memory.total,memory.used,utilization.aip," +
	"temperature.aip,power.draw"

// Look implements Vendor.
func (v *gaudi) Look(ctx context.Context) ([]Seen, error) {
	out, err := v.m.Run(ctx, "hl-smi", "-Q", gaudiFields, "-f", "csv,noheader")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rd := csv.NewReader(strings.NewReader(string(out)))
	rd.TrimLeadingSpace = true
	rows, err := rd.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("hl-smi -Q: %w", err)
	}
	var list []Seen
	for _, row := range rows {
		if len(row) != strings.Count(gaudiFields, ",")+1 {
			return nil, fmt.Errorf("hl-smi -Q: %d fields where %d were asked for: %q", len(row),
				strings.Count(gaudiFields, ",")+1, row)
		}
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("hl-smi -Q: index %q: %w", row[0], err)
		}
		list = append(list, Seen{
			Device: Device{
				Vendor: "intel", Name: row[2], Model: gaudiModel(row[2]), UUID: row[3], Bus: busOf(row[4]),
				Memory: mebibytes(row[5]), Visible: row[1], Variable: "HABANA_VISIBLE_MODULES",
				Files: []string{fmt.Sprintf("/dev/accel/accel%d", index), fmt.Sprintf("/dev/accel/accel_controlD%d", index)},
			},
			Reading: Reading{Util: number(row[7]), Used: mebibytes(row[6]), Temp: number(row[8]), Power: number(row[9])},
		})
	}
	return list, nil
}

// gaudiModel returns the word people ask for. hl-smi names boards: HL-225 and HL-288 are of the second generation,
// HL-325 and on of the third.
func gaudiModel(board string) string {
	for prefix, model := range map[string]string{"HL-1": "gaudi", "HL-2": "gaudi2", "HL-3": "gaudi3"} {
		if strings.HasPrefix(board, prefix) {
			return model
		}
	}
	return Model(board)
}
