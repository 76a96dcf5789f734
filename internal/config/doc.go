// Package config is Bireme's settings as one struct: defaults in code, a YAML file over them, overrides over that.
//
// Load reads the file into Config with a walker of its own, so that every fault is reported at once with its path and
// line, and so that Show can say where each effective value came from. Everything a server needs is here; what an agent
// needs it learns from the server when it connects.
package config
