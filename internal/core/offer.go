package core

import "slices"

// Price is money an hour, in millionths of whatever currency the settings speak of.
type Price int64

// Offer is a kind of node that could be had: how many more, at what price, and how long it takes until one is ready.
type Offer struct {
	Name       string          `json:"name"`
	Hardware   Hardware        `json:"hardware"`
	Features   []string        `json:"features,omitempty"`
	Price      Price           `json:"price,omitempty"` // of one node
	Max        int32           `json:"max"`             // that there may be at once
	PowerUp    Seconds         `json:"power_up,omitempty"`
	Partitions []PartitionName `json:"partitions,omitempty"` // its nodes would be in; empty: all
	Projects   []ProjectName   `json:"projects,omitempty"`   // that may make use of it; empty: all
}

// Serves reports whether nodes of the offer would be in a partition and a project may have them.
func (o *Offer) Serves(part PartitionName, project ProjectName) bool {
	return (len(o.Partitions) == 0 || slices.Contains(o.Partitions, part)) &&
		(len(o.Projects) == 0 || slices.Contains(o.Projects, project))
}
