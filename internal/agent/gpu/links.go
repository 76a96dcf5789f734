package gpu

import (
	"strconv"
	"strings"
)

// parseLinks reads the matrix of `nvidia-smi topo -m` and numbers the sets of GPUs that NVLink joins, from 1; those
// that it joins to no other have 0.
func parseLinks(text string, n int) []int32 {
	links := make([]int32, n)
	parent := make([]int, n)
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		row, ok := gpuNumber(f[0])
		if _, header := gpuNumber(f[1]); !ok || header || row >= n {
			continue
		}
		for col, cell := range f[1:] {
			if col < n && strings.HasPrefix(cell, "NV") && cell != "NODE" {
				parent[max(find(row), find(col))] = min(find(row), find(col))
			}
		}
	}
	next := int32(0)
	for i := range n {
		if root := find(i); root != i {
			if links[root] == 0 {
				next++
				links[root] = next
			}
			links[i] = links[root]
		}
	}
	return links
}

func gpuNumber(word string) (int, bool) {
	digits, ok := strings.CutPrefix(word, "GPU")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}
