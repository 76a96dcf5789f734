package config

import (
	slashpath "path"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

func intText(i int) string { return strconv.Itoa(i) }

const maxPort = 65535

// port reads 8080, "8080", LOCAL:8080, *:8080 and the mapping.
func (r runReader) port(n *tree.Node, p *path) (Port, bool) { return r.portOf(n, p, false) }

// portOf reads a port. That of a service is found at 80 unless a local port is written.
func (r runReader) portOf(n *tree.Node, p *path, service bool) (out Port, ok bool) {
	if n.Form == tree.Mapping {
		f := r.mapping(n, p, "a port")
		out.Local = opt(f, "local_port", r.bounded(1, maxPort))
		if c, p := f.need("container_port"); c != nil {
			out.Container, ok = r.bounded(1, maxPort)(c, p)
		}
		f.done()
		return out, ok
	}
	local, inside, mapped := strings.Cut(n.Plain(), ":")
	if n.Form != tree.Text || !mapped {
		v, ok := n.Whole()
		if !ok || n.Form == tree.Real || v < 1 || v > maxPort {
			r.fail(n, p, typeValue, "must be a port such as 8080%s, from 1 to %d, not %s", portForms(service), maxPort,
				n.Describe())
			return out, false
		}
		at := int(v)
		out = Port{Local: &at, Container: at}
		if service {
			at = 80
		}
		return out, true
	}
	one := func(s string) int {
		v, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return 0
		}
		return int(v)
	}
	at := one(local)
	out.Container = one(inside)
	if out.Container == 0 || at == 0 && (local != "*" || service) {
		r.fail(n, p, typeValue, "must be a port such as 8080%s, from 1 to %d, not %s", portForms(service), maxPort,
			n.Describe())
		return out, false
	}
	if local != "*" {
		out.Local = &at
	}
	return out, true
}

func portForms(service bool) string {
	if service {
		return " or 80:8080"
	}
	return ", 80:8080 or *:8080"
}

// mount reads NAME:/path, /instance/path:/path and both mappings.
func (r runReader) mount(n *tree.Node, p *path) (m Mount, ok bool) {
	if n.Form == tree.Mapping {
		return r.mountMapping(n, p)
	}
	s, ok := r.text(n, p)
	if !ok {
		return m, false
	}
	source, target, cut := strings.Cut(s, ":")
	if !cut || strings.Contains(target, ":") {
		r.fail(n, p, typeValue, "must be NAME:/path or /instance/path:/path, not %s", tree.Quote(s))
		return m, false
	}
	if strings.Contains(source, "/") {
		m.InstancePath, ok = r.absolute(n, p, source)
	} else {
		m.Names = []string{source}
	}
	target, ok2 := r.absolute(n, p, target)
	m.Path = target
	return m, ok && ok2
}

func (r runReader) mountMapping(n *tree.Node, p *path) (m Mount, ok bool) {
	f := &fields{r: r.reader, n: n, p: p}
	ok = true
	target, tp := f.need("path")
	if target == nil {
		ok = false
	} else if s, isText := r.text(target, tp); isText {
		m.Path, ok = r.absolute(target, tp, s)
	}
	if f.has("instance_path") {
		v, vp := f.get("instance_path")
		s, isText := r.text(v, vp)
		if isText {
			m.InstancePath, isText = r.absolute(v, vp, s)
		}
		m.Optional = f.flag("optional", false)
		f.done()
		return m, ok && isText
	}
	f.get("instance_path")
	v, vp := f.need("name")
	switch {
	case v == nil:
		ok = false
	case v.Form == tree.List:
		m.List, m.Names = true, f.texts("name")
	default:
		s, isText := r.text(v, vp)
		m.Names, ok = []string{s}, ok && isText
	}
	f.done()
	return m, ok
}

// absolute checks a path of a mount and drops what a path does not need.
func (r runReader) absolute(n *tree.Node, p *path, s string) (string, bool) {
	switch {
	case !strings.HasPrefix(s, "/"):
		r.fail(n, p, typeValue, "the path %s must be absolute", tree.Quote(s))
		return "", false
	case strings.Contains("/"+s+"/", "/../"):
		r.fail(n, p, typeValue, "the path %s must not contain ..", tree.Quote(s))
		return "", false
	}
	return slashpath.Clean(s), true
}

// file reads LOCAL, LOCAL:PATH and the mapping.
func (r runReader) file(n *tree.Node, p *path) (out File, ok bool) {
	if n.Form == tree.Mapping {
		f := r.mapping(n, p, "a file")
		out = File{Local: f.needText("local_path"), Path: f.needText("path")}
		f.done()
	} else {
		s, ok := r.text(n, p)
		if !ok {
			return out, false
		}
		if out.Local, out.Path, ok = cutPaths(s); !ok {
			r.fail(n, p, typeValue, "must be LOCAL or LOCAL:PATH, not %s", tree.Quote(s))
			return out, false
		}
	}
	if drive.MatchString(out.Path) {
		r.fail(n, p, typeValue, "the path in the container %s must not be one of Windows", tree.Quote(out.Path))
		return out, false
	}
	return out, true
}

// cutPaths cuts LOCAL:PATH; a Windows drive stays with the first. One path stands for both.
func cutPaths(s string) (local, inside string, ok bool) {
	head := ""
	rest := s
	if drive.MatchString(s) {
		head, rest = s[:2], s[2:]
	}
	switch parts := strings.Split(rest, ":"); len(parts) {
	case 1:
		return s, s, true
	case 2:
		return head + parts[0], parts[1], true
	}
	return "", "", false
}

// repo reads a path or URL, either with :PATH, and the mapping.
func (r runReader) repo(n *tree.Node, p *path) (out Repo, ok bool) {
	out = Repo{Path: ".", IfExists: "error"}
	if n.Form == tree.Mapping {
		return r.repoMapping(n, p)
	}
	s, ok := r.text(n, p)
	if !ok {
		return out, false
	}
	where, inside, ok := cutRepo(s)
	if !ok {
		r.fail(n, p, typeValue, "must be a path or a URL of a repository, with :PATH or without, not %s", tree.Quote(s))
		return out, false
	}
	if isURL(where) {
		out.URL = &where
	} else {
		out.Local = &where
	}
	if inside != "" {
		out.Path = inside
	}
	return out, r.repoPath(n, p, out.Path)
}

func (r runReader) repoMapping(n *tree.Node, p *path) (out Repo, ok bool) {
	out = Repo{Path: ".", IfExists: "error"}
	f := r.mapping(n, p, "a repository")
	out.Local, out.URL = f.optText("local_path"), f.optText("url")
	out.Branch, out.Hash = f.optText("branch"), f.optText("hash")
	ok = true
	if v, vp := f.get("path"); v != nil {
		if out.Path, ok = r.text(v, vp); ok {
			ok = r.repoPath(v, vp, out.Path)
		}
	}
	if v, vp := f.get("if_exists"); v != nil {
		if w := r.oneOf(v, vp, []string{"error", "skip"}); w != nil {
			out.IfExists = *w
		}
	}
	f.done()
	if (out.Local == nil) == (out.URL == nil) {
		r.fail(n, p, typeValue, "must have either local_path or url")
		return out, false
	}
	return out, ok
}

func (r runReader) repoPath(n *tree.Node, p *path, s string) bool {
	if strings.HasPrefix(s, "~") && s != "~" && !strings.HasPrefix(s, "~/") {
		r.fail(n, p, typeValue, "~user is not supported, only ~/: %s", tree.Quote(s))
		return false
	}
	return true
}

// isURL reports whether a repository is elsewhere.
func isURL(s string) bool {
	first, rest, cut := strings.Cut(s, ":")
	return cut && !drive.MatchString(s) && (strings.Contains(first, "@") || strings.HasPrefix(rest, "//"))
}

// cutRepo cuts the path in the container off. A URL with a port is cut at the port, as dstack does.
func cutRepo(s string) (where, inside string, ok bool) {
	if !isURL(s) {
		if where, inside, ok = cutPaths(s); where == inside {
			inside = ""
		}
		return where, inside, ok
	}
	parts := strings.Split(s, ":")
	switch len(parts) {
	case 2:
		return s, "", true
	case 3:
		return parts[0] + ":" + parts[1], parts[2], true
	}
	return "", "", false
}
