package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Offer is a kind of node that could be had. The plan says when nodes of it should be made.
type Offer struct {
	Name       string   `yaml:"name"`
	CPUs       int32    `yaml:"cpus"`
	Sockets    int32    `yaml:"sockets"`
	Cores      int32    `yaml:"cores"`   // a socket
	Threads    int32    `yaml:"threads"` // a core
	Memory     Size     `yaml:"memory"`
	TmpDisk    Size     `yaml:"tmp_disk"`
	Gres       []string `yaml:"gres"` // name[:type]:count
	Features   []string `yaml:"features"`
	Price      Price    `yaml:"price"`      // of one node, an hour
	Max        int32    `yaml:"max"`        // that there may be at once
	PowerUp    Duration `yaml:"power_up"`   // until one is ready
	Partitions []string `yaml:"partitions"` // its nodes would be in; empty: all
	Projects   []string `yaml:"projects"`   // that may make use of it; empty: all
}

// Price is an amount of money an hour: 2.5, in millionths.
type Price int64

// UnmarshalText reads a number.
func (p *Price) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || v < 0 || v > 1e9 {
		return fmt.Errorf("%q is not a price", text)
	}
	*p = Price(math.Round(v * 1e6))
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (p Price) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(p)/1e6, 'f', -1, 64), nil
}

func (d *decoder) checkOffers(c *Config) {
	seen := map[string]bool{}
	for i := range c.Offers {
		o, path := &c.Offers[i], fmt.Sprintf("offers[%d]", i)
		switch {
		case o.Name == "":
			d.at(path+".name", "must not be empty")
		case seen[o.Name]:
			d.at(path+".name", "%s is listed twice", o.Name)
		case o.CPUs <= 0 || o.Memory <= 0:
			d.at(path, "needs cpus and memory")
		case o.Max <= 0:
			d.at(path+".max", "%d: must be 1 or more", o.Max)
		case o.PowerUp < 0:
			d.at(path+".power_up", "must not be negative")
		}
		seen[o.Name] = true
		for k, g := range o.Gres {
			if _, err := ParseGres(g); err != nil {
				d.at(fmt.Sprintf("%s.gres[%d]", path, k), "%v", err)
			}
		}
		for k, name := range o.Partitions {
			if !slices.ContainsFunc(c.Partitions, func(p Partition) bool { return p.Name == name }) {
				d.at(fmt.Sprintf("%s.partitions[%d]", path, k), "there is no partition %q", name)
			}
		}
	}
}

// CoreOffers returns the offers, by name. The Config has been checked.
func (c *Config) CoreOffers() []core.Offer {
	var list []core.Offer
	for i := range c.Offers {
		o := &c.Offers[i]
		x := core.Offer{
			Name: o.Name, Features: o.Features, Price: core.Price(o.Price), Max: o.Max,
			PowerUp: core.Seconds(o.PowerUp.D() / time.Second),
			Hardware: core.Hardware{
				CPUs: o.CPUs, Sockets: o.Sockets, Cores: o.Cores, Threads: o.Threads,
				Memory: core.Bytes(o.Memory), TmpDisk: core.Bytes(o.TmpDisk),
			},
		}
		for _, g := range o.Gres {
			if gres, err := ParseGres(g); err == nil {
				x.Hardware.Gres = append(x.Hardware.Gres, gres)
			}
		}
		for _, p := range o.Partitions {
			x.Partitions = append(x.Partitions, core.PartitionName(p))
		}
		for _, p := range o.Projects {
			x.Projects = append(x.Projects, core.ProjectName(p))
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b core.Offer) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
