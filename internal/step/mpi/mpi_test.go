package mpi

import (
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// TestNoTasks: a part of a step that has no task on a node where another has some is an error, not the keeper's end.
func TestNoTasks(t *testing.T) {
	t.Parallel()
	l := &wire.Launch{Key: wire.Key{Node: "n1"}}
	l.Program.PMIx = &wire.PMIx{
		Namespace: "slurm.pmix.1.0", Size: 1, Nodes: []wire.PMIxNode{{Name: "n1", Ranks: wire.Ranks{0}}},
	}
	if s, err := Open(Config{Launch: l}); err == nil {
		s.Close()
		t.Error("it is served")
	}
}
