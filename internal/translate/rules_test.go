package translate

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/slurm"
)

// TestEveryOption: each option of sbatch becomes a key, or is listed with what there is instead.
func TestEveryOption(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range slurm.Manual(slurm.Sbatch).Rows {
		seen[row.Long] = true
		rule, ok := optionRules[row.Long]
		switch {
		case !ok:
			t.Errorf("--%s is neither mapped nor listed", row.Long)
		case (rule.to == "") == (rule.why == ""):
			t.Errorf("--%s: one of to and why, not %q and %q", row.Long, rule.to, rule.why)
		case rule.to != "" && keyRules[rule.to].to == "" && !strings.Contains(rule.to, "."):
			t.Errorf("--%s becomes %s, which becomes no option", row.Long, rule.to)
		}
	}
	for name := range optionRules {
		if !seen[name] {
			t.Errorf("sbatch has no option --%s", name)
		}
	}
}

// TestEveryKey: each key of tasks and dev environments becomes an option, or is listed with what there is instead.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	known := config.AdditionKeys()
	known = append(known, jsonKeys("", reflect.TypeFor[config.Task]())...)
	known = append(known, jsonKeys("", reflect.TypeFor[config.DevEnvironment]())...)
	known = append(known, jsonKeys("resources.", reflect.TypeFor[config.Resources]())...)
	known = append(known, jsonKeys("resources.cpu.", reflect.TypeFor[config.CPU]())...)
	known = append(known, jsonKeys("resources.gpu.", reflect.TypeFor[config.GPU]())...)
	known = append(known, jsonKeys("resources.disk.", reflect.TypeFor[config.Disk]())...)
	for _, key := range known {
		if rule, ok := keyRules[key]; !ok {
			t.Errorf("%s is neither mapped nor listed", key)
		} else if (rule.to == "") == (rule.why == "") {
			t.Errorf("%s: one of to and why, not %q and %q", key, rule.to, rule.why)
		}
	}
	for key := range keyRules {
		if !slices.Contains(known, key) {
			t.Errorf("configurations have no key %s", key)
		}
	}
}

func jsonKeys(prefix string, of reflect.Type) (out []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			out = append(out, jsonKeys(prefix, f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, prefix+name)
		}
	}
	return out
}
