package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func load(t *testing.T, text string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestOffers(t *testing.T) {
	t.Parallel()
	c, err := load(t, `
offers:
  - {name: small, cpus: 4, memory: 16G, price: 0.25, max: 10, power_up: 90s}
  - {name: gpu, cpus: 64, memory: 512G, gres: ["gpu:h100:8"], price: 31.5, max: 2, power_up: 10m,
      partitions: [main], projects: [physics]}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Offer{
		{
			Name: "gpu", Price: 31_500_000, Max: 2, PowerUp: 600, Partitions: []core.PartitionName{"main"},
			Projects: []core.ProjectName{"physics"},
			Hardware: core.Hardware{CPUs: 64, Memory: 512 * core.GiB, Gres: []core.Gres{{Name: "gpu", Type: "h100", Count: 8}}},
		},
		{Name: "small", Price: 250_000, Max: 10, PowerUp: 90, Hardware: core.Hardware{CPUs: 4, Memory: 16 * core.GiB}},
	}
	if d := cmp.Diff(want, c.CoreOffers()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for text, fault := range map[string]string{
		"{name: x, cpus: 4, memory: 1G}":                                   "max",
		"{name: x, max: 1}":                                                "cpus and memory",
		"{cpus: 4, memory: 1G, max: 1}":                                    "name",
		"{name: x, cpus: 4, memory: 1G, max: 1, price: cheap}":             "not a price",
		"{name: x, cpus: 4, memory: 1G, max: 1, partitions: [nowhere]}":    "nowhere",
		"{name: x, cpus: 4, memory: 1G, max: 1, gres: ['gpu:a:b:c:many']}": "gres",
		"{name: x, cpus: 4, memory: 1G, max: 1, prise: 4}":                 "prise",
	} {
		_, err := load(t, "offers:\n  - "+text+"\n")
		var e *core.Error
		if !errors.As(err, &e) || !strings.Contains(fmt.Sprint(e.Faults), fault) {
			t.Errorf("%s: %v %+v", text, err, e)
		}
	}
}
