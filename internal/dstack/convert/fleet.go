package convert

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// Fleet is a fleet of SSH hosts as the server wants it. Keys that the configuration does not bring along are read from
// their identity_file. The error is config.Faults. The env must have its values (Configuration.Complete).
func Fleet(c *config.Configuration, read func(file string) ([]byte, error)) (*client.FleetSpec, error) {
	f := &fleet{c: c, read: read, out: &client.FleetSpec{Placement: core.PlaceAny, Keys: map[string]string{}}}
	f.check()
	if len(f.faults) > 0 {
		return nil, f.faults
	}
	if p := c.Fleet.Placement; p != nil {
		f.out.Placement = *p
	}
	if n := c.Fleet.SSH.Network; n != nil {
		net, err := core.PrivateNetwork(*n)
		if err != nil {
			f.fail(err.Error(), "ssh_config", "network")
		} else {
			f.out.Network = net.String()
		}
	}
	for _, v := range c.Fleet.Env {
		f.out.Env = append(f.out.Env, v.Name+"="+v.Value)
	}
	for i := range c.Fleet.SSH.Hosts {
		f.host(i)
	}
	if len(f.faults) > 0 {
		return nil, f.faults
	}
	return f.out, nil
}

// fleet makes a FleetSpec and collects faults.
type fleet struct {
	c      *config.Configuration
	read   func(file string) ([]byte, error)
	out    *client.FleetSpec
	faults config.Faults
}

func (f *fleet) fail(message string, loc ...any) {
	f.faults = append(f.faults, f.c.Fault(message, loc...))
}

const cloudOnly = "is for fleets of cloud machines, which are not available yet; list existing hosts under ssh_config"

// check refuses what is not a fleet of SSH hosts, and hosts that contradict each other.
func (f *fleet) check() {
	for _, key := range []string{
		"nodes", "resources", "backends", "regions", "availability_zones", "instance_types", "reservation", "spot_policy",
		"retry", "max_price", "idle_duration", "tags", "backend_options",
	} {
		if f.c.Wrote(key) {
			f.fail(cloudOnly, key)
		}
	}
	ssh := f.c.Fleet.SSH
	if ssh == nil || len(ssh.Hosts) == 0 {
		f.fail("a fleet needs hosts", "ssh_config", "hosts")
		return
	}
	inner := 0
	for i := range ssh.Hosts {
		h := &ssh.Hosts[i]
		switch {
		case strings.Contains(h.Hostname, "@"):
			f.fail(fmt.Sprintf("%q: give the user with the key user", h.Hostname), "ssh_config", "hosts", i)
		case h.Hostname == "" || strings.ContainsAny(h.Hostname, " \t\n/"):
			f.fail(fmt.Sprintf("%q is not a host name or address", h.Hostname), "ssh_config", "hosts", i)
		}
		if h.InternalIP != nil {
			inner++
		}
	}
	if inner > 0 && inner < len(ssh.Hosts) {
		f.fail("internal_ip is given for all hosts or for none", "ssh_config", "hosts")
	}
}

// host adds a host, with what ssh_config says for those that do not say it.
func (f *fleet) host(i int) {
	all := f.c.Fleet.SSH
	h := all.Hosts[i]
	user, port, file, key := first(h.User, all.User), first(h.Port, all.Port), h.IdentityFile, h.SSHKey
	if file == nil && key == nil {
		file, key = all.IdentityFile, all.SSHKey
	}
	if user == nil || *user == "" {
		f.fail(h.Hostname+" has no user: give it one here or in ssh_config", "ssh_config", "hosts", i)
	}
	if file == nil && key == nil {
		f.fail(h.Hostname+" has no identity_file: give it one here or in ssh_config", "ssh_config", "hosts", i)
	}
	x := client.FleetHostSpec{
		SSHLogin: f.login(i, h.Hostname, port, config.Value(user), config.Value(file), key),
		Blocks:   blocksOf(f.c.Fleet.Blocks), InternalIP: config.Value(h.InternalIP),
	}
	if h.Blocks != nil {
		x.Blocks = blocksOf(*h.Blocks)
	}
	if j := first(h.ProxyJump, all.ProxyJump); j != nil {
		l := f.login(i, j.Hostname, j.Port, j.User, j.IdentityFile, j.SSHKey)
		x.Jump = &l
	}
	f.out.Hosts = append(f.out.Hosts, x)
}

// first is the first of two that is given.
func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func blocksOf(b config.Blocks) int32 {
	if b.Auto {
		return core.BlocksAuto
	}
	return int32(b.Count)
}

// login says where and as whom to log in, and brings the key along.
func (f *fleet) login(i int, host string, port *int, user, file string, key *config.SSHKey) client.SSHLogin {
	l := client.SSHLogin{Hostname: host, User: user, Key: file}
	if port != nil {
		if *port < 1 || *port > 65535 {
			f.fail(fmt.Sprintf("port: must be from 1 to 65535, not %d", *port), "ssh_config", "hosts", i)
		}
		l.Port = int32(*port)
	}
	if key != nil && key.Private != nil {
		if l.Key == "" {
			l.Key = key.Public
		}
		f.out.Keys[l.Key] = *key.Private
		return l
	}
	if _, known := f.out.Keys[file]; known || file == "" {
		return l
	}
	text, err := f.read(file)
	if err == nil && !strings.Contains(string(text), "PRIVATE KEY") {
		err = fmt.Errorf("%s is not a private key", file)
	}
	if err != nil {
		message := "identity_file: " + err.Error()
		if !slices.ContainsFunc(f.faults, func(x config.Fault) bool { return x.Message == message }) {
			f.fail(message, "ssh_config", "hosts", i)
		}
		return l
	}
	f.out.Keys[file] = string(text)
	return l
}
