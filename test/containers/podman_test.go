//go:build e2e

package containers

import (
	"errors"
	"testing"

	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// TestPodman: what users see of jobs in containers is the same where Podman makes them.
func TestPodman(t *testing.T) {
	podman, err := engine.StartPodman(t.Context())
	if errors.Is(err, engine.ErrNoPodman) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	real := docker
	docker = podman
	defer func() {
		docker = real
		if err := podman.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := importImages(podman); err != nil {
		t.Fatal(err)
	}
	c := start(t, cluster.Options{
		Memory: "8G", Set: []string{"step.constrain_mem=true", "step.max_pids=40"},
		Args: []string{"--cpus", "16"},
	})
	for _, tc := range []struct {
		name string
		test func(*testing.T, *cluster.Cluster)
	}{
		{"run", runs},
		{"own program", ownProgram},
		{"no shell", noShell},
		{"memory", memory},
		{"pids", pids},
		{"stop", stops},
		{"registry", registry},
		{"killed", killed},
		{"mounts", mounts},
		{"sbatch", batch},
		{"suspend", suspended},
		{"agent", agentDies},
		{"keeper", keeperDies},
		{"images", func(t *testing.T, _ *cluster.Cluster) { images(t, false) }},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, c.For(t)) })
	}
	left(t, c)
	c.WaitClean()
}
