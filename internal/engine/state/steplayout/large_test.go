package steplayout

import (
	"fmt"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// largeJob has so many nodes of four CPUs.
func largeJob(nodes int) *core.Job {
	j := &core.Job{ID: 1, Alloc: &core.Alloc{}}
	for i := range nodes {
		j.Alloc.Nodes = append(j.Alloc.Nodes, core.NodeAlloc{
			Node: core.NodeName(fmt.Sprintf("n%d", i)), CPUs: 4, Cores: []int32{0, 1, 2, 3}, Tasks: 4,
		})
	}
	return j
}

// named are the nodes of a job, the last one first.
func named(j *core.Job) (list []core.NodeName) {
	for i := range slices.Backward(j.Alloc.Nodes) {
		list = append(list, j.Alloc.Nodes[i].Node)
	}
	return list
}

// Steps of a job with many nodes get what others leave on each of their own nodes, in whatever order they name them.
func TestPlaceInALargeJob(t *testing.T) {
	t.Parallel()
	j := largeJob(300)
	first, err := Place(j, nil, "first", &core.StepRequest{Exact: true, MaxTasksPerNode: 4})
	if err != nil {
		t.Fatal(err)
	}
	first.Ended = []int32{7}
	second, err := Place(j, []*core.Step{first}, "second",
		&core.StepRequest{TaskNodes: named(j), Exact: true, MaxTasksPerNode: 4})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(second.Nodes, named(j)) {
		t.Errorf("on %v", second.Nodes)
	}
	for i, h := range second.Holds {
		want := []int32{1} // the first step has CPU 0
		if second.Nodes[i] == "n7" {
			want = []int32{0}
		}
		if !slices.Equal(h.Cores, want) {
			t.Errorf("on %s it has CPUs %v, not %v", second.Nodes[i], h.Cores, want)
		}
	}
	on := []core.NodeName{"n10", "n200", "n3"}
	third, err := Place(j, []*core.Step{first, second}, "third",
		&core.StepRequest{On: on, Exact: true, MaxTasksPerNode: 4})
	if err != nil || !slices.Equal(third.Nodes, []core.NodeName{"n3", "n10", "n200"}) {
		t.Errorf("%+v, %v", third, err)
	}
}

// The server's writer waits for Place: its time is to grow with the nodes, not with their square.
func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		j := largeJob(n)
		other, err := Place(j, nil, "other", &core.StepRequest{Exact: true, MaxTasksPerNode: 4})
		if err != nil {
			b.Fatal(err)
		}
		for name, ask := range map[string]*core.StepRequest{
			"all": {Exact: true, MaxTasksPerNode: 4}, "listed": {TaskNodes: named(j), Exact: true, MaxTasksPerNode: 4},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := Place(j, []*core.Step{other}, "step", ask); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
