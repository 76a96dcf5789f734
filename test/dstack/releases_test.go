//go:build e2e

package dstack

import (
	"encoding/json"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/cluster"
)

// releases are those of the CLI that the server serves, as scripts/prereqs.sh installs them.
var releases = []string{version, "0.21.2", "0.20.29", "0.20.20"}

// emulated is a cluster of two nodes with a listener for dstack's clients, and its URL.
func emulated(t *testing.T) (*cluster.Cluster, string) {
	t.Helper()
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, CPUs: 4, Memory: "8G", Set: []string{"dstack.listen=127.0.0.1:0", "accounting.default_project=lab"},
	})
	t.Cleanup(c.Close)
	about, err := c.Client(0).Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if about.Dstack == "" {
		t.Fatal("the server does not say where dstack's clients find it")
	}
	return c, about.Dstack
}

// token makes a token for dstack's clients.
func token(t *testing.T, c *cluster.Cluster, args ...string) string {
	t.Helper()
	out := c.Root().Run("bireme", append([]string{"token", "create", "--for", "dstack", "--json"}, args...)...)
	var made client.NewTokenMade
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return made.Secret
}

// TestReleases: each release adds a project, sees nodes, and handles secrets and events.
func TestReleases(t *testing.T) {
	c, url := emulated(t)
	key := token(t, c)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, c.For(t))
			s.home = t.TempDir()
			var err error
			if s.cli, err = findCLI(release); err != nil {
				t.Fatal(err)
			}
			secret := "key-" + strings.ReplaceAll(release, ".", "-")
			s.want(0, "--version", release)
			s.want(1, "project add -y --name lab --token nope --url "+url, "denied")
			s.want(1, "project add -y --name nowhere --url "+url+" --token "+key, "404")
			s.want(0, "project add -y --name lab --url "+url+" --token "+key)
			s.want(0, "project list", "lab", url)
			s.want(0, "project list -v", "root")
			s.want(0, "ps", "NAME")
			s.want(0, "fleet", "main", "ssh (remote)", "idle")
			s.want(0, "fleet list -v", "cpu=", "mem=8GB")
			s.want(0, "secret", "NAME")
			s.want(0, "secret set "+secret+" s3cr3t", "OK")
			s.want(0, "secret list", secret, "******", "!s3cr3t")
			s.want(0, "secret get "+secret, "s3cr3t")
			s.want(1, "secret get nope", "Resource not found")
			s.want(0, "event", "Secret created", "root")
			s.want(0, "secret delete -y "+secret, "OK")
			s.want(1, "secret delete -y nope", "Secrets not found: nope")
			s.want(0, "volume", "NAME")
			s.want(0, "gateway", "NAME")
			s.want(1, "fleet delete -y main", "partition of the cluster")
		})
	}
}

// TestRoles: who has no part in a project is refused; a user of it sees its nodes and keeps no secrets.
func TestRoles(t *testing.T) {
	c, url := emulated(t)
	for _, line := range []string{
		"users add uma", "users add eve", "project create closed", "project member closed uma --role user",
	} {
		c.Root().Run("bireme", strings.Fields(line)...)
	}
	s := newSession(t, c)
	s.want(1, "project add -y --name closed --url "+url+" --token "+token(t, c, "--user", "eve"), "denied")
	s.want(0, "project add -y --name closed --url "+url+" --token "+token(t, c, "--user", "uma"))
	s.want(0, "fleet", "main")
	s.want(1, "secret list", "denied")
}
