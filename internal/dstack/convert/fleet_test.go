package convert

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/config"
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

// readFleet does what the native command does with the file of a fleet.
func readFleet(src string, read func(string) ([]byte, error)) (*client.FleetSpec, error) {
	c, err := config.Read([]byte(src))
	if err != nil {
		return nil, err
	}
	err = c.Complete(config.Options{Env: []string{"MINE=2"}, Lookup: func(name string) (string, bool) {
		return "of the caller", name == "BARE"
	}})
	if err != nil {
		return nil, err
	}
	return Fleet(c, read)
}

func anyKey(file string) ([]byte, error) { return []byte("PRIVATE KEY of " + file), nil }

func TestFleet(t *testing.T) {
	t.Parallel()
	got, err := readFleet(fleetFile, anyKey)
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// A client may bring its keys along: then no file is read.
func TestFleetWithKeys(t *testing.T) {
	t.Parallel()
	c, err := config.ReadJSON([]byte(`{"type":"fleet","ssh_config":{"user":"u","identity_file":"id","ssh_key":` +
		`{"public":"pub","private":"PRIVATE KEY"},"hosts":["a"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Fleet(c, func(string) ([]byte, error) { return nil, errors.New("a file was read") })
	if err != nil || got.Keys["id"] != "PRIVATE KEY" || got.Hosts[0].Key != "id" {
		t.Errorf("%v %v", got, err)
	}
}

func TestFleetRefused(t *testing.T) {
	t.Parallel()
	const head = "type: fleet\nssh_config:\n  user: u\n  identity_file: k\n"
	for name, c := range map[string]struct{ src, want string }{
		"a cloud's":     {"type: fleet\nnodes: 2\n", "line 2, column 8: fleet.nodes: is for fleets of cloud machines"},
		"no hosts":      {head + "  hosts: []\n", "fleet.ssh_config.hosts: a fleet needs hosts"},
		"no user":       {"type: fleet\nssh_config: {identity_file: k, hosts: [a]}\n", "hosts.0: a has no user"},
		"no key":        {"type: fleet\nssh_config: {user: u, hosts: [a]}\n", "a has no identity_file"},
		"user in name":  {head + "  hosts: [u@a]\n", `line 5, column 11: fleet.ssh_config.hosts.0: "u@a": give the user`},
		"no name":       {head + "  hosts: [a b]\n", `"a b" is not a host name`},
		"some internal": {head + "  hosts: [a, {hostname: b, internal_ip: 10.0.0.1}]\n", "for all hosts or for none"},
		"network too": {
			head + "  network: 10.0.0.0/8\n  hosts: [{hostname: b, internal_ip: 10.0.0.1}]\n",
			"fleet.ssh_config.network: cannot be combined with internal_ip",
		},
		"not a key": {head + "  hosts: [a, b]\n", "fleet.ssh_config.hosts.0: identity_file: k is not a private key"},
		"port":      {head + "  port: 70000\n  hosts: [a]\n", "port: must be from 1 to 65535"},
	} {
		_, err := readFleet(c.src, func(string) ([]byte, error) { return []byte("nonsense"), nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if err != nil && strings.Count(err.Error(), "is not a private key") > 1 {
			t.Errorf("%s: the same key is told of twice: %v", name, err)
		}
	}
	_, err := readFleet(head+"  hosts: [a]\n", func(f string) ([]byte, error) {
		return nil, fmt.Errorf("%s: not there", f)
	})
	if err == nil || !strings.Contains(err.Error(), "identity_file: k: not there") {
		t.Errorf("got %v", err)
	}
}
