package fit

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// OffersCouldHold reports whether some offer could hold a job that the nodes there are cannot.
func OffersCouldHold(offers []core.Offer, spec *core.Spec, part core.PartitionName, names alloc.HostsFunc) bool {
	for i := range offers {
		o := &offers[i]
		if most := spec.More().MaxPrice; !o.Serves(part, spec.Project) || most > 0 && o.Price > most || o.Max <= 0 {
			continue
		}
		l := ledger.New()
		req := RequestOf(spec, names)
		for k := range min(o.Max, max(req.NodesMin, req.NodesMax)) {
			l.SetNode(&core.Node{
				ID: int64(k + 1), Name: core.NodeName(fmt.Sprint(o.Name, k)), Roles: core.Compute,
				Hardware: o.Hardware, Features: o.Features,
			})
		}
		req.BindLedger(l, nil, false)
		if len(req.Required) == 0 && CheckRequest(l, &req, nil, l.Order) == nil {
			return true
		}
	}
	return false
}
