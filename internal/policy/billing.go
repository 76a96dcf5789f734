package policy

import (
	"bireme.dev/bireme/internal/core"
)

// BillingOf is what resources cost by weights as they are written, without flags: a CPU 1 where there are none.
func BillingOf(weights string, cpus int32, mem core.Bytes, nodes int32, gres []core.Gres) int64 {
	w, err := ParseWeights(weights)
	if err != nil {
		w = nil
	}
	amounts := []Amount{
		{Name: "cpu", Count: int64(cpus)}, {Name: "mem", Count: int64(mem / core.MiB)}, {Name: "node", Count: int64(nodes)},
	}
	sums := map[string]int64{}
	for _, g := range gres {
		sums["gres/"+g.Name] += g.Count
	}
	for name, n := range sums {
		amounts = append(amounts, Amount{Name: name, Count: n})
	}
	return Bill(Of(amounts...), w, 0)
}
