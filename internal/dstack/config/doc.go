// Package config holds dstack's configurations: tasks, dev environments, services, fleets, volumes, gateways, presets
// and profiles, as dstack 0.22.5 knows them, with Bireme's additions.
//
//	YAML file ──┐
//	            ├─► tree with positions ── reader ──► Configuration, or every fault with path, line and column
//	JSON body ──┘
//	Configuration ── json.Marshal ──► the normal form: byte for byte the keys and values that a stock client sends
//
// The types mirror the normal form: a pointer or a nil list is JSON's null, a list that is never null is never nil. The
// order of fields is the order a client sends. Short forms (`A100:80GB:2`, `8GB..`, `80:8080`) exist only in the
// reader.
//
// The package is pure and holds no policy: what a configuration leads to is decided elsewhere.
package config
