package dstack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
)

const fleetFile = `type: fleet
name: lab
placement: cluster
blocks: auto
env: [HTTPS_PROXY=http://p:3128, BARE, MINE=1]
ssh_config:
  network: 10.0.0.7/24
  user: ubuntu
  port: 2222
  identity_file: ~/.ssh/id
  proxy_jump: {hostname: gate, user: me, identity_file: gate.key}
  hosts:
    - 10.0.0.1
    - hostname: gpu.example
      user: root
      port: 22
      identity_file: other.key
      blocks: 4
`

func TestFleetIsRead(t *testing.T) {
	t.Parallel()
	if got := TypeOf([]byte(fleetFile)); got != "fleet" {
		t.Fatalf("type %q", got)
	}
	f, err := ParseFleet("f.yml", []byte(fleetFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Spec(&FleetOptions{
		Env: []string{"MINE=2"}, Lookup: func(name string) (string, bool) {
			return "of the caller", name == "BARE"
		},
		Read: func(file string) ([]byte, error) { return []byte("PRIVATE KEY of " + file), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	gate := &client.SSHLogin{Hostname: "gate", User: "me", Key: "gate.key"}
	want := &client.FleetSpec{
		Placement: "cluster", Network: "10.0.0.0/24", Env: []string{
			"HTTPS_PROXY=http://p:3128", "BARE=of the caller",
			"MINE=2",
		},
		Keys: map[string]string{
			"~/.ssh/id": "PRIVATE KEY of ~/.ssh/id", "gate.key": "PRIVATE KEY of gate.key",
			"other.key": "PRIVATE KEY of other.key",
		},
		Hosts: []client.FleetHostSpec{
			{
				SSHLogin: client.SSHLogin{Hostname: "10.0.0.1", Port: 2222, User: "ubuntu", Key: "~/.ssh/id"}, Jump: gate,
				Blocks: -1,
			},
			{
				SSHLogin: client.SSHLogin{Hostname: "gpu.example", Port: 22, User: "root", Key: "other.key"}, Jump: gate,
				Blocks: 4,
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || f.Name != "lab" {
		t.Fatal(f.Name, diff)
	}
	unset := &FleetOptions{Lookup: func(string) (string, bool) {
		return "", false
	}, Read: func(string) ([]byte, error) { return []byte("PRIVATE KEY"), nil }}
	if _, err := f.Spec(unset); err == nil ||
		!strings.Contains(err.Error(), "f.yml, line 5, column 34: env: BARE has no value") {
		t.Fatalf("got %v", err)
	}
	spec := func(read func(string) ([]byte, error)) (*client.FleetSpec, error) {
		return f.Spec(&FleetOptions{Lookup: func(string) (string, bool) { return "", true }, Read: read})
	}
	if _, err := spec(func(file string) ([]byte, error) { return nil, fmt.Errorf("%s: no such file", file) }); err ==
		nil ||
		!strings.Contains(err.Error(), "f.yml, line 13, column 7: ssh_config.hosts[0]: identity_file: ~/.ssh/id: no "+
			"such file") {
		t.Fatalf("got %v", err)
	}
	if _, err := spec(func(string) ([]byte, error) { return []byte("ssh-ed25519 AAAA"), nil }); err == nil ||
		!strings.Contains(err.Error(), "not a private key") {
		t.Fatalf("got %v", err)
	}
}

func TestFleetRefusals(t *testing.T) {
	t.Parallel()
	const head = "type: fleet\nssh_config:\n  user: u\n  identity_file: k\n"
	for name, tc := range map[string]struct{ text, want string }{
		"unknown key":     {"type: fleet\nnmae: x\n", "line 2, column 1: nmae: unknown key; did you mean name?"},
		"unknown ssh key": {head + "  host: [a]\n", "ssh_config.host: unknown key; did you mean hosts?"},
		"unknown host key": {head + "  hosts: [{hostnam: a}]\n", "ssh_config.hosts[0].hostnam: unknown key; did you " +
			"mean hostname?"},
		"unknown jump key": {
			head + "  proxy_jump: {hostname: a, usr: b}\n  hosts: [a]\n",
			"ssh_config.proxy_jump.usr: unknown key; did you mean user?",
		},
		"half a jump":      {head + "  proxy_jump: {hostname: a}\n  hosts: [a]\n", "ssh_config.proxy_jump: needs user"},
		"no hosts":         {head, "ssh_config.hosts: a fleet needs hosts"},
		"no user":          {"type: fleet\nssh_config: {identity_file: k, hosts: [a]}\n", "a has no user"},
		"no key":           {"type: fleet\nssh_config: {user: u, hosts: [a]}\n", "a has no identity_file"},
		"a user in a host": {head + "  hosts: [u@a]\n", "give the user with the key user"},
		"blocks 0":         {"type: fleet\nblocks: 0\n", "blocks: must be auto or a number"},
		"a port":           {head + "  port: 70000\n  hosts: [a]\n", "ssh_config.port: must be from 1 to 65535"},
		"a placement":      {"type: fleet\nplacement: near\n", "placement: must be any or cluster"},
		"a public address": {head + "  hosts: [{hostname: a, internal_ip: 8.8.8.8}]\n", "not a private address"},
		"some addresses":   {head + "  hosts: [{hostname: a, internal_ip: 10.0.0.1}, b]\n", "for all hosts or for none"},
		"a public network": {
			head + "  network: 10.0.0.0/7\n  hosts: [a]\n",
			"ssh_config.network: \"10.0.0.0/7\" is not a private network",
		},
		"no network": {head + "  network: here\n  hosts: [a]\n", "ssh_config.network: \"here\" is not a network"},
		"two ways": {
			head + "  network: 10.0.0.0/8\n  hosts: [{hostname: a, internal_ip: 10.0.0.1}]\n",
			"cannot be combined with internal_ip",
		},
		"a variable":       {"type: fleet\nenv: [1X=2]\n", "env[0]: \"1X\" is not a variable name"},
		"a variable twice": {"type: fleet\nenv: [X=1, X=2]\n", "X is listed twice"},
		"no variables":     {"type: fleet\nenv: X\n", "env: must be a list of NAME=VALUE or a mapping"},
		"a cloud fleet":    {"type: fleet\nnodes: 2\n", "nodes: fleets of cloud machines"},
		"a bad name":       {"type: fleet\nname: Lab\n", "name: "},
		"no mapping":       {"type: fleet\nssh_config: a\n", "ssh_config: must be a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseFleet("f.yml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}
