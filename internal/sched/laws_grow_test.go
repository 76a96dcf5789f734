package sched

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
)

// TestGrowthIsAskedForOnce: what a plan wishes for is within what the offers have; when it is being made, the next plan
// does not wish for it again; and a planner kept up to date wishes as one built cold.
func TestGrowthIsAskedForOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newLawWorld(rt, core.RuleEASY, rapid.Uint64().Draw(rt, "seed"), 2)
		w.cfg.Offers = []core.Offer{
			{Name: "big", Max: 3, Price: 5, PowerUp: 20, Hardware: core.Hardware{
				CPUs: 8, Memory: 8 * core.GiB,
				Gres: []core.Gres{{Name: "gpu", Type: "x", Count: 2}},
			}},
			{Name: "small", Max: 2, Price: 1, PowerUp: 5, Hardware: core.Hardware{CPUs: 4, Memory: 4 * core.GiB}},
		}
		w.p = New(w.cfg)
		w.p.nodes.TrackMinNodes, w.p.classWalkMinJobs = 0, 0
		w.p.Apply(Changes{Nodes: w.nodes})
		made := map[string]int32{}
		wishes := func() string { return fmt.Sprint(w.p.Pass(w.now).Provision) }
		for range 15 {
			for range 1 + w.r.IntN(4) {
				w.submit()
			}
			w.pass()
			plan := w.p.Pass(w.now)
			cold := New(w.cfg)
			cold.Apply(Changes{Nodes: w.nodes})
			for _, id := range w.order {
				if j := w.jobs[id]; j.Live() {
					cold.Apply(Changes{Jobs: []*core.Job{j}})
				}
			}
			if a, b := wishes(), fmt.Sprint(cold.Pass(w.now).Provision); a != b {
				rt.Fatalf("kept up to date it wishes for %s, built cold for %s", a, b)
			}
			for _, x := range plan.Provision {
				k := slices.IndexFunc(w.cfg.Offers, func(o core.Offer) bool { return o.Name == x.Offer })
				for range x.Count {
					made[x.Offer]++
					n := &core.Node{
						ID: int64(100 + len(w.nodes)), Name: core.NodeName(fmt.Sprint(x.Offer,
							made[x.Offer])), Roles: core.Compute, Offer: x.Offer,
						Hardware: w.cfg.Offers[k].Hardware, Flags: core.NodeUnknown | core.NodePoweringUp, Ready: x.Ready,
					}
					w.nodes = append(w.nodes, n)
					w.p.Apply(Changes{Nodes: []*core.Node{n}})
				}
				if made[x.Offer] > w.cfg.Offers[k].Max {
					rt.Fatalf("%d of %s, which has %d", made[x.Offer], x.Offer, w.cfg.Offers[k].Max)
				}
			}
			if again := wishes(); again != "[]" {
				rt.Fatalf("after %v were asked for, it wishes for %s", plan.Provision, again)
			}
			for i, n := range w.nodes { // some of those that are being made are there
				if n.Flags.Has(core.NodePoweringUp) && w.r.IntN(3) == 0 {
					up := *n
					up.Flags, up.Ready = 0, 0
					w.nodes[i] = &up
					w.p.Apply(Changes{Nodes: []*core.Node{&up}})
				}
			}
			if w.r.IntN(2) == 0 {
				w.end()
			}
		}
	})
}
