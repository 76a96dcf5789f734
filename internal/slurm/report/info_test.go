package report

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Nodes that have not reported their free memory yet are not taken for full ones.
func TestFreeMemory(t *testing.T) {
	t.Parallel()
	nodes := func(list ...core.Bytes) (r InfoRow) {
		for _, free := range list {
			r.Nodes = append(r.Nodes, &client.Node{FreeMem: free})
		}
		return r
	}
	for want, row := range map[string]InfoRow{
		"100": nodes(0, 100*core.MiB), "100-200": nodes(200*core.MiB, 100*core.MiB, 0), "N/A": nodes(0, 0),
		"0": nodes(),
	} {
		if got := freeMemory(&row); got != want {
			t.Errorf("free memory %q, want %q", got, want)
		}
	}
}
