package convert

import (
	"encoding/json"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Bounds of probes, as dstack's server has them.
const (
	maxProbes       = 10
	maxProbeTimeout = 300
	maxReplicas     = 1000
)

// What probes and scaling are where a configuration does not say, in seconds.
const (
	probeTimeout  = 10
	probeInterval = 15
	modelTimeout  = 30
	scaleWindow   = 60
	defaultDrain  = 60
)

// unsupported names what of a service's form this version does not run, or dstack's server refuses: the key, and what
// would be right.
func unsupported(c *config.Service) (key, message string) {
	_, most := replicas(c)
	switch {
	case len(c.Groups) > 0:
		return "groups", "replicas of several kinds are not supported yet; write replicas and commands of the service"
	case c.Gateway != nil && (c.Gateway.Use || c.Gateway.Ref != nil):
		return "gateway", "there are no gateways yet; leave it out, or write gateway: false"
	case c.HTTPS != nil && !c.HTTPS.On && !c.HTTPS.Auto:
		return "https", "the server's own address decides about TLS; leave it out"
	case len(c.Probes) > maxProbes:
		return "probes", fmt.Sprintf("there are %d; a replica has at most %d", len(c.Probes), maxProbes)
	case most > maxReplicas:
		return "replicas", fmt.Sprintf("a service has at most %d", maxReplicas)
	}
	for i := range c.Probes {
		if t := c.Probes[i].Timeout; t != nil && *t > maxProbeTimeout {
			return "probes", fmt.Sprintf("a timeout of %ds is more than the %ds there may be", *t, maxProbeTimeout)
		}
	}
	return "", ""
}

func checkService(c *config.Service) error {
	if key, message := unsupported(c); key != "" {
		return refuse("%s: %s", key, message)
	}
	if len(c.Commands) == 0 && c.Image == nil {
		return refuse("Could not determine what command to run. " +
			"Please specify either `commands` or `image` in your run configuration")
	}
	return nil
}

func replicas(c *config.Service) (least, most int64) {
	least, most = 1, 1
	if r := c.Replicas; r != nil {
		least = config.Value(r.Min)
		if most = least; r.Max != nil {
			most = *r.Max
		}
	}
	return least, max(most, least, 1)
}

// Service is what a run of replicas has beside its jobs; nil: it is another kind of run.
func (s *Spec) Service() *core.Service {
	c := s.Configuration.Service
	if c == nil {
		return nil
	}
	least, most := replicas(c)
	out := &core.Service{
		Open: !c.Auth, KeepPrefix: !c.StripPrefix, Model: modelOf(c.Model), Drain: defaultDrain,
		Groups:   []core.ServiceGroup{{Min: int32(least), Max: int32(most), Scaling: scalingOf(c.Scaling)}},
		Versions: []core.ServiceVersion{{Port: int32(c.Port.Container), Probes: probesOf(c)}},
	}
	if d := s.Policy().StopDuration; d != nil && !d.Off {
		out.Drain = core.Seconds(d.Seconds)
	}
	for _, l := range c.RateLimits {
		out.RateLimits = append(out.RateLimits, core.RateLimit{
			Prefix: l.Prefix, Header: l.Key.Header, RPS: float64(l.RPS), Burst: l.Burst,
		})
	}
	return out
}

func modelOf(m *config.Model) *core.ServiceModel {
	if m == nil {
		return nil
	}
	return &core.ServiceModel{
		Name: m.Name, Format: m.Format, Prefix: m.Prefix, Template: config.Value(m.ChatTemplate),
		EOS: config.Value(m.EOSToken),
	}
}

func scalingOf(s *config.Scaling) *core.ServiceScaling {
	if s == nil {
		return nil
	}
	out := &core.ServiceScaling{
		Metric: core.ScalingMetric(s.Metric), Target: float64(s.Target), Window: scaleWindow,
		UpDelay: core.Seconds(s.ScaleUpDelay), DownDelay: core.Seconds(s.ScaleDownDelay),
	}
	if s.Window != nil {
		out.Window = core.Seconds(*s.Window)
	}
	return out
}

// probesOf are a service's probes with their defaults. One that names none and has a model is asked for a word.
func probesOf(c *config.Service) []core.Probe {
	if c.Probes == nil && c.Model != nil {
		prefix := strings.Trim(c.Model.Prefix, "/")
		if prefix == "" || c.Model.Format == "tgi" {
			prefix = "v1"
		}
		ask, err := json.Marshal(map[string]any{
			"model": c.Model.Name, "max_tokens": 1, "messages": []map[string]string{{"role": "user", "content": "hi"}},
		})
		if err != nil {
			return nil
		}
		return []core.Probe{{
			URL: "/" + prefix + "/chat/completions", Method: "POST", Body: string(ask), Timeout: modelTimeout,
			Headers:  []core.ProbeHeader{{Name: "Content-Type", Value: "application/json"}},
			Interval: probeInterval, ReadyAfter: 1, UntilReady: true,
		}}
	}
	var out []core.Probe
	for i := range c.Probes {
		p := &c.Probes[i]
		x := core.Probe{
			URL: "/", Method: "GET", Body: config.Value(p.Body), Timeout: probeTimeout, Interval: probeInterval, ReadyAfter: 1,
			UntilReady: config.Value(p.UntilReady),
		}
		if p.URL != nil {
			x.URL = *p.URL
		}
		if p.Method != nil {
			x.Method = strings.ToUpper(*p.Method)
		}
		if p.Timeout != nil {
			x.Timeout = core.Seconds(*p.Timeout)
		}
		if p.Interval != nil {
			x.Interval = core.Seconds(*p.Interval)
		}
		if p.ReadyAfter != nil {
			x.ReadyAfter = int32(*p.ReadyAfter)
		}
		for _, h := range p.Headers {
			x.Headers = append(x.Headers, core.ProbeHeader{Name: h.Name, Value: h.Value})
		}
		out = append(out, x)
	}
	return out
}

// Replica is a replica of a service with what is known of it.
type Replica struct {
	core.Replica
	Shown   Shown // as a run of its own
	Job     *core.Job
	Streaks []int32 // successes in a row, by probe
}

// ServicePath is where a service is found on the server.
func ServicePath(project core.ProjectName, run string) string {
	return "/proxy/services/" + string(project) + "/" + run + "/"
}

func serviceOf(r *core.Run) *wire.Service {
	out := &wire.Service{URL: ServicePath(r.Project, r.Name)}
	if m := r.Service.Model; m != nil {
		prefix := strings.Trim(m.Prefix, "/")
		if prefix == "" || m.Format == "tgi" {
			prefix = "v1"
		}
		out.Model = &wire.ServiceModel{Name: m.Name, BaseURL: out.URL + prefix, Type: "chat"}
	}
	return out
}

// replicas shows a service replica by replica.
func (v *View) replicas(r *Shown) []wire.Job {
	out := make([]wire.Job, len(r.Replicas))
	for i := range r.Replicas {
		x := &r.Replicas[i]
		spec := r.Spec.JobSpecs(r.Run.Name, x.Job.Spec.Runtime, v.Images)[0]
		spec.ReplicaNum, spec.JobName = int(x.Num), fmt.Sprintf("%s-0-%d", r.Run.Name, x.Num)
		list := v.submissions(&x.Shown, v.stage(&x.Shown, 0), 0)
		for k := range list {
			list[k].DeploymentNum = x.Version
		}
		if n := len(list); n > 0 {
			for _, s := range x.Streaks {
				list[n-1].Probes = append(list[n-1].Probes, wire.ProbeState{SuccessStreak: s})
			}
			if x.Message != "" && list[n-1].Status == wire.JobRunning && list[n-1].TerminationReasonMessage == nil {
				list[n-1].TerminationReasonMessage = &x.Message
			}
		}
		out[i] = wire.Job{Spec: spec, Submissions: list}
		if x.Job.Alloc != nil && v.Listener.Port != 0 {
			out[i].ConnectionInfo = v.connection(&x.Shown, 0)
		}
	}
	return out
}

// probeSpecs are the probes of a service as clients see them.
func (s *Spec) probeSpecs() []wire.ProbeSpec {
	out := []wire.ProbeSpec{}
	c := s.Configuration.Service
	if c == nil {
		return out
	}
	for _, p := range probesOf(c) {
		x := wire.ProbeSpec{
			Type: "http", URL: p.URL, Method: strings.ToLower(p.Method), Headers: []wire.ProbeHeader{},
			Timeout: int64(p.Timeout), Interval: int64(p.Interval), ReadyAfter: p.ReadyAfter, UntilReady: p.UntilReady,
		}
		if p.Body != "" {
			x.Body = &p.Body
		}
		for _, h := range p.Headers {
			x.Headers = append(x.Headers, wire.ProbeHeader(h))
		}
		out = append(out, x)
	}
	return out
}
