package server_test

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestPartitions: administrators make, change and remove partitions while jobs continue.
func TestPartitions(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Start()
	ann, _, _, _ := people(s)
	find := func(name core.PartitionName) *core.Partition {
		var c client.Cluster
		s.Must("GET", "/api/v1/cluster", nil, &c)
		for i := range c.Partitions {
			if c.Partitions[i].Name == name {
				return &c.Partitions[i]
			}
		}
		return nil
	}
	down, all, hour := "down", "ALL", core.Seconds(3600)
	if status, err := s.Call("PATCH", "/api/v1/partitions/main", ann, client.PartitionChange{State: &down},
		nil); status != 403 || err.Reason != "access_denied" {
		t.Errorf("ann closes a partition: %d %v", status, err)
	}
	s.Must("PATCH", "/api/v1/partitions/tmp", client.PartitionChange{New: true, Nodes: &all, MaxTime: &hour}, nil)
	if p := find("tmp"); p == nil || p.MaxTime != hour || p.Nodes != "ALL" {
		t.Errorf("made: %+v", p)
	}
	if status, err := s.Call("PATCH", "/api/v1/partitions/tmp", "", client.PartitionChange{New: true, Nodes: &all},
		nil); status != 409 {
		t.Errorf("made twice: %d %v", status, err)
	}
	s.Must("PATCH", "/api/v1/partitions/main", client.PartitionChange{State: &down}, nil)
	if p := find("main"); p.State != "DOWN" {
		t.Errorf("closed: %+v", p)
	}
	s.Must("DELETE", "/api/v1/partitions/tmp", nil, nil)
	if p := find("tmp"); p != nil {
		t.Errorf("removed: %+v", p)
	}
	if status, err := s.Call("DELETE", "/api/v1/partitions/tmp", "", nil, nil); status != 404 {
		t.Errorf("removed twice: %d %v", status, err)
	}
}
