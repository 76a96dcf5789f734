package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestLawsOfNouns is TestLaws while reservations, the policy and the settings change too. The worlds are always the
// same.
func TestLawsOfNouns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			first := anything(t, rand.New(rand.NewPCG(seed, 2)).IntN, 120, true, (*chaos).nouns)
			if second := anything(t, rand.New(rand.NewPCG(seed, 2)).IntN, 120, false, (*chaos).nouns); !slices.Equal(first,
				second) {
				t.Fatal("the same inputs changed something else")
			}
		})
	}
}

// nouns changes what jobs are held against: reservations, the policy and the settings.
func (c *chaos) nouns() {
	switch c.choose(8) {
	case 0, 1:
		c.setAside()
	case 2:
		c.submitReserved()
	case 3:
		_, _ = c.do(&DropReservation{By: root, Name: c.resvName()})
	case 4:
		c.rebook()
	case 5, 6:
		c.applyPolicy()
	default:
		c.reconfigure()
	}
}

func (c *chaos) resvName() string { return c.pick("r1", "r2", "r3") }

// setAside asks for a reservation; many are refused, for what is there or for what they ask.
func (c *chaos) setAside() {
	start := c.st.rec.Now().Add(time.Duration(c.choose(4)) * 30 * time.Minute)
	r := &core.AdvanceReservation{
		Name: c.resvName(), Start: start, End: start.Add(time.Duration(1+c.choose(6)) * 10 * time.Minute),
		Users: []core.UserName{"alice"},
	}
	flags := []core.ReserveFlag{
		core.ReserveMaint, core.ReserveIgnoreJobs, core.ReserveOverlap, core.ReserveFlex, core.ReserveDaily,
		core.ReserveHourly, core.ReservePurgeCompleted,
		core.ReserveReplace, core.ReserveReplaceDown, core.ReserveStatic, core.ReserveTimeFloat, core.ReserveMagnetic,
		core.ReserveNoHold,
	}
	for range c.choose(3) {
		r.Flags |= flags[c.choose(len(flags))]
	}
	switch c.choose(4) {
	case 0:
		r.NodeCount = int32(1 + c.choose(2))
	case 1:
		r.CoreCount = int32(1 + c.choose(4))
	default:
		r.Nodes = string(c.node())
	}
	if c.choose(4) == 0 {
		r.Users, r.Projects = nil, []core.ProjectName{"default"}
	}
	_, _ = c.do(&PutReservation{By: root, Reservation: r, New: c.choose(4) > 0})
}

// rebook changes a reservation.
func (c *chaos) rebook() {
	in := &UpdateReservation{By: root, Name: c.resvName()}
	length := core.Seconds(600 * (1 + c.choose(6)))
	nodes, count := string(c.node()), int32(1+c.choose(3))
	switch c.choose(4) {
	case 0:
		in.Change.Duration = &length
	case 1:
		in.Change.Nodes = &nodes
	case 2:
		in.Change.NodeCount = &count
	default:
		in.Change.SetFlags = core.ReserveReplace
	}
	_, _ = c.do(in)
}

func (c *chaos) submitReserved() {
	spec := coretest.Job().User("alice").Time(time.Duration(1+c.choose(4)) * 10 * time.Minute).Set(func(s *core.Spec) {
		s.UID, s.Extra = 1000, &core.Extra{Reservation: c.resvName()}
	}).Spec()
	_, _ = c.do(&Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: spec})
}

// applyPolicy applies a small policy, pruning now and then.
func (c *chaos) applyPolicy() {
	few := int64(1 + c.choose(5))
	p := core.Policy{Projects: []core.Project{{
		Name: "default", Shares: int32(c.choose(4)),
		Members: []core.Member{{User: "alice"}, {User: "bob"}},
	}}}
	p.QOS = append(p.QOS, pushers...)
	switch c.choose(4) {
	case 0:
		p.Projects[0].Assoc.Limits.GrpJobs = &few
	case 1:
		p.Projects[0].Members[0].Assoc.Limits.MaxJobs = &few
	case 2:
		p.QOS = append(p.QOS, core.QOS{
			Name: "extra", UsageFactor: new(2.0),
			Limits: core.Limits{GrpTRES: core.TRESOf(core.Amount{Name: "cpu", Count: few})},
		})
		p.Projects = append(p.Projects,
			core.Project{Name: "lab", Parent: "default", Assoc: core.Association{QOS: []core.QOSName{"extra"}}})
	}
	_, _ = c.do(&ApplyPolicy{By: root, Policy: p, Force: c.choose(3) > 0, Prune: c.choose(3) == 0, Dry: c.choose(5) == 0})
}

// reconfigure changes partitions, licenses and the weight of a node.
func (c *chaos) reconfigure() {
	cfg := c.cfg
	cfg.Partitions = slices.Clone(cfg.Partitions)
	i := c.choose(len(cfg.Partitions))
	switch c.choose(4) {
	case 0:
		cfg.Partitions = append(slices.DeleteFunc(cfg.Partitions, func(p core.Partition) bool { return p.Name == "extra" }),
			core.Partition{Name: "extra", Nodes: string(c.node())})
	case 1:
		if !cfg.Partitions[i].Default {
			cfg.Partitions = slices.Delete(cfg.Partitions, i, i+1)
		}
	case 2:
		cfg.Partitions[i].MaxTime = core.Seconds(1800 * c.choose(4))
	default:
		cfg.Licenses = []core.License{{Name: "matlab", Total: int64(c.choose(4))}}
	}
	in := &Reconfigure{By: root, Config: cfg, Dry: c.choose(5) == 0}
	if c.choose(3) == 0 {
		if n, ok := c.st.rec.Node(c.node()); ok {
			other := *n
			other.Weight, other.Features = int32(1+c.choose(3)), strings.Fields(c.pick("", "ib", "ib ssd"))
			in.Nodes = append(in.Nodes, &other)
		}
	}
	if _, err := c.do(in); err == nil && !in.Dry {
		c.cfg = cfg
	} else if err != nil && core.ReasonOf(err) != "invalid_configuration" {
		c.t.Fatalf("the settings were refused: %v", fmt.Errorf("%w", err))
	}
}
