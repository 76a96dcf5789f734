//go:build e2e

package dstack

import (
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/migrate/dstackdb/dstackdbtest"
	"bireme.dev/bireme/test/cluster"
)

// TestImport: a user of a dstack server whose database is taken over goes on with the old token: only the address is
// another.
func TestImport(t *testing.T) {
	listen := freePort(t)
	c := cluster.Start(t, cluster.Options{
		Args: []string{"--engine", docker.Socket, "--cpus", "4"}, Set: []string{"dstack.listen=" + listen, "timers.grace=5s"},
	})
	root := c.Root()
	dir := filepath.Join(c.Work, "dstack-server")
	if err := dstackdbtest.Make(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	args := []string{"import", "dstack", "--dir", dir, "--no-fleets", "-y"}
	out := root.Run("bireme", args...)
	for _, want := range []string{"vision", "hf_token", "clouds"} {
		if !strings.Contains(out, want) {
			t.Errorf("the import lacks %s:\n%s", want, out)
		}
	}
	if out := root.Run("bireme", args...); strings.Contains(out, " take ") {
		t.Errorf("a second import changes something:\n%s", out)
	}
	s := newSession(t, c)
	s.want(0, "project add --name vision --url http://"+listen+" --token "+dstackdbtest.CarlToken+" -y")
	s.file("hello.dstack.yml", "type: task\nname: hello\n"+head+"commands: [echo taken over]\n")
	s.want(0, "apply -f hello.dstack.yml -y -d")
	s.until("exited (0)", "ps -a")
	s.want(0, "logs hello", "taken over")
	s.want(0, "project add --name main --url http://"+listen+" --token "+dstackdbtest.AdminToken+" -y")
	s.want(0, "project set-default main")
	s.want(0, "secret get hf_token", "s3cret value")
}
