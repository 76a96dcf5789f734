package dstack

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
)

// Which release brings what is refused until then; README.md holds the same table.
const (
	withFleets = "there are no cloud backends yet, only fleets of SSH hosts"
	later      = "not available yet (planned for 0.5)"
)

// otherTypes are the configurations that are no tasks, each with what to say.
var otherTypes = map[string]string{
	"service":         "services are planned for 0.5",
	"dev-environment": "dev environments are planned for 0.5",
	"fleet":           "a fleet is applied by itself",
	"volume":          "volumes are planned for 0.5",
	"gateway":         "gateways are planned for 0.5",
	"preset":          "presets are not planned",
}

// readKey reads one key's value into the task.
type readKey func(r *reader, n *yaml.Node, path string)

// taskKeys is the grammar of a task. A key is read, or refused with a reason unless its value says what happens anyway.
var taskKeys = map[string]readKey{
	"type":            func(*reader, *yaml.Node, string) {},
	"name":            (*reader).name,
	"runtime":         (*reader).runtime,
	"commands":        (*reader).commands,
	"shell":           (*reader).shell,
	"env":             (*reader).env,
	"working_dir":     (*reader).workDir,
	"resources":       (*reader).resources,
	"nodes":           (*reader).nodes,
	"priority":        (*reader).priority,
	"max_duration":    (*reader).maxDuration,
	"stop_duration":   (*reader).stopDuration,
	"retry":           (*reader).retry,
	"creation_policy": oneOf("the scheduler chooses the node", "reuse", "reuse-or-create"),
	"spot_policy":     oneOf("fleets of SSH hosts have no spot instances", "on-demand", "auto"),
	"startup_order":   oneOf("all nodes start at once; other orders are planned for 0.5", "any"),
	"stop_criteria":   oneOf("a run ends when all its nodes have; master-done is planned for 0.5", "all-done"),

	"image":         (*reader).image,
	"python":        (*reader).python,
	"docker":        boolField(func(b *box) *bool { return &b.docker }),
	"nvcc":          boolField(func(b *box) *bool { return &b.nvcc }),
	"privileged":    inContainer(boolField(func(b *box) *bool { return &b.priv })),
	"entrypoint":    inContainer((*reader).entrypoint),
	"registry_auth": inContainer((*reader).registryAuth),
	"user":          inContainer((*reader).user),
	"volumes":       inContainer((*reader).volumes),
	"ports":         inContainer((*reader).ports),
	"files":         inContainer((*reader).files),

	"repos":              refusedUnlessEmpty("fetching of repositories is " + later),
	"single_branch":      refused("fetching of repositories is " + later),
	"groups":             refused("node groups are " + later),
	"dstack":             refusedUnlessFalse("access to the server from inside the run is " + later),
	"schedule":           refused("cron schedules are " + later),
	"utilization_policy": refused("ending of idle GPU runs is " + later),
	"tags":               refused(later),

	"backends":           refused(withFleets),
	"regions":            refused(withFleets),
	"availability_zones": refused(withFleets),
	"instance_types":     refused(withFleets),
	"instances":          refused(withFleets),
	"fleets":             (*reader).fleets,
	"reservation":        refused(withFleets),
	"max_price":          refused(withFleets),
	"idle_duration":      refused(withFleets),
	"backend_options":    refused(withFleets),

	"home_dir": refused("dstack ignores it; leave it out"),
	"setup":    refused("dstack ignores it in tasks; put the lines first in commands"),
}

func refused(why string) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		if !isNull(n) {
			r.add(n, path, "%s", why)
		}
	}
}

func refusedUnlessFalse(why string) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		if v, ok := boolean(n); isNull(n) || ok && !v {
			return
		}
		r.add(n, path, "%s", why)
	}
}

func refusedUnlessEmpty(why string) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			return
		}
		r.add(n, path, "%s", why)
	}
}

// oneOf accepts words that say what happens anyway.
func oneOf(why string, words ...string) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		for _, w := range words {
			if n.Kind == yaml.ScalarNode && (n.Value == w || isNull(n)) {
				return
			}
		}
		r.add(n, path, "must be %s, not %s: %s", strings.Join(words, " or "), kindOf(n), why)
	}
}

func (r *reader) name(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	if !ok {
		return
	}
	if err := CheckName(s); err != nil {
		r.add(n, path, "%s", err.Error())
		return
	}
	r.task.Name = s
}

func (r *reader) runtime(n *yaml.Node, path string) {
	switch s, ok := r.text(n, path); {
	case !ok:
	case s == core.RuntimeProcess || s == core.RuntimeContainer:
		r.task.box.runtime = s
	default:
		r.add(n, path, "%q is not a runtime; there are: %s, %s", clip(s), core.RuntimeProcess, core.RuntimeContainer)
	}
}

func (r *reader) commands(n *yaml.Node, path string) {
	items, ok := r.items(n, path)
	if !ok {
		return
	}
	for i, item := range items {
		if s, ok := r.text(item, index(path, i)); ok {
			r.task.Commands = append(r.task.Commands, command{s, item})
		}
	}
}

func (r *reader) shell(n *yaml.Node, p string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, p)
	r.task.box.shell = true
	switch {
	case !ok:
	case s == "sh" || s == "bash":
		r.task.Shell = "/bin/" + s
	case strings.HasPrefix(s, "/") && path.Clean(s) == s && !strings.ContainsAny(s, " \t\n"):
		r.task.Shell = s
	default:
		r.add(n, p, "must be sh, bash or an absolute path, not %q", clip(s))
	}
}

func (r *reader) workDir(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	switch {
	case !ok:
	case strings.HasPrefix(s, "/"), s == "~", strings.HasPrefix(s, "~/"):
		r.task.WorkDir = s
	default:
		r.add(n, path, "must be absolute or start with ~/, not %q", clip(s))
	}
}

func (r *reader) nodes(n *yaml.Node, path string) {
	if v, ok := r.bounded(n, path, 1, 1<<20); ok {
		r.task.Nodes = int32(v)
	}
}

func (r *reader) priority(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	if v, ok := r.bounded(n, path, 0, 100); ok {
		r.task.Priority = int32(v)
	}
}

// bounded reads a whole number within bounds.
func (r *reader) bounded(n *yaml.Node, path string, low, high int64) (int64, bool) {
	v, ok := integer(n)
	if !ok {
		r.add(n, path, "must be a whole number, not %s", kindOf(n))
		return 0, false
	}
	if v < low || v > high {
		r.add(n, path, "must be from %d to %d, not %d", low, high, v)
		return 0, false
	}
	return v, true
}

func (r *reader) maxDuration(n *yaml.Node, path string) {
	d, off, ok := r.duration(n, path)
	switch {
	case !ok:
	case off:
		r.task.MaxDuration = core.Forever
	case d == 0:
		r.add(n, path, "must be more than 0; use off for no limit")
	default:
		r.task.MaxDuration = d
	}
}

func (r *reader) stopDuration(n *yaml.Node, path string) {
	d, off, ok := r.duration(n, path)
	switch {
	case !ok:
	case off || d == 0:
		r.add(n, path, "must be a duration; off is not allowed here")
	default:
		r.task.StopDuration = d
	}
}

// duration reads a duration or off. Null and true mean the default: neither ok nor a fault.
func (r *reader) duration(n *yaml.Node, path string) (d core.Seconds, off, ok bool) {
	if n.Kind != yaml.ScalarNode {
		r.add(n, path, "must be a duration such as 90m, not %s", kindOf(n))
		return 0, false, false
	}
	if isNull(n) {
		return 0, false, false
	}
	if plainBoolean(n) || n.Value == "off" {
		v, _ := boolean(n)
		return 0, !v, !v
	}
	d, err := parseDuration(strings.TrimSpace(n.Value))
	if err != nil {
		r.add(n, path, "%s", err.Error())
		return 0, false, false
	}
	return d, false, true
}

// retry reads which of dstack's events start a run again; those not acted on are refused.
func (r *reader) retry(n *yaml.Node, path string) {
	const noError = "retry after an error is planned for 0.5; available: on_events: [interruption, " +
		"no-capacity]"
	if v, ok := boolean(n); ok || isNull(n) {
		if v {
			r.add(n, path, "true means all events, and %s", noError)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be true, false or a mapping with on_events, not %s", kindOf(n))
		return
	}
	given := false
	for _, e := range r.entries(n, path) {
		p := join(path, e.key.Value)
		switch e.key.Value {
		case "duration":
			r.add(e.key, p, "a limit on waiting is planned for 0.5")
		case "on_events":
			given = true
			r.retryEvents(e.value, p, noError)
		default:
			r.unknown(e.key, p, []string{"on_events", "duration"})
		}
	}
	if !given {
		r.add(n, path, "without on_events it means all events, and %s", noError)
	}
}

func (r *reader) retryEvents(n *yaml.Node, path, noError string) {
	items, ok := r.items(n, path)
	if ok && len(items) == 0 {
		r.add(n, path, "must not be empty")
	}
	for i, item := range items {
		switch p := index(path, i); item.Value {
		case "interruption":
			r.task.Requeue = true
		case "no-capacity":
			r.task.Wait = true
		case "error":
			r.add(item, p, "%s", noError)
		default:
			r.add(item, p, "must be one of no-capacity, interruption, error, not %s", kindOf(item))
		}
	}
}
