package config

import (
	"regexp"
	"strings"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// runReader reads tasks and dev environments, and what services share with them.
type runReader struct{ policyReader }

// run reads what tasks, dev environments and services share.
func (r runReader) run(f *fields, kind Kind) Run {
	run := Run{
		Type: kind, Name: f.optText("name"), Image: f.optText("image"), User: opt(f, "user", r.user),
		Privileged: f.flag("privileged", false), Entrypoint: opt(f, "entrypoint", r.entrypoint),
		WorkingDir: opt(f, "working_dir", r.workingDir), HomeDir: "/root",
		RegistryAuth: opt(f, "registry_auth", r.registryAuth), Python: opt(f, "python", r.python), NVCC: f.optFlag("nvcc"),
		SingleBranch: f.optFlag("single_branch"), Env: r.env(f), Shell: opt(f, "shell", r.shell),
		Resources: r.resourcesOf(f), Priority: opt(f, "priority", r.bounded(0, 100)),
		Volumes: items(f, "volumes", r.mount), Docker: f.optFlag("docker"), Repos: items(f, "repos", r.repo),
		Files: items(f, "files", r.file), Dstack: f.flag("dstack", false), Setup: f.texts("setup"),
	}
	if f.has("home_dir") {
		run.HomeDir = f.needText("home_dir")
	} else {
		f.get("home_dir")
	}
	if n := f.n.Get("repos"); n != nil && len(n.Items) > 1 {
		f.failAt("repos", "has %d repositories; a run has at most one", len(n.Items))
	}
	r.oneImage(f)
	return run
}

// oneImage refuses keys that each say what the image is. The fault is at the later one.
func (r runReader) oneImage(f *fields) {
	for _, pair := range [][2]string{{"image", "python"}, {"image", "docker"}, {"python", "docker"}, {"nvcc", "docker"}} {
		if f.on(pair[0]) && f.on(pair[1]) {
			f.failAt(pair[1], "cannot be combined with %s", pair[0])
		}
	}
}

// on reports whether a key is there with something other than false.
func (f *fields) on(key string) bool {
	v := f.n.Get(key)
	return v != nil && !v.SaysNothing()
}

func (r runReader) task(f *fields) *Task {
	t := &Task{
		Nodes: opt(f, "nodes", r.bounded(1, anyInt)), Ports: items(f, "ports", r.port), Commands: f.texts("commands"),
	}
	t.Run, t.Policy = r.run(f, KindTask), r.policy(f)
	t.Groups = optItems(f, "groups", r.nodeGroup)
	if t.Groups == nil && !f.given("groups") {
		r.commandsOrImage(f)
		return t
	}
	if f.given("nodes") {
		f.failAt("nodes", "cannot be combined with groups")
	}
	for _, key := range []string{"commands", "ports", "entrypoint"} {
		if f.on(key) {
			f.failAt(key, "cannot be combined with groups; write it in each group")
		}
	}
	groups, gp := f.get("groups")
	r.groups(groups, gp, func(n *tree.Node, p *path) {
		if v := n.Get("commands"); (v == nil || v.SaysNothing()) && !f.on("image") {
			r.fail(n, p, typeValue, "needs commands, or an image of the task")
		}
	})
	for i := range t.Groups {
		t.Groups[i].Name = groupName(t.Groups[i].Name, i)
	}
	return t
}

// commandsOrImage refuses a run that has nothing to do.
func (r runReader) commandsOrImage(f *fields) {
	if !f.on("commands") && !f.on("image") {
		r.fail(f.n, f.p, typeValue, "commands or an image must be given")
	}
}

// groups checks what all groups have in common: there are some, and each name occurs once.
func (r runReader) groups(n *tree.Node, p *path, each func(*tree.Node, *path)) {
	if n.Form != tree.List {
		return
	}
	if len(n.Items) == 0 {
		r.fail(n, p, typeValue, "must not be empty")
	}
	seen := map[string]bool{}
	for i, g := range n.Items {
		if g.Form != tree.Mapping {
			continue
		}
		name, at := groupName("", i), g
		if v := g.Get("name"); v != nil && v.Form != tree.Null {
			name, at = v.Plain(), v
		}
		if seen[name] {
			r.fail(at, p.at(i).key("name"), typeValue, "%s is the name of an earlier group", tree.Quote(name))
		}
		seen[name] = true
		each(g, p.at(i))
	}
}

func groupName(name string, i int) string {
	if name != "" {
		return name
	}
	return intText(i)
}

var groupForm = lazy(`^[a-z0-9][a-z0-9-]{0,39}$`)

// groupNameOf reads the name of a group; absent is its place, filled in by the caller.
func (r runReader) groupNameOf(f *fields) string {
	name := opt(f, "name", r.text)
	if name != nil && !groupForm().MatchString(*name) {
		f.failAt("name", "%s is not a group's name: up to 40 lower-case letters, digits and dashes, no dash first",
			tree.Quote(*name))
	}
	return Value(name)
}

func (r runReader) nodeGroup(n *tree.Node, p *path) (g NodeGroup, ok bool) {
	f := r.mapping(n, p, "a mapping with nodes, resources, commands")
	if f == nil {
		return g, false
	}
	g = NodeGroup{
		Name: r.groupNameOf(f), Nodes: 1, Resources: r.resourcesOf(f), Commands: f.texts("commands"),
		Ports: items(f, "ports", r.port),
	}
	if n, p := f.get("nodes"); n != nil {
		g.Nodes, _ = r.bounded(1, anyInt)(n, p)
	}
	f.done()
	return g, true
}

var ides = []string{"vscode", "cursor", "windsurf", "zed"}

var windsurfForm = lazy(`^.+@[0-9a-f]+$`)

func (r runReader) devEnvironment(f *fields) *DevEnvironment {
	d := &DevEnvironment{
		IDE: f.word("ide", ides...), Version: f.optText("version"), Init: f.texts("init"), Ports: items(f, "ports", r.port),
	}
	if l := opt(f, "inactivity_duration", r.offable); l != nil && !l.Off {
		d.Inactivity = &l.Seconds
	}
	d.Run, d.Policy = r.run(f, KindDevEnvironment), r.policy(f)
	switch {
	case d.Version == nil:
	case !f.given("ide"):
		f.failAt("version", "needs ide")
	case Value(d.IDE) == "windsurf" && !windsurfForm().MatchString(*d.Version):
		f.failAt("version", "%s is not a version of windsurf: write VERSION@COMMIT", tree.Quote(*d.Version))
	}
	if f.given("entrypoint") {
		f.failAt("entrypoint", "a dev environment has no entrypoint")
	}
	if d.Dstack && d.Inactivity != nil {
		f.failAt("inactivity_duration", "cannot be combined with dstack: true")
	}
	return d
}

func (r runReader) user(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if !ok {
		return "", false
	}
	parts := strings.Split(s, ":")
	for _, part := range parts {
		if id, isNumber := tree.Whole(part); len(parts) > 2 || part == "" || isNumber && id < 0 {
			r.fail(n, p, typeValue, "must be USER or USER:GROUP, by name or number, not %s", tree.Quote(s))
			return "", false
		}
	}
	return s, true
}

func (r runReader) entrypoint(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if !ok {
		return "", false
	}
	if _, err := SplitWords(s); err != nil {
		r.fail(n, p, typeValue, "%s", err.Error())
		return "", false
	}
	return s, true
}

func (r runReader) workingDir(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if ok && !r.request && !strings.HasPrefix(s, "/") && s != "~" && !strings.HasPrefix(s, "~/") {
		r.fail(n, p, typeValue, "must be absolute or start with ~/, not %s", tree.Quote(s))
		return "", false
	}
	return s, ok
}

func (r runReader) shell(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if ok && s != "sh" && s != "bash" && !strings.HasPrefix(s, "/") {
		r.fail(n, p, typeValue, "must be sh, bash or an absolute path, not %s", tree.Quote(s))
		return "", false
	}
	return s, ok
}

var pythons = []string{"3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"}

// python reads a version. YAML reads 3.10 as the number 3.1.
func (r runReader) python(n *tree.Node, p *path) (string, bool) {
	if n.Form == tree.Real {
		text := n.Plain()
		if text == "3.1" {
			text = "3.10"
		}
		n = &tree.Node{Form: tree.Text, Text: text, Line: n.Line, Column: n.Column}
	}
	s := r.oneOf(n, p, pythons)
	return Value(s), s != nil
}

func (r runReader) registryAuth(n *tree.Node, p *path) (a RegistryAuth, ok bool) {
	f := r.mapping(n, p, "a mapping with username and password")
	if f == nil {
		return a, false
	}
	a = RegistryAuth{Username: f.needText("username"), Password: f.needText("password")}
	f.done()
	return a, true
}

var envForm = lazy(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// env reads both forms: a list of NAME=VALUE, NAME= and NAME, or a mapping.
func (r runReader) env(f *fields) Env {
	env := Env{}
	n, p := f.get("env")
	switch {
	case n == nil:
	case n.Form == tree.List:
		r.list(n, p, func(n *tree.Node, p *path) {
			s, ok := r.text(n, p)
			name, value, has := strings.Cut(s, "=")
			switch {
			case !ok:
			case !envForm().MatchString(name):
				r.fail(n, p, typeValue, "%s is not a variable's name: letters, digits and _, no digit first", tree.Quote(name))
			case env.has(name):
				r.fail(n, p, typeValue, "%s is listed twice", name)
			case has:
				env = append(env, Variable{Name: name, Value: value})
			default:
				env = append(env, Variable{Name: name, From: name})
			}
		})
	case n.Form == tree.Mapping:
		for _, e := range n.Keys {
			if v, ok := r.variable(e, p); ok {
				env = append(env, v)
			}
		}
	default:
		r.fail(n, p, typeList, "must be a list of NAME=VALUE or a mapping, not %s", n.Describe())
	}
	return env
}

func (r runReader) variable(e tree.Entry, p *path) (v Variable, ok bool) {
	v.Name = e.Key.Plain()
	p = p.key(v.Name)
	switch {
	case e.Key.Form == tree.Bool || e.Key.Form == tree.Null:
		r.fail(e.Key, p, typeText, "a variable's name must be a text, not %s; quote it", e.Key.Describe())
		return v, false
	case e.Value.Form == tree.Null:
		r.fail(e.Value, p, typeText, "has no value; to take the caller's use the list form: env: [%s]", tree.Clip(v.Name))
		return v, false
	case e.Value.Form == tree.Bool:
		r.fail(e.Value, p, typeText, "must be a text, not %s; quote it", e.Value.Describe())
		return v, false
	case e.Value.Form == tree.Mapping:
		f := r.mapping(e.Value, p, "a text")
		v.From = f.needText("key")
		f.done()
		return v, v.From != ""
	}
	v.Value, ok = r.text(e.Value, p)
	return v, ok
}

func (e Env) has(name string) bool {
	for i := range e {
		if e[i].Name == name {
			return true
		}
	}
	return false
}

var drive = regexp.MustCompile(`^[a-zA-Z]:[\\/]`)
