package config

import (
	"strings"

	"bireme.dev/bireme/internal/core/cron"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// policyReader reads the properties of profiles.
type policyReader struct{ resourceReader }

var backends = []string{
	"amddevcloud", "aws", "azure", "cloudrift", "crusoe", "cudo", "datacrunch", "daytona", "digitalocean", "dstack",
	"gcp", "hotaisle", "jarvislabs", "kubernetes", "lambda", "lium", "remote", "nebius", "oci", "runpod", "seeweb",
	"tensordock", "vastai", "verda", "vultr", "slurm",
}

var (
	spotPolicies = []string{"spot", "on-demand", "auto"}
	retryEvents  = []string{RetryNoCapacity, RetryInterruption, RetryError}
)

// policy reads the properties of a profile.
func (r policyReader) policy(f *fields) Policy {
	p := Policy{
		Backends: optItems(f, "backends", r.backend), Regions: f.optTexts("regions"),
		AvailabilityZones: f.optTexts("availability_zones"), InstanceTypes: f.optTexts("instance_types"),
		Reservation: f.optText("reservation"), SpotPolicy: f.word("spot_policy", spotPolicies...),
		Retry: opt(f, "retry", r.retry), MaxDuration: opt(f, "max_duration", r.offable),
		StopDuration: opt(f, "stop_duration", r.offable), MaxPrice: opt(f, "max_price", r.above(0)),
		CreationPolicy: f.word("creation_policy", "reuse", "reuse-or-create"),
		IdleDuration:   opt(f, "idle_duration", r.idle), UtilizationPolicy: opt(f, "utilization_policy", r.utilization),
		StartupOrder: f.word("startup_order", "any", "master-first", "workers-first"),
		StopCriteria: f.word("stop_criteria", "all-done", "master-done"), Schedule: opt(f, "schedule", r.schedule),
		Fleets: optItems(f, "fleets", r.ref), Instances: optItems(f, "instances", r.instance), Tags: r.tags(f),
		BackendOptions: r.backendOptions(f),
	}
	if f.has("instances") && p.Instances != nil && len(f.n.Get("instances").Items) == 0 {
		f.failAt("instances", "must not be empty")
	}
	return p
}

func (r policyReader) backend(n *tree.Node, p *path) (string, bool) {
	w := r.oneOf(n, p, backends)
	return Value(w), w != nil
}

// retry reads true, false or a mapping.
func (r policyReader) retry(n *tree.Node, p *path) (out Retry, ok bool) {
	if n.Form != tree.Mapping {
		quiet := &reader{}
		if out.On, ok = quiet.boolean(n, p); !ok {
			r.fail(n, p, typeValue, "must be true, false or a mapping with on_events and duration, not %s", n.Describe())
		}
		return out, ok
	}
	f := &fields{r: r.reader, n: n, p: p}
	out = Retry{Mapping: true, Events: optItems(f, "on_events", func(n *tree.Node, p *path) (string, bool) {
		w := r.oneOf(n, p, retryEvents)
		return Value(w), w != nil
	}), Duration: opt(f, "duration", r.duration)}
	f.done()
	if v := n.Get("on_events"); v != nil && v.Form == tree.List && len(v.Items) == 0 {
		f.failAt("on_events", "must not be empty")
		return out, false
	}
	return out, true
}

func (r policyReader) utilization(n *tree.Node, p *path) (u UtilizationPolicy, ok bool) {
	f := r.mapping(n, p, "a mapping with min_gpu_utilization and time_window")
	if f == nil {
		return u, false
	}
	if v, p := f.need("min_gpu_utilization"); v != nil {
		u.MinGPUUtilization, _ = r.bounded(0, 100)(v, p)
	}
	if v, p := f.need("time_window"); v != nil {
		if u.TimeWindow, ok = r.duration(v, p); ok && u.TimeWindow < 300 {
			r.fail(v, p, typeValue, "must be at least 5m, not %s", v.Describe())
		}
	}
	f.done()
	return u, true
}

func (r policyReader) schedule(n *tree.Node, p *path) (s Schedule, ok bool) {
	f := r.mapping(n, p, "a mapping with cron")
	if f == nil {
		return s, false
	}
	v, vp := f.need("cron")
	switch {
	case v == nil:
	case v.Form == tree.List:
		s.Cron = items(f, "cron", r.cron)
		if len(v.Items) == 0 {
			r.fail(v, vp, typeValue, "must not be empty")
		}
	default:
		if line, ok := r.cron(v, vp); ok {
			s.Cron = []string{line}
		}
	}
	f.done()
	return s, true
}

func (r policyReader) cron(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if !ok {
		return "", false
	}
	if _, err := cron.Parse(s, cron.Monday); err != nil {
		r.fail(n, p, typeValue, "%s", err.Error())
		return "", false
	}
	return s, true
}

// ref reads NAME, PROJECT/NAME and the mapping.
func (r policyReader) ref(n *tree.Node, p *path) (out Ref, ok bool) {
	if n.Form == tree.Mapping {
		f := &fields{r: r.reader, n: n, p: p}
		out = Ref{Project: f.optText("project"), Name: f.needText("name")}
		f.done()
		return out, true
	}
	s, ok := r.text(n, p)
	if !ok {
		return out, false
	}
	parts := strings.Split(s, "/")
	for _, part := range parts {
		if part == "" || len(parts) > 2 {
			r.fail(n, p, typeValue, "must be NAME or PROJECT/NAME, not %s", tree.Quote(s))
			return out, false
		}
	}
	if len(parts) == 2 {
		return Ref{Project: &parts[0], Name: parts[1]}, true
	}
	return Ref{Name: s}, true
}

// instance reads a name, or a mapping with a name, a hostname, or a fleet and a number.
func (r policyReader) instance(n *tree.Node, p *path) (s InstanceSelector, ok bool) {
	filled := func(n *tree.Node, p *path) (string, bool) {
		v, read := r.text(n, p)
		if read && v == "" {
			r.fail(n, p, typeValue, "must not be empty")
			return "", false
		}
		return v, read
	}
	if n.Form != tree.Mapping {
		s.Name, ok = filled(n, p)
		return s, ok
	}
	f := &fields{r: r.reader, n: n, p: p}
	switch {
	case f.has("hostname"):
		v, vp := f.get("hostname")
		s.Hostname, ok = filled(v, vp)
	case f.has("fleet") || f.has("instance"):
		if v, vp := f.need("fleet"); v != nil {
			ref, isRef := r.ref(v, vp)
			s.Fleet, ok = &ref, isRef
		}
		if v, vp := f.need("instance"); v != nil {
			s.Instance, _ = r.bounded(0, anyInt)(v, vp)
		}
	default:
		f.known = append(f.known, "hostname", "fleet", "instance")
		if v, vp := f.need("name"); v != nil {
			s.Name, ok = filled(v, vp)
		}
	}
	f.done()
	return s, ok
}

var (
	tagName  = lazy(`^[_\-a-zA-Z0-9]{1,60}$`)
	tagValue = lazy(`^[a-zA-Z0-9 .:/=_\-+@]{0,256}$`)
)

func (r policyReader) tags(f *fields) Tags {
	n, p := f.get("tags")
	if n == nil || n.Form == tree.Null {
		return nil
	}
	if n.Form != tree.Mapping {
		r.fail(n, p, typeMapping, "must be a mapping, not %s", n.Describe())
		return nil
	}
	tags := Tags{}
	for _, e := range n.Keys {
		name, at := e.Key.Plain(), p.key(e.Key.Plain())
		ours := strings.HasPrefix(name, TagPrefix)
		switch {
		case e.Value.Form != tree.Text:
			r.fail(e.Value, at, typeText, "must be a text, not %s; quote it", e.Value.Describe())
		case !tagName().MatchString(name):
			r.fail(e.Key, at, typeValue, "%s is not a tag's name: up to 60 letters, digits, - and _", tree.Quote(name))
		case !ours && !tagValue().MatchString(e.Value.Text):
			r.fail(e.Value, at, typeValue, "must be up to 256 letters, digits, blanks and . : / = _ - + @, not %s",
				tree.Quote(e.Value.Text))
		}
		tags = append(tags, Tag{name, e.Value.Plain()})
	}
	return tags
}

func (r policyReader) backendOptions(f *fields) []VastOptions {
	seen := map[string]bool{}
	return optItems(f, "backend_options", func(n *tree.Node, p *path) (v VastOptions, ok bool) {
		m := r.mapping(n, p, "a mapping with type")
		if m == nil {
			return v, false
		}
		v = VastOptions{
			Type: "vastai", OfferOrder: m.word("offer_order", "score", "price"),
			MinReliability: opt(m, "min_reliability", r.between(0, 1)), MinScore: opt(m, "min_score", r.bounded(0, anyInt)),
		}
		if t, tp := m.get("type"); t != nil {
			r.oneOf(t, tp, []string{"vastai"})
		}
		m.done()
		if seen[v.Type] {
			r.fail(n, p, typeValue, "%s has options already", v.Type)
		}
		seen[v.Type] = true
		return v, true
	})
}
