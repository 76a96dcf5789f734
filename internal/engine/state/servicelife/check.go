package servicelife

import (
	"math"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Bounds of what a client may say of a service.
const (
	maxReplicas = 1000
	maxProbes   = 10
	maxLimits   = 100
	maxText     = 64 << 10 // bytes of all texts together
	maxWindow   = 299      // seconds; statistics are kept for so long
	maxTime     = 30 * 24 * 3600
)

// Clean takes from a client's service what a client may say, and refuses what cannot be.
func Clean(in *core.Service) (*core.Service, error) {
	if len(in.Groups) != 1 || len(in.Versions) != 1 {
		return nil, refuse("service: it has one group of replicas and one version, not %d and %d", len(in.Groups),
			len(in.Versions))
	}
	g, v := &in.Groups[0], &in.Versions[0]
	out := &core.Service{
		Open: in.Open, KeepPrefix: in.KeepPrefix, Model: in.Model, RateLimits: in.RateLimits, Drain: in.Drain,
		Groups:   []core.ServiceGroup{{Min: g.Min, Max: g.Max, Scaling: g.Scaling}},
		Versions: []core.ServiceVersion{{Port: v.Port, Probes: v.Probes}},
	}
	switch {
	case g.Min < 0 || g.Max < g.Min || g.Max < 1 || g.Max > maxReplicas:
		return nil, refuse("replicas: %d..%d is no range from 0 to %d", g.Min, g.Max, maxReplicas)
	case v.Port < 1 || v.Port > 65535:
		return nil, refuse("port: %d is none from 1 to 65535", v.Port)
	case in.Drain < 0 || in.Drain > maxTime:
		return nil, refuse("stop_duration: %d seconds is no time from 0 to %d", in.Drain, maxTime)
	case len(v.Probes) > maxProbes:
		return nil, refuse("probes: there are %d; a replica has at most %d", len(v.Probes), maxProbes)
	case len(in.RateLimits) > maxLimits:
		return nil, refuse("rate_limits: there are %d; a service has at most %d", len(in.RateLimits), maxLimits)
	}
	size := 0
	if m := in.Model; m != nil {
		size += len(m.Name) + len(m.Format) + len(m.Prefix) + len(m.Template) + len(m.EOS)
	}
	for i := range in.RateLimits {
		l := &in.RateLimits[i]
		size += len(l.Prefix) + len(l.Header)
		if !(l.RPS >= 1.0/60 && l.RPS <= 1e6) || l.Burst < 0 || l.Burst > 1e6 || !strings.HasPrefix(l.Prefix, "/") {
			return nil, refuse("rate_limits: %q: rps from 1/60 to 1000000, burst up to that, and a prefix with a slash",
				l.Prefix)
		}
	}
	for i := range v.Probes {
		n, err := checkProbe(&v.Probes[i])
		if err != nil {
			return nil, err
		}
		size += n
	}
	if size > maxText {
		return nil, refuse("service: its texts have %d bytes together; the limit is %d", size, maxText)
	}
	return out, checkScaling(g.Scaling)
}

func checkScaling(s *core.ServiceScaling) error {
	if s == nil {
		return nil
	}
	switch s.Metric {
	case core.ScaleRPS, core.ScaleQueue, core.ScaleLatency:
	default:
		return refuse("scaling.metric: %q is none of %s, %s, %s", s.Metric, core.ScaleRPS, core.ScaleQueue, core.ScaleLatency)
	}
	if !(s.Target > 0) || math.IsInf(s.Target, 0) {
		return refuse("scaling.target: must be more than 0")
	}
	if s.Window < 1 || s.Window > 300 || s.UpDelay < 0 || s.DownDelay < 0 || s.UpDelay > maxTime || s.DownDelay > maxTime {
		return refuse("scaling: a window from 1s to 300s, and delays of up to %d days", maxTime/24/3600)
	}
	s.Window = min(s.Window, maxWindow)
	return nil
}

func checkProbe(p *core.Probe) (size int, err error) {
	size = len(p.URL) + len(p.Method) + len(p.Body)
	for _, h := range p.Headers {
		size += len(h.Name) + len(h.Value)
		if strings.ContainsAny(h.Name+h.Value, "\r\n\x00") {
			return 0, refuse("probes: a header has a line break")
		}
	}
	switch {
	case !strings.HasPrefix(p.URL, "/") || strings.ContainsAny(p.URL, " \r\n\x00"):
		return 0, refuse("probes: url %q does not begin with a slash, or has a space", p.URL)
	case p.Timeout < 1 || p.Timeout > 300 || p.Interval < 1 || p.Interval > maxTime || p.ReadyAfter < 1:
		return 0, refuse("probes: a timeout from 1 to 300 seconds, an interval and ready_after from 1")
	}
	switch p.Method {
	case "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD":
		return size, nil
	}
	return 0, refuse("probes: method %q is none of GET, POST, PUT, DELETE, PATCH, HEAD", p.Method)
}

func refuse(format string, args ...any) error {
	return core.Errorf(core.Invalid, format, args...).Because("invalid_service")
}
