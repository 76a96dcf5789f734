package report

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/slurm/conf/keys"
)

// ShowConfig is scontrol show config: Slurm's settings in their order.
func ShowConfig(set map[string]string) string {
	var b strings.Builder
	for _, p := range ConfigValues(set) {
		fmt.Fprintf(&b, "%-23s = %s\n", p.Key.Name, p.Text)
	}
	return b.String()
}

// ConfigValue is a key with its value as scontrol show config prints it.
type ConfigValue struct {
	Key  keys.Key
	Text string
}

// ConfigValues are the settings that scontrol show config prints, in its order.
func ConfigValues(set map[string]string) []ConfigValue {
	var out []ConfigValue
	for _, k := range keys.All() {
		if !k.Listed {
			continue
		}
		switch k.Name {
		case "DefMemPerCPU": // one of the two is shown
			if set[k.Name] == "" || set[k.Name] == "0" {
				k.Name, k.Default = "DefMemPerNode", "UNLIMITED"
			}
		case "MaxMemPerNode":
			if v := set["MaxMemPerCPU"]; v != "" && v != "0" {
				k.Name = "MaxMemPerCPU"
			}
		}
		out = append(out, ConfigValue{k, k.Text(set[k.Name])})
		if k.Name != "SlurmctldHost[0]" {
			continue
		}
		for i := 1; set[fmt.Sprintf("SlurmctldHost[%d]", i)] != ""; i++ {
			k.Name = fmt.Sprintf("SlurmctldHost[%d]", i)
			out = append(out, ConfigValue{k, set[k.Name]})
		}
	}
	return out
}
