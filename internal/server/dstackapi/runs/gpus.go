package runs

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

type gpusBody struct {
	RunSpec              wire.RunSpec `json:"run_spec" in:"required"`
	GroupBy              []string     `json:"group_by" in:"max=3"`
	FullOffers           bool         `json:"full_offers"`
	UnallocatedResources bool         `json:"unallocated_resources"`
	Reverse              bool         `json:"reverse"`
}

// gpus groups the nodes that could serve a run by their GPUs, or those without by their architecture where no GPU is
// asked for.
func (a *Runs) gpus(c *front.Call, in *gpusBody) (any, error) {
	for _, g := range in.GroupBy {
		if !slices.Contains([]string{"backend", "region", "count"}, g) {
			return nil, front.Errorf("group_by: %.40q is none of backend, region and count", g)
		}
	}
	if slices.Contains(in.GroupBy, "region") && !slices.Contains(in.GroupBy, "backend") {
		return nil, front.Errorf("Cannot group by 'region' without also grouping by 'backend'")
	}
	l := a.look(c)
	_, eff, err := l.readSubmitted(&in.RunSpec, true)
	if err != nil {
		return nil, err
	}
	found := eff.Offers(l.places(), convert.OfferForm{Full: in.FullOffers, Unallocated: in.UnallocatedResources})
	out := &wire.GpuList{GPUs: []wire.GpuGroup{}}
	if g := eff.Configuration.Run().Resources.GPU; g == nil || g.Count.Max != nil && config.Value(g.Count.Max) <= 0 {
		out.CPUs = groupCPUs(found, in.GroupBy)
	} else {
		out.GPUs = groupGPUs(found, in.GroupBy)
	}
	if in.Reverse {
		slices.Reverse(out.GPUs)
		slices.Reverse(out.CPUs)
	}
	return out, nil
}

var onDemand = []string{"on-demand"}

func groupGPUs(found []convert.Found, by []string) []wire.GpuGroup {
	list, at := []wire.GpuGroup{}, map[string]int{}
	for i := range found {
		gpus := found[i].Instance.Resources.GPUs
		if len(gpus) == 0 {
			continue
		}
		g, n := gpus[0], int64(len(gpus))
		key := fmt.Sprintf("%s/%s/%d", g.Vendor, g.Name, g.MemoryMiB)
		if slices.Contains(by, "count") {
			key += fmt.Sprintf("/%d", n)
		}
		k, ok := at[key]
		if !ok {
			k = len(list)
			at[key] = k
			x := wire.GpuGroup{
				Name: g.Name, MemoryMiB: g.MemoryMiB, Vendor: g.Vendor, Spot: onDemand, Count: wire.IntRange{Min: n, Max: n},
			}
			x.Backends, x.Backend, x.Regions, x.Region = placeOf(by)
			list = append(list, x)
		}
		x := &list[k]
		x.Count.Min, x.Count.Max = min(x.Count.Min, n), max(x.Count.Max, n)
		x.Availability = addOnce(x.Availability, found[i].Availability)
	}
	return list
}

func groupCPUs(found []convert.Found, by []string) []wire.CpuGroup {
	list, at := []wire.CpuGroup{}, map[string]int{}
	for i := range found {
		r := &found[i].Instance.Resources
		if len(r.GPUs) > 0 {
			continue
		}
		n, key := int64(r.CPUs), ""
		if slices.Contains(by, "count") {
			key = fmt.Sprint(n)
		}
		k, ok := at[key]
		if !ok {
			k = len(list)
			at[key] = k
			x := wire.CpuGroup{
				CPUArch: []string{}, Spot: onDemand, Count: wire.IntRange{Min: n, Max: n},
				MemoryMiB: wire.IntRange{Min: r.MemoryMiB, Max: r.MemoryMiB},
			}
			x.Backends, x.Backend, x.Regions, x.Region = placeOf(by)
			list = append(list, x)
		}
		x := &list[k]
		x.Count.Min, x.Count.Max = min(x.Count.Min, n), max(x.Count.Max, n)
		x.MemoryMiB.Min, x.MemoryMiB.Max = min(x.MemoryMiB.Min, r.MemoryMiB), max(x.MemoryMiB.Max, r.MemoryMiB)
		x.Availability = addOnce(x.Availability, found[i].Availability)
		if r.CPUArch != nil {
			x.CPUArch = addOnce(x.CPUArch, *r.CPUArch)
		}
	}
	return list
}

// placeOf says where a group is: all of ours is in one place.
func placeOf(by []string) (backends []string, backend string, regions []string, region string) {
	if slices.Contains(by, "backend") {
		backend = wire.BackendRemote
	} else {
		backends = []string{wire.BackendRemote}
	}
	switch {
	case slices.Contains(by, "region"):
		region = wire.RegionRemote
	case backend != "":
		regions = []string{wire.RegionRemote}
	}
	return backends, backend, regions, region
}

func addOnce(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
