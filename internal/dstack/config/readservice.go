package config

import (
	"math"
	"reflect"
	"strings"
	"unicode"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// serviceReader reads services.
type serviceReader struct{ runReader }

func (r serviceReader) service(f *fields) *Service {
	s := &Service{
		Gateway: opt(f, "gateway", r.gatewayChoice), StripPrefix: f.flag("strip_prefix", true),
		Model: opt(f, "model", r.model), HTTPS: opt(f, "https", r.https), Auth: f.flag("auth", true),
		Scaling: opt(f, "scaling", r.scaling), RateLimits: items(f, "rate_limits", r.rateLimit),
		Probes: optItems(f, "probes", r.probe), Commands: f.texts("commands"),
	}
	if n, p := f.need("port"); n != nil {
		s.Port, _ = r.portOf(n, p, true)
	}
	s.Run, s.Policy = r.run(f, KindService), r.policy(f)
	r.replicaGroups(f, s)
	r.uniqueLimits(f, s)
	for i := range s.Probes {
		for j := range i {
			if reflect.DeepEqual(s.Probes[i], s.Probes[j]) {
				r.fail(f.n.Get("probes").Items[i], f.p.key("probes").at(i), typeValue, "the same probe is listed twice")
				break
			}
		}
	}
	return s
}

// replicaGroups reads replicas and groups. Old clients send groups as a list of replicas.
func (r serviceReader) replicaGroups(f *fields, s *Service) {
	n, p := f.get("replicas")
	groups, gp := f.get("groups")
	switch {
	case n == nil || n.Form == tree.Null:
	case groups != nil && groups.Form != tree.Null:
		f.failAt("replicas", "cannot be combined with groups")
	case n.Form == tree.List:
		groups, gp = n, p
	default:
		if v, ok := r.replicas(n, p); ok {
			s.Replicas = &v
		}
	}
	if groups == nil || groups.Form == tree.Null {
		r.commandsOrImage(f)
		r.scales(f, s.Replicas, s.Scaling)
		return
	}
	s.Groups = []ReplicaGroup{}
	r.list(groups, gp, func(n *tree.Node, p *path) {
		if g, ok := r.replicaGroup(n, p); ok {
			g.Name = groupName(g.Name, len(s.Groups))
			s.Groups = append(s.Groups, g)
		}
	})
	for _, key := range []string{"commands", "scaling"} {
		if f.on(key) {
			f.failAt(key, "cannot be combined with groups; write it in each group")
		}
	}
	r.checkGroups(f, groups, gp)
}

// replicas reads a count or a range with an end.
func (r serviceReader) replicas(n *tree.Node, p *path) (Range, bool) {
	v, ok := r.counts(n, p)
	switch {
	case !ok:
		return v, false
	case v.Max == nil:
		r.fail(n, p, typeValue, "needs a maximum, such as 1..4")
		return v, false
	case v.Min == nil:
		zero := int64(0)
		v.Min = &zero
	}
	if *v.Min < 0 {
		r.fail(n, p, typeValue, "must not be negative")
		return v, false
	}
	return v, true
}

// scales refuses a range without scaling and scaling without a range.
func (r serviceReader) scales(f *fields, replicas *Range, scaling *Scaling) {
	ranged := replicas != nil && *replicas.Min != *replicas.Max
	switch {
	case ranged && !f.given("scaling"):
		key := "replicas"
		if f.has("count") && !f.has("replicas") {
			key = "count"
		}
		f.failAt(key, "a range needs scaling")
	case !ranged && scaling != nil:
		f.failAt("scaling", "needs replicas to be a range, such as 1..4")
	}
}

func (r serviceReader) replicaGroup(n *tree.Node, p *path) (g ReplicaGroup, ok bool) {
	f := r.mapping(n, p, "a mapping with replicas, resources and commands")
	if f == nil {
		return g, false
	}
	g = ReplicaGroup{
		Name: r.groupNameOf(f), Scaling: opt(f, "scaling", r.scaling), Resources: r.resourcesOf(f),
		SpotPolicy: f.word("spot_policy", spotPolicies...), Reservation: f.optText("reservation"),
		Commands: f.texts("commands"), Image: f.optText("image"), Python: opt(f, "python", r.python),
		NVCC: f.optFlag("nvcc"), Docker: f.optFlag("docker"), Privileged: f.optFlag("privileged"),
		Router: opt(f, "router", r.router),
	}
	count, cp := f.get("count") // the old name
	v, vp := f.get("replicas")
	if v == nil {
		v, vp = count, cp
	}
	if v == nil {
		f.need("replicas")
	} else if g.Replicas, ok = r.replicas(v, vp); ok {
		r.scales(f, &g.Replicas, g.Scaling)
	}
	f.done()
	r.oneImage(f)
	if Value(g.Docker) && g.Privileged != nil && !*g.Privileged {
		f.failAt("privileged", "docker: true needs a privileged container")
	}
	return g, true
}

// checkGroups checks what groups have in common with each other and with the service.
func (r serviceReader) checkGroups(f *fields, groups *tree.Node, gp *path) {
	if groups.Form != tree.List {
		return
	}
	r.groups(groups, gp, func(*tree.Node, *path) {})
	routers := 0
	for i, g := range groups.Items {
		if g.Form != tree.Mapping {
			continue
		}
		in := &fields{r: r.reader, n: g, p: gp.at(i)}
		if !in.on("commands") && !in.on("image") && !f.on("image") {
			r.fail(g, in.p, typeValue, "needs commands or an image, or an image of the service")
		}
		r.levels(f, in)
		if !in.given("router") {
			continue
		}
		if routers++; routers > 1 {
			in.failAt("router", "another group has a router already")
		}
		count := g.Get("replicas")
		if count == nil {
			count = g.Get("count")
		}
		v, ok := (resourceReader{&reader{}}).counts(orNull(count), nil)
		if one := int64(1); ok && (v.Min == nil || *v.Min != one || v.Max == nil || *v.Max != one) {
			in.failAt("router", "a group with a router must have replicas: 1")
		}
		if t := g.Get("router").Get("type"); t != nil && t.Text == "dynamo" && f.on("retry") {
			f.failAt("retry", "cannot be combined with a router of type dynamo")
		}
	}
}

func orNull(n *tree.Node) *tree.Node {
	if n == nil {
		return &tree.Node{}
	}
	return n
}

// levels refuses what is set both in the service and in a group, and images that exclude each other.
func (r serviceReader) levels(f, group *fields) {
	for _, key := range []string{"image", "docker", "privileged", "python", "nvcc", "spot_policy", "reservation"} {
		if f.on(key) && group.given(key) {
			group.failAt(key, "is set for the whole service already; write it in one place only")
		}
	}
	for _, pair := range [][2]string{{"image", "python"}, {"image", "docker"}, {"python", "docker"}, {"nvcc", "docker"}} {
		for _, p := range [][2]string{pair, {pair[1], pair[0]}} {
			if f.on(p[0]) && group.on(p[1]) {
				group.failAt(p[1], "cannot be combined with %s of the service", p[0])
			}
		}
	}
}

func (r serviceReader) router(n *tree.Node, p *path) (out Router, ok bool) {
	f := r.mapping(n, p, "a mapping with type")
	if f == nil {
		return out, false
	}
	out.Type = "sglang"
	if v, vp := f.get("type"); v != nil {
		switch w := r.oneOf(v, vp, []string{"smg", "dynamo", "sglang"}); {
		case w == nil:
		case *w == "dynamo":
			out.Type = *w
		}
	}
	f.done()
	return out, true
}

func (r serviceReader) gatewayChoice(n *tree.Node, p *path) (g GatewayChoice, ok bool) {
	if n.Form == tree.Bool {
		return GatewayChoice{Use: n.Truth}, true
	}
	ref, ok := r.ref(n, p)
	return GatewayChoice{Ref: &ref}, ok
}

func (r serviceReader) https(n *tree.Node, p *path) (HTTPS, bool) {
	if n.Form == tree.Text && n.Text == "auto" {
		return HTTPS{Auto: true}, true
	}
	v, ok := (&reader{}).boolean(n, p)
	if !ok {
		r.fail(n, p, typeValue, "must be true, false or auto, not %s", n.Describe())
	}
	return HTTPS{On: v}, ok
}

func (r serviceReader) model(n *tree.Node, p *path) (m Model, ok bool) {
	if n.Form != tree.Mapping {
		s, ok := r.text(n, p)
		return Model{Type: "chat", Name: s, Format: "openai", Prefix: "/v1"}, ok
	}
	f := &fields{r: r.reader, n: n, p: p}
	m = Model{Type: "chat", Name: f.needText("name"), Prefix: "/v1"}
	if v, vp := f.get("type"); v != nil {
		r.oneOf(v, vp, []string{"chat"})
	}
	if v, vp := f.need("format"); v != nil {
		m.Format = Value(r.oneOf(v, vp, []string{"openai", "tgi"}))
	}
	if m.Format == "tgi" {
		m.ChatTemplate, m.EOSToken = f.optText("chat_template"), f.optText("eos_token")
	} else if v, vp := f.get("prefix"); v != nil {
		m.Prefix, _ = r.text(v, vp)
	}
	f.done()
	return m, true
}

func (r serviceReader) scaling(n *tree.Node, p *path) (s Scaling, ok bool) {
	f := r.mapping(n, p, "a mapping with metric and target")
	if f == nil {
		return s, false
	}
	s = Scaling{Metric: "rps", ScaleUpDelay: 300, ScaleDownDelay: 600, Window: opt(f, "window", r.duration)}
	if v, vp := f.need("metric"); v != nil {
		r.oneOf(v, vp, []string{"rps"})
	}
	if v, vp := f.need("target"); v != nil {
		s.Target, _ = r.above(0)(v, vp)
	}
	if w := s.Window; w != nil && *w != 30 && *w != 60 && *w != 300 {
		f.failAt("window", "must be 30s, 60s or 300s")
	}
	for key, to := range map[string]*int64{"scale_up_delay": &s.ScaleUpDelay, "scale_down_delay": &s.ScaleDownDelay} {
		if v, vp := f.get(key); v != nil {
			*to, _ = r.duration(v, vp)
		}
	}
	f.done()
	return s, true
}

var (
	limitPrefix = lazy(`^/[^\s\\{}]*$`)
	headerForm  = lazy(`^[a-zA-Z0-9\-_]+$`)
)

func (r serviceReader) rateLimit(n *tree.Node, p *path) (l RateLimit, ok bool) {
	f := r.mapping(n, p, "a mapping with rps")
	if f == nil {
		return l, false
	}
	l = RateLimit{Prefix: "/", Key: PartitionKey{Type: "ip_address"}}
	if v, vp := f.get("prefix"); v != nil {
		if l.Prefix, ok = r.text(v, vp); ok && (!limitPrefix().MatchString(l.Prefix) || len(l.Prefix) > 4094) {
			r.fail(v, vp, typeValue, `must start with / and have no blanks, \, { or }, not %s`, tree.Quote(l.Prefix))
		}
	}
	if v, vp := f.need("rps"); v != nil {
		l.RPS, _ = r.between(1.0/60, 153722867280912930)(v, vp)
	}
	if v, vp := f.get("burst"); v != nil {
		b, _ := r.bounded(0, math.MaxInt64)(v, vp)
		l.Burst = int64(b)
	}
	if v, vp := f.get("key"); v != nil {
		l.Key = r.partitionKey(v, vp)
	}
	f.done()
	return l, true
}

func (r serviceReader) partitionKey(n *tree.Node, p *path) (k PartitionKey) {
	f := r.mapping(n, p, "a mapping with type")
	if f == nil {
		return k
	}
	if v, vp := f.need("type"); v != nil {
		k.Type = Value(r.oneOf(v, vp, []string{"ip_address", "header"}))
	}
	if k.Type == "header" {
		k.Header = f.needText("header")
		if f.has("header") && (!headerForm().MatchString(k.Header) || len(k.Header) > 500) {
			f.failAt("header", "%s is not the name of a header", tree.Quote(k.Header))
		}
	}
	f.done()
	return k
}

func (r serviceReader) uniqueLimits(f *fields, s *Service) {
	seen := map[string]bool{}
	for i, l := range s.RateLimits {
		if seen[l.Prefix] {
			r.fail(f.n.Get("rate_limits").Items[i], f.p.key("rate_limits").at(i), typeValue, "the prefix %s has a limit already",
				tree.Quote(l.Prefix))
		}
		seen[l.Prefix] = true
	}
}

var methods = []string{"get", "post", "put", "delete", "patch", "head"}

func (r serviceReader) probe(n *tree.Node, p *path) (b Probe, ok bool) {
	f := r.mapping(n, p, "a mapping with type")
	if f == nil {
		return b, false
	}
	b = Probe{
		Type: "http", URL: f.optText("url"), Method: f.word("method", methods...), Headers: items(f, "headers", r.header),
		Body: f.optText("body"), Timeout: opt(f, "timeout", r.second), Interval: opt(f, "interval", r.second),
		ReadyAfter: opt(f, "ready_after", r.bounded(1, anyInt)), UntilReady: f.optFlag("until_ready"),
	}
	if v, vp := f.need("type"); v != nil {
		r.oneOf(v, vp, []string{"http"})
	}
	f.done()
	if b.URL != nil && (!strings.HasPrefix(*b.URL, "/") || len(*b.URL) > 2048 || !printable(*b.URL)) {
		f.failAt("url", "must start with / and have up to 2048 printable characters, not %s", tree.Quote(*b.URL))
	}
	if b.Body != nil && (*b.Body == "" || len(*b.Body) > 2048) {
		f.failAt("body", "must have 1 to 2048 characters")
	}
	if m := Value(b.Method); b.Body != nil && (m == "get" || m == "head") {
		f.failAt("body", "a %s request has no body", m)
	}
	if len(b.Headers) > 16 {
		f.failAt("headers", "has %d headers; a probe has at most 16", len(b.Headers))
	}
	return b, true
}

func printable(s string) bool {
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// second reads a duration of a second or more.
func (r serviceReader) second(n *tree.Node, p *path) (int64, bool) {
	v, ok := r.duration(n, p)
	if ok && v < 1 {
		r.fail(n, p, typeValue, "must be at least 1s, not %s", n.Describe())
		return 0, false
	}
	return v, ok
}

func (r serviceReader) header(n *tree.Node, p *path) (h Header, ok bool) {
	f := r.mapping(n, p, "a mapping with name and value")
	if f == nil {
		return h, false
	}
	h = Header{Name: f.needText("name"), Value: f.needText("value")}
	f.done()
	if f.has("name") && (h.Name == "" || len(h.Name) > 256) {
		f.failAt("name", "must have 1 to 256 characters")
	}
	if f.has("value") && (h.Value == "" || len(h.Value) > 2048) {
		f.failAt("value", "must have 1 to 2048 characters")
	}
	return h, true
}
