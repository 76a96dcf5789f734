package storage

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// rankInName finds what stands for a node's rank in the name of a volume: ${{ dstack.node_rank }}, or job_num.
func rankInName(name string) (from, to int, ok bool) {
	from = strings.Index(name, "${{")
	if from < 0 {
		return 0, 0, false
	}
	inside, _, closed := strings.Cut(name[from+3:], "}}")
	word := strings.TrimSpace(inside)
	return from, from + 3 + len(inside) + 2, closed && (word == "dstack.node_rank" || word == "dstack.job_num")
}

// PerNode reports whether each node has a volume of its own.
func PerNode(m *core.VolumeMount) bool {
	_, _, ok := rankInName(m.Name)
	return ok
}

// NameFor is the volume's name on a node of some rank.
func NameFor(m *core.VolumeMount, rank int) string {
	name := m.Name
	for {
		from, to, ok := rankInName(name)
		if !ok {
			return name
		}
		name = name[:from] + strconv.Itoa(rank) + name[to:]
	}
}

// Mounted are the keys of all volumes that a job mounts, in the order of its nodes.
func Mounted(s *core.Spec) (list []core.VolumeKey) {
	for i := range s.More().Volumes {
		m := &s.Extra.Volumes[i]
		n := 1
		if PerNode(m) {
			n = int(max(1, s.Shape.NodesMin))
		}
		for rank := range n {
			list = append(list, core.VolumeKey{Project: s.Project, Name: NameFor(m, rank)})
		}
	}
	return list
}

// volumeLicense begins the name of the license that stands for a volume which one job at a time may have. No license of
// the settings can be called so, for a colon ends their names.
const volumeLicense = "volume:"

// OfLicense is the volume that a license stands for; empty: it is a license of the settings.
func OfLicense(name string) string {
	if v, ok := strings.CutPrefix(name, volumeLicense); ok {
		return v
	}
	return ""
}

// LicenseRequest is what a job needs to have for itself: licenses, and the volumes that only one job may have. It is
// for reading only.
func LicenseRequest(s *core.Spec) *core.LicenseRequest {
	x := s.More()
	req := x.Licenses.Request()
	var own []core.License
	for i := range x.Volumes {
		m := &x.Volumes[i]
		if !m.Single {
			continue
		}
		n := 1
		if PerNode(m) {
			n = int(max(1, s.Shape.NodesMin))
		}
		for rank := range n {
			k := core.VolumeKey{Project: s.Project, Name: NameFor(m, rank)}
			own = append(own, core.License{Name: volumeLicense + k.String(), Total: 1})
		}
	}
	if own == nil {
		return req
	}
	if req != nil {
		own = append(append([]core.License{}, req.List...), own...)
	}
	return &core.LicenseRequest{List: own}
}
