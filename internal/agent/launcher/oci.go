package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oci runs a bundle by an OCI runtime: what config.json says, with the job's program, variables and devices in the
// place of its own. Limits are those of the job's cgroups, in which it stays.
func (x *launcher) oci() (*command, error) {
	if x.c.Program == "" {
		return nil, errors.New("--container needs an OCI runtime, and this node has neither runc nor crun")
	}
	spec, err := readBundle(x.c.Bundle)
	if err != nil {
		return nil, fmt.Errorf("bundle %s, as user %d: %w", x.c.Bundle, x.l.Identity.UID, err)
	}
	x.fillIn(spec, os.Getuid(), os.Getgid())
	id := fmt.Sprintf("bireme-%s-%d", x.l.Key.String(), os.Getpid())
	dir, root := filepath.Join(x.c.Run, id), filepath.Join(x.c.Run, "oci")
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{dir, root} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600); err != nil {
		return nil, err
	}
	argv := []string{x.c.Program, "--root", root}
	if filepath.Base(x.c.Program) == "crun" { // runc, told nothing, stays below where it is
		argv = append(argv, "--cgroup-manager=disabled")
	}
	argv = append(argv, "run", "--bundle", dir)
	if x.script != nil {
		argv = append(argv, "--preserve-fds", "1")
	}
	return &command{argv: append(argv, id), env: x.outer("XDG_RUNTIME_DIR=" + x.c.Run)}, nil
}

// object is a JSON object of which most is none of our business.
type object = map[string]any

// readBundle reads a bundle's config.json and checks what a runtime would choke on without saying why.
func readBundle(dir string) (object, error) {
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	var spec object
	if err := dec.Decode(&spec); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	root := part(spec, "root")
	name, _ := root["path"].(string)
	if name == "" {
		return nil, errors.New("config.json: root.path is missing: it names the folder of the container's files")
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if st, err := os.Stat(name); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("root.path: %s is no folder", name)
	}
	root["path"] = name
	return spec, nil
}

// part returns an object's part, which it makes if it is not there.
func part(o object, name string) object {
	p, _ := o[name].(object)
	if p == nil {
		p = object{}
		o[name] = p
	}
	return p
}

// fillIn puts the job into a bundle's configuration, for who runs it.
func (x *launcher) fillIn(spec object, uid, gid int) {
	p, linux := part(spec, "process"), part(spec, "linux")
	p["terminal"] = false
	for _, gone := range []string{"consoleSize", "rlimits", "oomScoreAdj"} { // the keeper saw to them
		delete(p, gone)
	}
	if inside := x.inside(); len(inside) > 0 {
		p["args"] = inside
	}
	if x.c.WorkDir != "" {
		p["cwd"] = x.c.WorkDir
	}
	var own []string
	list, _ := p["env"].([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			own = append(own, s)
		}
	}
	p["env"] = merge(own, x.shared())
	delete(linux, "resources")
	delete(linux, "cgroupsPath")
	if uid != 0 {
		unprivileged(spec, uid, gid)
		x.boundCaps(p)
	}
	mounts, _ := spec["mounts"].([]any)
	bind := func(from, to string, options ...string) {
		mounts = append(mounts, object{
			"type": "bind", "source": from, "destination": to,
			"options": append([]string{"bind", "nosuid"}, options...),
		})
	}
	for _, d := range x.c.Devices {
		bind(d, d, "rw", "noexec")
	}
	if len(x.c.Args) > 0 && x.c.Args[0] == initInside {
		bind(x.c.Init, initInside, "ro")
	}
	spec["mounts"] = mounts
}

// boundCaps leaves of a bundle's capabilities those that containers of users have. They hold in the user's own
// namespaces only; fewer of them reach less of the kernel. What the program becomes by files of the bundle it had not
// is nothing either.
func (x *launcher) boundCaps(process object) {
	process["noNewPrivileges"] = true
	caps, _ := process["capabilities"].(object)
	for set, list := range caps {
		names, _ := list.([]any)
		caps[set] = slices.DeleteFunc(names, func(v any) bool {
			name, ok := v.(string)
			return !ok || !slices.Contains(x.c.Caps, strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
		})
	}
}

// merge adds to a bundle's variables those of the job that it does not set itself.
func merge(own, job []string) []string {
	out := slices.Clone(own)
	has := make(map[string]bool, len(own))
	for _, o := range own {
		name, _, _ := strings.Cut(o, "=")
		has[name] = true
	}
	for _, e := range job {
		if name, _, _ := strings.Cut(e, "="); !has[name] {
			out = append(out, e)
		}
	}
	return out
}

// unprivileged makes of a configuration for root one that a user can have: without a user namespace of its own it gets
// one, in which the process's user is the job's. It then cannot mount what belongs to the node's network, nor name
// groups it has not.
func unprivileged(spec object, uid, gid int) {
	linux := part(spec, "linux")
	spaces, _ := linux["namespaces"].([]any)
	has := func(kind string) bool {
		return slices.ContainsFunc(spaces, func(s any) bool { o, _ := s.(object); return o["type"] == kind })
	}
	if has("user") {
		return
	}
	user := part(part(spec, "process"), "user")
	delete(user, "additionalGids")
	linux["namespaces"] = append(spaces, object{"type": "user"})
	linux["uidMappings"] = []object{{"containerID": number(user["uid"]), "hostID": uid, "size": 1}}
	linux["gidMappings"] = []object{{"containerID": number(user["gid"]), "hostID": gid, "size": 1}}
	mounts, _ := spec["mounts"].([]any)
	for _, m := range mounts {
		o, _ := m.(object)
		if o["type"] == "sysfs" && !has("network") {
			o["type"], o["source"], o["options"] = "none", "/sys", []string{"rbind", "nosuid", "noexec", "nodev", "ro"}
			continue
		}
		options, _ := o["options"].([]any)
		o["options"] = slices.DeleteFunc(options, func(v any) bool {
			s, _ := v.(string)
			return strings.HasPrefix(s, "uid=") || strings.HasPrefix(s, "gid=")
		})
	}
	spec["mounts"] = slices.DeleteFunc(mounts, func(m any) bool { // the node's own are no user's to show
		o, _ := m.(object)
		kind, _ := o["type"].(string)
		target, _ := o["destination"].(string)
		return kind == "cgroup" && path.Clean(target) == "/sys/fs/cgroup"
	})
}

func number(v any) int {
	n, _ := v.(json.Number)
	i, _ := strconv.Atoi(n.String())
	return i
}
