// Package absent answers dstack's calls on what Bireme does not have yet: gateways, clouds, exports
// and templates. Lists are empty, as on a server that has none; what would make one says that it is not there.
package absent

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

// Rows lists the routes.
func Rows() []front.Row {
	const p = "/api/project/{project}"
	read := func(path string, h front.Handler) front.Row {
		return front.Row{Path: p + path, Level: front.Member, Handle: h}
	}
	write := func(path string, level front.Level, what string) front.Row {
		return front.Row{
			Path: p + path, Level: level, Scope: core.ScopeSubmit, Action: "dstack.unsupported", Object: what, Quiet: true,
			Handle: later(what),
		}
	}
	return []front.Row{
		read("/gateways/list", empty), read("/gateways/get", missing), read("/gateways/delete", nothing),
		write("/gateways/get_plan", front.ProjectAdmin, "gateways"), write("/gateways/apply", front.ProjectAdmin, "gateways"),
		write("/gateways/create", front.ProjectAdmin, "gateways"), read("/gateways/set_default", missing),
		read("/gateways/set_wildcard_domain", missing),
		write("/backends/create", front.ProjectAdmin, "backends of clouds"),
		write("/backends/update", front.ProjectAdmin, "backends of clouds"),
		write("/backends/create_yaml", front.ProjectAdmin, "backends of clouds"),
		write("/backends/update_yaml", front.ProjectAdmin, "backends of clouds"),
		write("/backends/{type}/config_info", front.ProjectAdmin, "backends of clouds"),
		write("/backends/{type}/get_yaml", front.ProjectAdmin, "backends of clouds"),
		read("/backends/delete", nothing),
		read("/exports/list", exports), read("/imports/list", exports), read("/imports/delete", exports),
		write("/exports/create", front.ProjectAdmin, "exports"), write("/exports/update", front.ProjectAdmin, "exports"),
		write("/exports/delete", front.ProjectAdmin, "exports"),
		read("/templates/list", empty),
	}
}

func empty(*front.Call) (any, error)   { return []struct{}{}, nil }
func nothing(*front.Call) (any, error) { return nil, nil }
func missing(*front.Call) (any, error) { return nil, front.ErrNotExists() }

// later refuses what comes with another release.
func later(what string) front.Handler {
	return func(*front.Call) (any, error) {
		return nil, front.Errorf("This server does not support %s yet", what)
	}
}

// exports refuses as the official server does since 0.22.0; older clients get the empty list that they expect.
func exports(c *front.Call) (any, error) {
	if c.Version.Before(0, 22, 0) {
		return []struct{}{}, nil
	}
	return nil, front.Errorf("This server does not support exports")
}
