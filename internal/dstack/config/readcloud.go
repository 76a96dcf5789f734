package config

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// cloudReader reads what only clouds have: volumes, gateways and presets.
type cloudReader struct{ serviceReader }

var volumeBackends = []string{"aws", "gcp", "runpod", "kubernetes", "daytona", "lium"}

// volume reads a volume. Its faults start with the backend's word, which tells which keys there are.
func (r cloudReader) volume(f *fields) *Volume {
	n, p := f.get("backend")
	switch {
	case n == nil && f.has("class"):
		return r.ownVolume(f)
	case n == nil:
		f.need("backend")
		return r.anyVolume(f)
	case n.Form != tree.Text || !slices.Contains(volumeBackends, n.Text):
		r.fail(n, p, typeTag, "must be one of %s, not %s%s", strings.Join(volumeBackends, ", "), n.Describe(),
			nearest.Hint(n.Text, volumeBackends))
		return r.anyVolume(f)
	}
	f.p = &path{name: n.Text}
	v := &Volume{
		Backend: n.Text, Name: f.optText("name"), AutoCleanup: opt(f, "auto_cleanup_duration", r.idle), Tags: r.tags(f),
	}
	switch v.Backend {
	case "daytona", "lium":
		v.VolumeID = f.optText("volume_id")
		return v
	case "kubernetes":
		v.ClaimName, v.StorageClassName = f.optText("claim_name"), f.optText("storage_class_name")
		v.AccessModes, v.ReadOnly = []string{"ReadWriteOnce"}, f.flag("read_only", false)
		if m := f.texts("access_modes"); f.has("access_modes") {
			v.AccessModes = m
		}
		if n, p := f.get("region"); n != nil {
			v.Region, _ = r.text(n, p)
		}
	default:
		v.VolumeID, v.AvailabilityZone = f.optText("volume_id"), f.optText("availability_zone")
		v.Region = f.needText("region")
	}
	v.Size = opt(f, "size", r.size)
	return v
}

// ownVolume reads a volume of a class that Bireme's settings have.
func (r cloudReader) ownVolume(f *fields) *Volume {
	return &Volume{
		Name: f.optText("name"), AutoCleanup: opt(f, "auto_cleanup_duration", r.idle), Tags: r.tags(f),
		Class: f.optText("class"), Node: f.optText("node"), VolumeID: f.optText("volume_id"),
		ReadOnly: f.flag("read_only", false), Single: f.flag("single", false), Size: opt(f, "size", r.size),
	}
}

// anyVolume takes the keys of every backend, so that only the backend is told to be wrong.
func (r cloudReader) anyVolume(f *fields) *Volume {
	f.known = append(f.known, "name", "auto_cleanup_duration", "tags", "size", "volume_id", "region", "availability_zone",
		"claim_name", "storage_class_name", "access_modes", "read_only")
	return &Volume{}
}

func (r cloudReader) gateway(f *fields) *Gateway {
	g := &Gateway{
		Type: KindGateway, Name: f.optText("name"), Default: f.optFlag("default"), InstanceType: f.optText("instance_type"),
		Domain: f.optText("domain"), PublicIP: f.flag("public_ip", true), LoadBalancer: opt(f, "load_balancer", r.balancer),
		Certificate: &Certificate{Type: "lets-encrypt"}, Replicas: opt(f, "replicas", r.bounded(1, anyInt)), Tags: r.tags(f),
	}
	if n, p := f.need("backend"); n != nil {
		g.Backend, _ = r.backend(n, p)
	}
	g.Region = f.needText("region")
	if v, _ := f.get("certificate"); v != nil {
		g.Certificate = opt(f, "certificate", r.certificate)
	}
	if v, _ := f.get("router"); v != nil && v.Form != tree.Null { // old clients send null
		f.known = f.known[:len(f.known)-1]
	}
	if g.InstanceType != nil && *g.InstanceType == "" {
		f.failAt("instance_type", "must not be empty")
	}
	return g
}

func (r cloudReader) balancer(n *tree.Node, p *path) (b GatewayLoadBalancer, ok bool) {
	f := r.mapping(n, p, "a mapping with type")
	if f == nil {
		return b, false
	}
	if v, vp := f.need("type"); v != nil {
		b.Type = Value(r.oneOf(v, vp, []string{"alb"}))
	}
	f.done()
	return b, b.Type != ""
}

func (r cloudReader) certificate(n *tree.Node, p *path) (c Certificate, ok bool) {
	f := r.mapping(n, p, "a mapping with type")
	if f == nil {
		return c, false
	}
	if v, vp := f.need("type"); v != nil {
		c.Type = Value(r.oneOf(v, vp, []string{"lets-encrypt", "acm", "gcp-cm"}))
	}
	switch c.Type {
	case "acm":
		c.ARN = f.needText("arn")
	case "gcp-cm":
		c.Name = f.needText("name")
	}
	f.done()
	return c, c.Type != ""
}

func (r cloudReader) preset(f *fields) *Preset {
	positive, tokens := r.bounded(1, anyInt), r.bounded(0, anyInt)
	s := &Preset{
		Type: KindPreset, Name: f.optText("name"), Prompt: opt(f, "prompt", r.prompt),
		MinContextLength: opt(f, "min_context_length", positive), MaxTTFT: opt(f, "max_ttft", positive),
		Trials: opt(f, "trials", positive), Concurrency: opt(f, "concurrency", positive), Previous: f.optTexts("previous"),
		InputTokens: opt(f, "input_tokens", positive), OutputTokens: opt(f, "output_tokens", r.bounded(2, anyInt)),
		SharedPrefixTokens: opt(f, "shared_prefix_tokens", tokens), Dataset: f.optText("dataset"),
		Baseline: f.optFlag("baseline"), Gateway: opt(f, "gateway", r.gatewayChoice), Agent: opt(f, "agent", r.agent),
		Env: r.env(f), Policy: r.policy(f),
	}
	r.presetModel(f, s)
	if s.Dataset != nil {
		if *s.Dataset == "random" {
			f.failAt("dataset", "random is no dataset; leave the key out")
		}
		for _, key := range []string{"input_tokens", "output_tokens", "shared_prefix_tokens"} {
			if f.given(key) {
				f.failAt(key, "cannot be combined with dataset")
			}
		}
	}
	input := 1024
	if s.InputTokens != nil {
		input = *s.InputTokens
	}
	if s.SharedPrefixTokens != nil && *s.SharedPrefixTokens >= input {
		f.failAt("shared_prefix_tokens", "must be less than input_tokens (%d)", input)
	}
	return s
}

// presetModel reads model, or its shorthands base and repo.
func (r cloudReader) presetModel(f *fields, s *Preset) {
	base, repo := f.optText("base"), f.optText("repo")
	n, p := f.get("model")
	switch {
	case base != nil && repo != nil:
		f.failAt("repo", "cannot be combined with base")
	case n != nil && base != nil:
		f.failAt("base", "cannot be combined with model")
	case n != nil && repo != nil:
		f.failAt("repo", "cannot be combined with model")
	case base != nil:
		s.Model.Base = *base
	case repo != nil:
		s.Model.Repo = *repo
	case n == nil:
		f.need("model")
	case n.Form == tree.Mapping && n.Get("base") != nil:
		m := &fields{r: r.reader, n: n, p: p}
		s.Model.Base = m.needText("base")
		m.done()
	case n.Form == tree.Mapping:
		m := &fields{r: r.reader, n: n, p: p}
		s.Model.Name, s.Model.Repo = m.optText("name"), m.needText("repo")
		m.done()
	default:
		s.Model.Repo, _ = r.text(n, p)
	}
}

const maxPrompt = 10_000

func (r cloudReader) prompt(n *tree.Node, p *path) (out PresetPrompt, ok bool) {
	if n.Form == tree.Mapping {
		f := &fields{r: r.reader, n: n, p: p}
		out.Path = f.needText("path")
		f.done()
		return out, out.Path != ""
	}
	if out.Text, ok = r.text(n, p); ok && len([]rune(out.Text)) > maxPrompt {
		r.fail(n, p, typeValue, "must have at most %d characters", maxPrompt)
	}
	return out, ok
}

func (r cloudReader) agent(n *tree.Node, p *path) (a PresetAgent, ok bool) {
	f := r.mapping(n, p, "a mapping with provider")
	if f == nil {
		return a, false
	}
	if v, vp := f.need("provider"); v != nil {
		a.Provider = Value(r.oneOf(v, vp, []string{"claude", "codex"}))
	}
	a.Model, a.Effort = f.optText("model"), f.word("effort", "low", "medium", "high", "xhigh", "max")
	f.done()
	return a, true
}
