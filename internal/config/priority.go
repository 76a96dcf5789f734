package config

import (
	"fmt"
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
	}{
		{"age", w.Age},
		{"fairshare", w.FairShare},
		{"job_size", w.JobSize},
		{"partition", w.Partition},
		{"qos", w.QOS},
		{"assoc", w.Assoc},
		{"run", w.Run},
	} {
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
	if _, err := policy.ParseResetPeriod(p.Reset); err != nil {
		d.at("priority.usage_reset", "%v", err)
	}
	if p.Dampening < 1 {
		d.at("priority.dampening", "%d is less than 1", p.Dampening)
	}
}

// Policy returns how priorities are computed, in the words of policy; ok is false where they are not. The Config has
// been checked.
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

// ResetPeriod returns when usage starts again. The Config has been checked.
func (p *Priority) ResetPeriod() policy.ResetPeriod {
	r, _ := policy.ParseResetPeriod(p.Reset)
	return r
}

// Enforced is what of the policy is enforced.
type Enforced struct{ Associations, Limits, QOS, Safe bool }

// Enforced reads what is enforced. As Slurm: limits and qos need associations, safe needs limits.
func (a *Accounting) Enforced() (Enforced, error) {
	if len(a.Enforce) == 0 {
		return Enforced{Limits: true}, nil
	}
	var e Enforced
	for _, list := range a.Enforce {
		for word := range strings.SplitSeq(list, ",") {
			switch strings.ToLower(strings.TrimSpace(word)) {
			case "", "none", "0":
			case "no", "false", "off":
				e.Limits = true
			case "yes", "true", "on", "1":
				e.Associations, e.Limits = true, true
			case "associations":
				e.Associations = true
			case "limits":
				e.Associations, e.Limits = true, true
			case "qos":
				e.Associations, e.QOS = true, true
			case "safe":
				e.Associations, e.Limits, e.Safe = true, true, true
			case "all":
				e = Enforced{true, true, true, true}
			default:
				return e, fmt.Errorf("%q is not one of associations, limits, qos, safe, all, none, true, false", word)
			}
		}
	}
	return e, nil
}

// Billing returns what the resources of each partition cost. The Config has been checked.
func (c *Config) Billing() map[core.PartitionName][]policy.Weight {
	out := map[core.PartitionName][]policy.Weight{}
	for _, p := range c.Partitions {
		if w, err := policy.ParseWeights(p.BillingWeights); err == nil && len(w) > 0 {
			out[core.PartitionName(p.Name)] = w
		}
	}
	return out
}

// CheckBilling says what is wrong with billing weights.
func CheckBilling(weights string) error {
	_, err := policy.ParseWeights(weights)
	return err
}

// Seconds is d in whole seconds.
func (d Duration) Seconds() core.Seconds { return core.Seconds(d.D() / time.Second) }
