package dstack

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
)

// The images of a container that names none, as dstack 0.22.5 has them: CUDA's runtime, with nvcc its compiler, or
// Docker itself.
const (
	baseImage  = "dstackai/base:0.16-base-ubuntu24.04"
	develImage = "dstackai/base:0.16-devel-ubuntu24.04"
	dindImage  = "dstackai/dind"
)

// box is what a configuration says about a container.
type box struct {
	runtime  string // as written; empty: not
	image    string
	python   string
	docker   bool
	nvcc     bool
	entry    []string
	user     string
	auth     *registryAuth
	shm      core.Bytes
	shell    bool // one was written
	priv     bool
	mounts   []core.Mount
	ports    []core.Port
	needs    []need // keys that mean nothing without a container
	contains bool   // decided: it runs in one
}

// need is a key that needs a container.
type need struct {
	node *yaml.Node
	path string
}

// registryAuth is what a registry wants to know. Both may name variables of the caller.
type registryAuth struct {
	username, password string
	node               *yaml.Node
}

// String keeps the password out of whatever prints a registryAuth.
func (a registryAuth) String() string { return "login of " + a.username }

// GoString is String for %#v.
func (a registryAuth) GoString() string { return a.String() }

// inContainer wraps the reader of a key that means nothing to processes.
func inContainer(read readKey) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		if isNull(n) || n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			return
		}
		if v, ok := boolean(n); ok && !v {
			return
		}
		r.task.box.needs = append(r.task.box.needs, need{n, path})
		read(r, n, path)
	}
}

// settleContainer decides what the task runs in, once all keys are read: an image, python or docker mean a container,
// else runtime says it, else the project does (settleRuntime).
func (r *reader) settleContainer(root *yaml.Node) {
	t, b := r.task, &r.task.box
	named := b.image != "" || b.python != "" || b.docker || b.nvcc
	switch {
	case named && b.runtime == core.RuntimeProcess:
		r.add(root, "runtime", "process cannot be combined with image, python, nvcc or docker, which need a container")
	case named:
		b.runtime = core.RuntimeContainer
	}
	b.contains = b.runtime == core.RuntimeContainer
	switch {
	case b.runtime == core.RuntimeProcess:
		t.needContainer(&r.faults)
	case !b.contains:
	case b.image != "" && (b.python != "" || b.docker || b.nvcc):
		r.add(root, "image", "cannot be combined with python, nvcc or docker")
	case b.docker && (b.python != "" || b.nvcc):
		r.add(root, "docker", "cannot be combined with python or nvcc")
	}
	if b.contains && b.image != "" && !b.shell {
		t.Shell = "/bin/sh"
	}
	if b.docker {
		b.priv = true
	}
	if len(t.Commands) == 0 && len(r.list) == 0 && b.image == "" {
		r.add(root, "commands", "a task needs commands, or an image with an entrypoint")
	}
}

// needContainer tells of the keys that mean nothing to processes.
func (t *Task) needContainer(f *faults) {
	for _, k := range t.box.needs {
		f.add(k.node, k.path, "needs a container: name an image, or write runtime: container")
	}
}

// Undecided tells that the configuration leaves what it runs in to its project.
func (t *Task) Undecided() bool { return t.box.runtime == "" }

// settleRuntime takes the project's word where the configuration has none. Before that is known, keys that need a
// container may turn out to have one.
func (t *Task) settleRuntime(f *faults, project string) {
	if !t.Undecided() {
		return
	}
	t.box.contains = project == core.RuntimeContainer
	if project == core.RuntimeProcess {
		t.needContainer(f)
	}
}

// container gives the container of a submission, nil for processes.
func (t *Task) container() *core.Container {
	b := &t.box
	if !b.contains {
		return nil
	}
	c := &core.Container{
		Image: b.image, WorkDir: t.WorkDir, User: b.user, Privileged: b.priv, Shm: b.shm, Mounts: b.mounts, Ports: b.ports,
		Own: len(t.Commands) == 0 || len(b.entry) > 0, Entry: b.entry,
	}
	switch {
	case b.docker:
		c.Image = dindImage
	case b.nvcc:
		c.Image = develImage
	case b.image == "":
		c.Image = baseImage
	}
	return c
}

// ownScript stands where a submission has its script when the image's own program runs.
const ownScript = "#!image\n"

// prelude is what the images without a name do before the commands.
func (t *Task) prelude() string {
	switch {
	case t.box.docker:
		return "start-dockerd || exit\n"
	case t.box.python != "":
		return "uv venv -q --seed --python " + t.box.python + " \"$HOME/.venv\" && . \"$HOME/.venv/bin/activate\" || exit\n"
	}
	return ""
}

// secretEnv adds what a registry wants to know to the environment, where the rest of what nobody else may see is.
func (t *Task) secretEnv(f *faults, env []string) []string {
	a := t.box.auth
	if a == nil {
		return env
	}
	vars := make(map[string]string, len(env))
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars["env."+name] = value
	}
	username, err := interpolate(a.username, vars)
	password, err2 := interpolate(a.password, vars)
	for _, err := range []error{err, err2} {
		if err != nil {
			f.add(a.node, "registry_auth", "%s", err.Error())
		}
	}
	b, _ := json.Marshal(map[string]string{"username": username, "password": password}) // strings: cannot fail
	return append(env, core.RegistryAuth+"="+string(b))
}

func (r *reader) image(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	switch {
	case !ok:
	case s == "" || strings.ContainsAny(s, " \t\n?#"):
		r.add(n, path, "%q is not an image name", clip(s))
	default:
		r.task.box.image = s
	}
}

func (r *reader) python(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	if s == "3.1" {
		s = "3.10" // YAML reads it as a number
	}
	if minor, err := strconv.Atoi(strings.TrimPrefix(s, "3.")); ok &&
		(err != nil || !strings.HasPrefix(s, "3.") || minor < 9 || minor > 15) {
		r.add(n, path, "%q is not a version from 3.9 to 3.15", clip(s))
		return
	}
	r.task.box.python = s
}

// boolField reads a boolean into a field.
func boolField(field func(*box) *bool) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		v, ok := boolean(n)
		if !ok && !isNull(n) {
			r.add(n, path, "must be true or false, not %s", kindOf(n))
			return
		}
		*field(&r.task.box) = v
	}
}

func (r *reader) user(n *yaml.Node, path string) {
	s, ok := r.text(n, path)
	if ok && (s == "" || strings.HasPrefix(s, ":") || strings.HasSuffix(s, ":")) {
		r.add(n, path, "must be USER or USER:GROUP, by name or number, not %q", clip(s))
		return
	}
	r.task.box.user = s
}

func (r *reader) entrypoint(n *yaml.Node, path string) {
	s, ok := r.text(n, path)
	if !ok {
		return
	}
	words, err := shellSplit(s)
	switch {
	case err != nil:
		r.add(n, path, "%s", err.Error())
	case len(words) == 0:
		r.add(n, path, "must name a program")
	default:
		r.task.box.entry = words
	}
}

func (r *reader) registryAuth(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be a mapping with username and password, not %s", kindOf(n))
		return
	}
	a := &registryAuth{node: n}
	for _, e := range r.entries(n, path) {
		p := join(path, e.key.Value)
		switch e.key.Value {
		case "username":
			a.username, _ = r.text(e.value, p)
		case "password":
			a.password, _ = r.text(e.value, p)
		default:
			r.unknown(e.key, p, []string{"username", "password"})
		}
	}
	if a.username == "" || a.password == "" {
		r.add(n, path, "needs both username and password")
	}
	r.task.box.auth = a
}

func (r *reader) shmSize(n *yaml.Node, path string) {
	s, ok := r.text(n, path)
	if !ok {
		return
	}
	v, err := parseSize(s)
	if err != nil {
		r.add(n, path, "%s", err.Error())
		return
	}
	r.task.box.shm = v
}

// volumes reads mounts of the node's paths: SOURCE:TARGET, or a mapping.
func (r *reader) volumes(n *yaml.Node, at string) {
	items, ok := r.items(n, at)
	if !ok {
		return
	}
	for i, item := range items {
		p := index(at, i)
		var m core.Mount
		named := false
		switch item.Kind {
		case yaml.MappingNode:
			for _, e := range r.entries(item, p) {
				switch q := join(p, e.key.Value); e.key.Value {
				case "instance_path":
					m.Source, _ = r.text(e.value, q)
				case "path":
					m.Target, _ = r.text(e.value, q)
				case "optional":
					var ok bool
					if m.Optional, ok = boolean(e.value); !ok {
						r.add(e.value, q, "must be true or false, not %s", kindOf(e.value))
					}
				case "name":
					named = true
				default:
					r.unknown(e.key, q, []string{"instance_path", "path", "optional", "name"})
				}
			}
		default:
			s, ok := r.text(item, p)
			if !ok {
				continue
			}
			var cut bool
			if m.Source, m.Target, cut = strings.Cut(s, ":"); !cut || strings.Contains(m.Target, ":") {
				r.add(item, p, "must be /path/on/node:/path/inside, not %q", clip(s))
				continue
			}
			named = !strings.ContainsAny(m.Source, "/.~")
		}
		m.Target = strings.TrimSuffix(m.Target, "/")
		switch {
		case named:
			r.add(item, p, "volumes with a name are planned for 0.5; a path of the node is mounted with "+
				"/path/on/node:/path/inside")
		case !path.IsAbs(m.Source) || path.Clean(m.Source) != m.Source, !path.IsAbs(m.Target) ||
			path.Clean(m.Target) != m.Target:
			r.add(item, p, "both paths must be absolute, without . or .. in them")
		default:
			r.task.box.mounts = append(r.task.box.mounts, m)
		}
	}
}

// ports reads what an attached user finds at home: 8080, LOCAL:8080, *:8080, or a mapping.
func (r *reader) ports(n *yaml.Node, at string) {
	items, ok := r.items(n, at)
	if !ok {
		return
	}
	for i, item := range items {
		p := index(at, i)
		var port core.Port
		var err error
		if item.Kind == yaml.MappingNode {
			for _, e := range r.entries(item, p) {
				v, ok := integer(e.value)
				switch e.key.Value {
				case "local_port":
					port.Local = int32(v)
				case "container_port":
					port.Container = int32(v)
				default:
					r.unknown(e.key, join(p, e.key.Value), []string{"local_port", "container_port"})
				}
				if !ok {
					r.add(e.value, join(p, e.key.Value), "must be a number, not %s", kindOf(e.value))
				}
			}
			if port.Container < 1 || port.Container > 65535 || port.Local < 0 || port.Local > 65535 {
				err = fmt.Errorf("ports go from 1 to 65535")
			}
		} else if s, ok := r.text(item, p); ok {
			port, err = parsePort(s)
		}
		if err != nil {
			r.add(item, p, "%s", err.Error())
			continue
		}
		r.task.box.ports = append(r.task.box.ports, port)
	}
}

// parsePort reads 8080, 80:8080 and *:8080.
func parsePort(s string) (core.Port, error) {
	bad := fmt.Errorf("%q is not a port: write 8080, 80:8080 or *:8080, with numbers from 1 to 65535", clip(s))
	one := func(s string) int32 {
		v, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return 0
		}
		return int32(v)
	}
	local, inside, mapped := strings.Cut(s, ":")
	if !mapped {
		inside = local
	}
	p := core.Port{Container: one(inside)}
	if p.Container == 0 {
		return p, bad
	}
	if local != "*" {
		if p.Local = one(local); p.Local == 0 {
			return p, bad
		}
	}
	return p, nil
}

// shellSplit cuts a line into words as a shell would, without expanding anything.
func shellSplit(s string) ([]string, error) {
	var words []string
	var word []byte
	in := false // a word has begun
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n':
			if in {
				words = append(words, string(word))
				word, in = word[:0], false
			}
		case '\'', '"':
			end := i + 1
			for end < len(s) && s[end] != c {
				if s[end] == '\\' && c == '"' && end+1 < len(s) && slices.Contains([]byte(`"\$`), s[end+1]) {
					end++
				}
				word = append(word, s[end])
				end++
			}
			if end >= len(s) {
				return nil, fmt.Errorf("a quote is missing its end")
			}
			i, in = end, true
		case '\\':
			if i++; i < len(s) {
				word = append(word, s[i])
			}
			in = true
		default:
			word, in = append(word, c), true
		}
	}
	if in {
		words = append(words, string(word))
	}
	return words, nil
}
