package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// updatable lists the properties of each kind that may change while it lives; those of runs hold for every run.
var updatable = map[Kind][]string{
	KindTask:           {"priority"},
	KindDevEnvironment: {"priority", "inactivity_duration"},
	KindService: {
		"priority", "replicas", "groups", "scaling", "gateway", "port", "probes", "resources", "volumes", "docker", "files",
		"image", "user", "privileged", "entrypoint", "working_dir", "python", "nvcc", "single_branch", "env", "shell",
		"commands",
	},
	KindFleet: {
		"nodes", "reservation", "tags", "resources", "backends", "regions", "availability_zones", "instance_types",
		"spot_policy", "max_price",
	},
	KindGateway: {"domain", "default", "replicas"},
}

// Changes names the properties in which two configurations differ, in the order of the normal form, and whether all of
// them may change while the thing lives. Two that say the same give none, and true.
func Changes(old, now *Configuration) (fields []string, inPlace bool) {
	if old.Kind != now.Kind {
		return []string{"type"}, false
	}
	a, keys := properties(old)
	b, more := properties(now)
	for _, k := range more {
		if _, there := a[k]; !there {
			keys = append(keys, k)
		}
	}
	inPlace = true
	for _, k := range keys {
		if bytes.Equal(orAbsent(a[k]), orAbsent(b[k])) {
			continue
		}
		fields = append(fields, k)
		inPlace = inPlace && canChange(old, now, k)
	}
	return fields, inPlace
}

// orAbsent takes a property that is left out for null: nodes and groups are.
func orAbsent(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

// properties gives the normal form key by key, and the order of the keys.
func properties(c *Configuration) (m map[string]json.RawMessage, keys []string) {
	text, err := json.Marshal(c)
	if err != nil || json.Unmarshal(text, &m) != nil {
		return nil, nil // never: what was read can be written
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	depth := 0
	for {
		t, err := dec.Token()
		if err != nil {
			return m, keys
		}
		switch d := t.(type) {
		case json.Delim:
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if _, isKey := m[d]; depth == 1 && isKey && !slices.Contains(keys, d) {
				keys = append(keys, d)
			}
		}
	}
}

func canChange(old, now *Configuration, key string) bool {
	switch {
	case old.Service != nil && key == "groups":
		return reflect.DeepEqual(routers(old.Service), routers(now.Service))
	case old.Service != nil && key == "https":
		return isDefault(old.Service.HTTPS) && isDefault(now.Service.HTTPS)
	case old.Fleet != nil && key == "ssh_config":
		return sameHosts(old.Fleet.SSH, now.Fleet.SSH)
	case key == "resources" && old.Run() != nil && onlyDropsArch(&old.Run().Resources, &now.Run().Resources):
		return true
	}
	return slices.Contains(updatable[old.Kind], key)
}

// routers gives the router of each group that has one, by the group's name.
func routers(s *Service) map[string]string {
	m := map[string]string{}
	for i := range s.Groups {
		if r := s.Groups[i].Router; r != nil {
			m[s.Groups[i].Name] = r.Type
		}
	}
	return m
}

// isDefault reports whether https is not written, or written as the default.
func isDefault(h *HTTPS) bool { return h == nil || h.On && !h.Auto }

// onlyDropsArch reports whether the new resources are the old without the architecture.
func onlyDropsArch(old, now *Resources) bool {
	if now.CPU.Arch != nil {
		return false
	}
	without := *old
	without.CPU.Arch = nil
	return reflect.DeepEqual(without, *now)
}

// sameHosts reports whether hosts were added or removed only: those in both are as they were, and so is the rest.
func sameHosts(old, now *SSHConfig) bool {
	if old == nil || now == nil {
		return false
	}
	a, b := *old, *now
	a.Hosts, b.Hosts = nil, nil
	if !reflect.DeepEqual(a, b) {
		return false
	}
	for i := range old.Hosts {
		for j := range now.Hosts {
			a, b := old.Hosts[i], now.Hosts[j]
			a.Short, b.Short = false, false
			if a.Hostname == b.Hostname && !reflect.DeepEqual(a, b) {
				return false
			}
		}
	}
	return true
}
