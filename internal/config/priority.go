package config

import (
	"math"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

func (d *decoder) checkPriority(c *Config) {
	p := &c.Priority
	if p.Type != "basic" && p.Type != "multifactor" {
		d.at("priority.type", "%q is neither basic nor multifactor", p.Type)
	}
	w := &p.Weights
	for _, x := range []struct {
		name string
		v    int64
	}{{"age", w.Age}, {"fairshare", w.FairShare}, {"job_size", w.JobSize}, {"partition", w.Partition}, {"qos", w.QOS}, {"assoc", w.Assoc}} {
		if x.v < 0 || x.v > math.MaxUint32 {
			d.at("priority.weights."+x.name, "%d is not between 0 and %d", x.v, uint32(math.MaxUint32))
		}
	}
	if _, err := policy.ParseWeights(w.TRES); err != nil {
		d.at("priority.weights.tres", "%v", err)
	}
	if _, err := policy.ParseFlags(strings.Join(p.Flags, ",")); err != nil {
		d.at("priority.flags", "%v", err)
	}
	for _, x := range []struct {
		name string
		v    Duration
		min  time.Duration
	}{{"max_age", p.MaxAge, time.Second}, {"calc_period", p.CalcPeriod, time.Second}, {"decay_half_life", p.HalfLife, 0}} {
		if x.v.D() < x.min || x.v.D()%time.Second != 0 {
			d.at("priority."+x.name, "%s is not a whole number of seconds, %s or more", x.v, x.min)
		}
	}
	if p.Dampening < 1 {
		d.at("priority.dampening", "%d is less than 1", p.Dampening)
	}
}

// Policy gives how priorities are worked out, in the words of policy; ok is false where they are not. The Config has been
// checked.
func (p *Priority) Policy() (c policy.Config, ok bool) {
	if p.Type != "multifactor" {
		return c, false
	}
	w := &p.Weights
	c = policy.Config{
		Weights: policy.Weights{
			Age: uint32(w.Age), Assoc: uint32(w.Assoc), FairShare: uint32(w.FairShare), JobSize: uint32(w.JobSize),
			Partition: uint32(w.Partition), QOS: uint32(w.QOS),
		},
		MaxAge: p.MaxAge.Seconds(), FavorSmall: p.FavorSmall,
	}
	c.Weights.TRES, _ = policy.ParseWeights(w.TRES)
	c.Flags, _ = policy.ParseFlags(strings.Join(p.Flags, ","))
	return c, true
}

// Billing gives what the resources of each partition cost. The Config has been checked.
func (c *Config) Billing() map[core.PartitionName][]policy.Weight {
	out := map[core.PartitionName][]policy.Weight{}
	for _, p := range c.Partitions {
		if w, err := policy.ParseWeights(p.BillingWeights); err == nil && len(w) > 0 {
			out[core.PartitionName(p.Name)] = w
		}
	}
	return out
}

// Seconds is d in whole seconds.
func (d Duration) Seconds() core.Seconds { return core.Seconds(d.D() / time.Second) }
