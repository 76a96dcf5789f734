package fleets

import (
	"encoding/json"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// stored is the spec without keys, as it is shown later; the variables of agents stay only where the answer is to who
// sent them.
func (w *wanted) stored(withEnv bool) json.RawMessage {
	conf := *w.conf
	conf.Name = &w.name
	if conf.SSH != nil {
		ssh := *conf.SSH
		ssh.SSHKey, ssh.ProxyJump = nil, keyless(ssh.ProxyJump)
		ssh.Hosts = append([]config.SSHHost{}, ssh.Hosts...)
		for i := range ssh.Hosts {
			ssh.Hosts[i].SSHKey, ssh.Hosts[i].ProxyJump = nil, keyless(ssh.Hosts[i].ProxyJump)
		}
		conf.SSH = &ssh
	}
	if !withEnv {
		conf.Env = nil
	}
	out := w.spec
	out.Configuration = mustJSON(&conf)
	if len(out.Profile) == 0 {
		out.Profile = json.RawMessage(emptyProfile)
	}
	return mustJSON(&out)
}

// emptyProfile is what a client sends that has none.
const emptyProfile = `{"name":"default","default":false}`

func keyless(p *config.SSHProxy) *config.SSHProxy {
	if p == nil {
		return nil
	}
	out := *p
	out.SSHKey = nil
	return &out
}

// spec is what a fleet was made of. One that no client of dstack made is told in the same words.
func (s *shown) spec(f *core.Fleet) json.RawMessage {
	var out wire.FleetSpec
	if f.Spec == "" || json.Unmarshal([]byte(f.Spec), &out) != nil {
		return nativeSpec(f)
	}
	if f.Env.Sealed == "" || !s.c.Admin {
		return json.RawMessage(f.Spec)
	}
	conf, err := config.ReadJSON(out.Configuration)
	if err != nil || conf.Fleet == nil {
		return json.RawMessage(f.Spec)
	}
	env, err := s.a.fleets.Env(f)
	if err != nil {
		return json.RawMessage(f.Spec)
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		conf.Fleet.Env = append(conf.Fleet.Env, config.Variable{Name: name, Value: value})
	}
	out.Configuration = mustJSON(conf.Fleet)
	return mustJSON(&out)
}

// nativeSpec describes a fleet that was made by Bireme's own commands.
func nativeSpec(f *core.Fleet) json.RawMessage {
	conf := config.Fleet{Type: config.KindFleet, Name: &f.Name, Blocks: config.Blocks{Count: 1}, SSH: &config.SSHConfig{}}
	if f.Placement == core.PlaceCluster {
		conf.Placement = &f.Placement
	}
	if f.Network != "" {
		conf.SSH.Network = &f.Network
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		host := config.SSHHost{Hostname: h.Login.Host, User: &h.Login.User}
		if h.Login.Port != 0 {
			p := int(h.Login.Port)
			host.Port = &p
		}
		if h.Addr != "" {
			host.InternalIP = &h.Addr
		}
		if h.Blocks != 0 {
			host.Blocks = &config.Blocks{Auto: h.Blocks == core.BlocksAuto, Count: int(max(1, h.Blocks))}
		}
		conf.SSH.Hosts = append(conf.SSH.Hosts, host)
	}
	return specOf(&conf)
}

// partitionSpec describes a partition: its nodes, as hosts.
func partitionSpec(name string, list []*core.Node) json.RawMessage {
	conf := config.Fleet{Type: config.KindFleet, Name: &name, Blocks: config.Blocks{Count: 1}, SSH: &config.SSHConfig{}}
	for _, n := range list {
		conf.SSH.Hosts = append(conf.SSH.Hosts, config.SSHHost{Hostname: string(n.Name)})
	}
	return specOf(&conf)
}

func specOf(conf *config.Fleet) json.RawMessage {
	return mustJSON(&wire.FleetSpec{Configuration: mustJSON(conf), Profile: json.RawMessage(emptyProfile)})
}
