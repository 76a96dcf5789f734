//go:build e2e

package containers

import (
	"context"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// TestUserNamespaces: with an engine that maps root of its containers to other ids, runs work as with any other, root
// inside is nobody outside, and the node says so.
func TestUserNamespaces(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	remapped, err := engine.StartRemapped(ctx, "bireme-t2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remapped.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := importImages(remapped); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Args: []string{"--engine", remapped.Socket}})
	nodes, err := c.Client(0).Nodes(t.Context())
	if err != nil || len(nodes.Nodes) != 1 || !nodes.Nodes[0].Host.UserNS {
		t.Errorf("the node does not say that root inside is nobody outside: %+v, %v", nodes, err)
	}
	r := apply(t, c.As(alice), c.Work, "mapped", "image: box:1\nenv: [TOKEN=abc]\n"+
		"commands: ['read inside outside count </proc/self/uid_map; echo $inside at $outside', 'id -u', 'echo ${#TOKEN}', "+
		"'echo written >/mine && cat /mine']\n")
	if r.Code != 0 || !strings.Contains(r.Out, "0 at ") || strings.Contains(r.Out, "0 at 0\n") ||
		!strings.HasSuffix(r.Out, "0\n3\nwritten\n") {
		t.Errorf("a run: %v", r)
	}
	r = apply(t, c.As(alice), c.Work, "fails", "image: box:1\ncommands: ['exit 7']\n")
	if r.Code != 7 {
		t.Errorf("an exit code: %v", r)
	}
}
