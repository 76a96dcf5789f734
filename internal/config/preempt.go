package config

import (
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Preemption says who may push whom aside, and what becomes of those. QOS and partitions may say more.
type Preemption struct {
	// none, qos: a QOS those it lists, partition_prio: a partition those of lower tiers
	Type string `yaml:"type"`
	// off, cancel, requeue or suspend; "within" and "priority" may follow, after a comma
	Mode       string   `yaml:"mode"`
	Grace      Duration `yaml:"grace"`       // between TERM and KILL; 0: as when a job is canceled
	ExemptTime Duration `yaml:"exempt_time"` // a job runs so long before it may be preempted
	Order      string   `yaml:"order"`       // of equals, who goes first: least_lost, youngest, smallest
}

func (d *decoder) checkPreemption(c *Config) {
	p := &c.Preemption
	switch p.Type {
	case "none", "qos", "partition_prio":
	default:
		d.at("preemption.type", "%q: expected none, qos or partition_prio", p.Type)
	}
	d.checkPreemptMode("preemption.mode", p.Mode)
	if _, ok := preemptOrders[p.Order]; !ok {
		d.at("preemption.order", "%q: expected least_lost, youngest or smallest", p.Order)
	}
	for _, x := range []struct {
		name string
		v    Duration
	}{{"grace", p.Grace}, {"exempt_time", p.ExemptTime}} {
		if x.v < 0 || x.v.D()%time.Second != 0 {
			d.at("preemption."+x.name, "%s is not a whole number of seconds, 0 or more", x.v)
		}
	}
}

func (d *decoder) checkPreemptMode(path, mode string) {
	if !core.PreemptMode(strings.ToLower(mode)).Valid() {
		d.at(path, "%q: expected off, cancel, requeue or suspend, optionally followed by ,gang ,within or ,priority", mode)
	}
}

var preemptOrders = map[string]core.PreemptOrder{
	"least_lost": core.LeastLost, "youngest": core.Youngest,
	"smallest": core.Smallest,
}

// Core returns it as a type of core. The Config has been checked.
func (p *Preemption) Core() core.Preemption {
	c := core.Preemption{
		Mode: core.PreemptMode(strings.ToLower(p.Mode)), Grace: p.Grace.Seconds(), Exempt: p.ExemptTime.Seconds(),
		Order: preemptOrders[p.Order],
	}
	if p.Type != "none" {
		c.Type = core.PreemptType(p.Type)
	}
	return c
}
