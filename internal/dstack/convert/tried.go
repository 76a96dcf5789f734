package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// maxTried bounds the nodes that a refusal goes through one by one.
const maxTried = 5

// Tried tells of each node that the run may be on why it cannot be there, for one that nothing can hold.
func (s *Spec) Tried(at *Places) string {
	if len(at.Nodes) == 0 {
		return "the project has no nodes"
	}
	p := s.Policy()
	res := &s.Configuration.Run().Resources
	req, arch := requestOf(res), config.Value(res.CPU.Arch)
	var told []string
	for _, x := range at.Nodes[:min(len(at.Nodes), maxTried)] {
		why := x.misfit(&p, &req, arch)
		switch {
		case why == "" && s.Nodes() == 1:
			why = "has what is asked for, but not with all that the run wants beside it"
		case why == "":
			why = fmt.Sprintf("has what is asked for; %d such nodes are needed", s.Nodes())
		}
		told = append(told, string(x.Node.Name)+" "+why)
	}
	out := "nodes tried: " + strings.Join(told, "; ")
	if more := len(at.Nodes) - maxTried; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}

// misfit tells why a job of a run cannot be on a node; empty: it can.
func (p *Place) misfit(pol *config.Policy, req *request, arch string) string {
	n := p.Node
	h := &n.Hardware
	switch {
	case missing(pol) != "":
		return "is a machine of ours (backend remote, on-demand)"
	case len(pol.Fleets) > 0 && !slices.ContainsFunc(pol.Fleets, p.isOf):
		return "is in none of the fleets"
	case len(pol.Instances) > 0 && !slices.ContainsFunc(pol.Instances, p.is):
		return "is not among the instances"
	case !n.Usable() && !n.Wakeable():
		return "is out of service"
	}
	if has := archOf(n.Host.Arch); arch != "" && has != nil && *has != arch {
		return "is " + *has
	}
	var out []string
	if h.CPUs < req.cpus {
		out = append(out, fmt.Sprintf("%d of %d CPUs", h.CPUs, req.cpus))
	}
	if h.Memory < req.memory {
		out = append(out, fmt.Sprintf("%s of %s memory", inGB(h.Memory), inGB(req.memory)))
	}
	if got := countGPUs(n, req); got < req.gpus.Count {
		out = append(out, fmt.Sprintf("%d of %d such GPUs%s", got, req.gpus.Count, gpusOf(n)))
	}
	if h.TmpDisk > 0 && h.TmpDisk < req.disk {
		out = append(out, fmt.Sprintf("%s of %s disk", inGB(h.TmpDisk), inGB(req.disk)))
	}
	if len(out) == 0 {
		return ""
	}
	return "has " + strings.Join(out, ", ")
}

// isOf reports whether a fleet that a run names has the node.
func (p *Place) isOf(f config.Ref) bool { return p.isIn([]string{f.Name}, []string{f.Name}) }

// gpusOf names the GPUs of a node, in brackets.
func gpusOf(n *core.Node) string {
	var out []string
	for _, g := range n.Hardware.Gres {
		if g.Name == "gpu" {
			out = append(out, fmt.Sprintf("%s:%d", strings.ToUpper(g.Type), g.Count))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (it has " + strings.Join(out, ", ") + ")"
}

func inGB(b core.Bytes) string {
	return strconv.FormatFloat(float64(b*10/core.GiB)/10, 'f', -1, 64) + "GB"
}
