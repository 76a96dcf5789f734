package convert

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Found is a node that could run a job of a run.
type Found struct {
	wire.Offer
	Place *Place
}

// OfferForm is which resources offers show.
type OfferForm struct {
	Full        bool // those of whole nodes, not of the blocks that a job takes
	Unallocated bool // those that no job has
}

// Offers lists the nodes that could run a job of the run, those that are idle first.
func (s *Spec) Offers(at *Places, form OfferForm) []Found {
	p := s.Policy()
	if missing(&p) != "" {
		return nil
	}
	fleets, parts, err := at.choose(p.Fleets, s.Nodes())
	if err != nil {
		return nil
	}
	a := &s.Configuration.Additions
	if a.Partition != "" {
		parts = strings.Split(a.Partition, ",")
	}
	parts = append(parts, p.AvailabilityZones...)
	res := &s.Configuration.Run().Resources
	req, arch := requestOf(res), config.Value(res.CPU.Arch)
	var out []Found
	for _, x := range at.Nodes {
		if !x.isIn(fleets, parts) || len(p.Instances) > 0 && !slices.ContainsFunc(p.Instances, x.is) {
			continue
		}
		if has := archOf(x.Node.Host.Arch); arch != "" && has != nil && *has != arch {
			continue
		}
		if f, ok := x.offer(&req, s.Nodes() > 1); ok {
			x.show(&f, form)
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Found) int { return cmp.Compare(rank(a.Availability), rank(b.Availability)) })
	return out
}

// rank orders availabilities: what starts soonest comes first.
func rank(availability string) int {
	return slices.Index([]string{wire.OfferIdle, wire.OfferAvailable, wire.OfferBusy}, availability)
}

// isIn reports whether a node is in one of the fleets or partitions; without any it is.
func (p *Place) isIn(fleets, parts []string) bool {
	if len(fleets)+len(parts) == 0 {
		return true
	}
	return p.Fleet != nil && slices.Contains(fleets, p.Fleet.Name) ||
		slices.ContainsFunc(parts, func(name string) bool { return slices.Contains(p.Partitions, core.PartitionName(name)) })
}

// offer tells what of the node would serve a request, whole nodes where the run is on several.
func (p *Place) offer(req *request, whole bool) (Found, bool) {
	n := p.Node
	h := &n.Hardware
	if !n.Usable() && !n.Wakeable() {
		return Found{}, false
	}
	gpus := countGPUs(n, req)
	if h.CPUs < req.cpus || h.Memory < req.memory || gpus < req.gpus.Count || h.TmpDisk > 0 && h.TmpDisk < req.disk {
		return Found{}, false
	}
	total := max(1, n.Blocks)
	blocks := total
	if !whole && n.Blocks > 1 {
		n := int64(total)
		blocks = max(1, ceil(int64(req.cpus)*n, int64(h.CPUs)), ceil(int64(req.memory)*n, int64(h.Memory)),
			ceil(req.gpus.Count*n, gpus))
	}
	f := Found{Place: p, Offer: wire.Offer{
		Backend: wire.BackendRemote, Region: wire.RegionRemote, InstanceRuntime: "shim", Blocks: blocks, TotalBlocks: total,
		Instance: wire.InstanceType{Name: instanceName, Resources: share(n, blocks, total)}, Availability: wire.OfferIdle,
		Node: string(n.Name),
	}}
	if total == 1 {
		f.Instance.Resources.CPUArch = archOf(n.Host.Arch)
	}
	switch {
	case !n.Usable():
		f.Availability = wire.OfferAvailable // it sleeps, and is woken for the run
	case n.Blocks > 0 && p.busyBlocks()+blocks > total, n.Blocks == 0 && !p.fits(req):
		f.Availability = wire.OfferBusy
	}
	return f, true
}

// show gives an offer the resources that a form asks for.
func (p *Place) show(f *Found, form OfferForm) {
	arch := f.Instance.Resources.CPUArch
	if form.Full {
		f.Blocks = f.TotalBlocks
		f.Instance.Resources = share(p.Node, 1, 1)
	}
	if form.Unallocated {
		f.Instance.Resources = p.unallocated()
		if f.TotalBlocks > 1 {
			f.Blocks = max(0, f.TotalBlocks-p.busyBlocks())
		}
	}
	f.Instance.Resources.CPUArch = arch
}

// unallocated is what of the node no job has: whole blocks where it has some.
func (p *Place) unallocated() wire.InstanceResources {
	if total := p.Node.Blocks; total > 1 {
		return share(p.Node, max(0, total-p.busyBlocks()), total)
	}
	r := share(p.Node, 1, 1)
	r.CPUs = max(0, r.CPUs-p.UsedCPUs)
	r.MemoryMiB = max(0, r.MemoryMiB-int64(p.UsedMem/core.MiB))
	r.GPUs = r.GPUs[:max(0, int64(len(r.GPUs))-p.UsedGPUs)]
	return r
}

// fits reports whether a request could start on the node now.
func (p *Place) fits(req *request) bool {
	h := &p.Node.Hardware
	return h.CPUs-p.UsedCPUs >= req.cpus && h.Memory-p.UsedMem >= req.memory &&
		countGPUs(p.Node, req)-p.UsedGPUs >= req.gpus.Count
}

// busyBlocks is how many blocks of the node jobs have something of.
func (p *Place) busyBlocks() int32 {
	h, total := &p.Node.Hardware, max(1, p.Node.Blocks)
	return max(ceil(int64(p.UsedCPUs)*int64(total), int64(h.CPUs)), ceil(int64(p.UsedMem)*int64(total), int64(h.Memory)))
}

func ceil(a, b int64) int32 {
	if b <= 0 {
		return 0
	}
	return int32((a + b - 1) / b)
}

// countGPUs is how many of a node's GPUs would do.
func countGPUs(n *core.Node, req *request) int64 {
	if req.gpus.Count == 0 {
		return 0
	}
	count := int64(0)
	for _, g := range n.Hardware.Gres {
		switch {
		case g.Name != "gpu":
		case req.ask == nil:
			if req.gpus.Type == "" || strings.EqualFold(req.gpus.Type, g.Type) {
				count += g.Count
			}
		default:
			u := core.Unit{Type: g.Type}
			for _, x := range n.Hardware.Units {
				if x.Name == "gpu" && x.Type == g.Type {
					u = x
					break
				}
			}
			if req.ask.Fits(g.Type, u.Vendor, u.Memory, u.Capability) {
				count += g.Count
			}
		}
	}
	return count
}
