//go:build e2e

package containers

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/test/cluster"
)

// TestSiteRules: what a site gives to everybody's containers, and no more.
func TestSiteRules(t *testing.T) {
	pool, err := os.MkdirTemp("/tmp", "pool-")
	if err != nil {
		t.Fatal(err)
	}
	runTool(t, "mount", "-t", "tmpfs", "-o", "nosuid,nodev,size=1m", "none", pool)
	t.Cleanup(func() {
		runTool(t, "umount", "-l", pool)
		if err := os.RemoveAll(pool); err != nil {
			t.Error(err)
		}
	})
	unsafe := t.TempDir() // where a container's root could leave a program that is root's
	if err := os.Symlink("/etc", filepath.Join(pool, "way-out")); err != nil {
		t.Fatal(err)
	}
	c := start(t, cluster.Options{Set: []string{"step.volumes=" + pool + "," + unsafe, "step.privileged=true"}})
	p := c.As(alice)
	r := apply(t, p, c.Work, "volume",
		fmt.Sprintf("image: box:1\nvolumes: [\"%s/a/b:/data\"]\ncommands: [echo in > /data/out]\n", pool))
	if b, err := os.ReadFile(filepath.Join(pool, "a/b/out")); r.Code != 0 || err != nil || string(b) != "in\n" {
		t.Errorf("a volume below what is everybody's: %v %v %q", r, err, b)
	}
	for name, source := range map[string]string{"elsewhere": "/etc", "beside": pool + "x", "above": filepath.Dir(pool)} {
		r = apply(t, p, c.Work, name, fmt.Sprintf("image: box:1\nvolumes: [\"%s:/data\"]\ncommands: [ls /data]\n", source))
		if r.Code == 0 || !strings.Contains(r.Err, "others may mount what is below "+pool) {
			t.Errorf("%s: %v", name, r)
		}
	}
	r = apply(t, p, c.Work, "unsafe",
		fmt.Sprintf("image: box:1\nvolumes: [\"%s:/data\"]\ncommands: [cp /bin/busybox /data/su, echo did]\n", unsafe))
	if r.Code == 0 || r.Out != "" {
		t.Errorf("a file system that takes programs of root: %v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "unsafe")), "mounted without nosuid and nodev")
	r = apply(t, p, c.Work, "out", fmt.Sprintf("image: box:1\nvolumes: [\"%s/way-out:/data\"]\ncommands: [ls /data]\n",
		pool))
	if r.Code == 0 || r.Out != "" {
		t.Errorf("a link that leads out: %v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "out")), "without following links")
	// The engine itself may not have the rights it is to give, in a machine that is a container itself.
	r = apply(t, p, c.Work, "priv", "image: box:1\nprivileged: true\ncommands: [mount -t tmpfs none /tmp, echo did]\n")
	if r.Out != "did\n" && !strings.Contains(r.Err, "unable to apply caps") {
		t.Errorf("privileged: %v", r)
	}
	// Root inside, without raw sockets.
	r = apply(t, p, c.Work, "raw", "image: box:1\ncommands: [grep CapEff /proc/self/status]\n")
	caps := uint64(0)
	if _, err := fmt.Sscanf(r.Out, "CapEff: %x", &caps); err != nil || caps == 0 || caps&(1<<unix.CAP_NET_RAW) != 0 {
		t.Errorf("rights inside: %v, %v", r, err)
	}
	t.Run("ports", func(t *testing.T) { ports(t, c.For(t)) })
	left(t, c)
}

// ports: a container's port is found on its node, and it is told where, also by a server that was started since.
func ports(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "page",
		"image: box:1\nports: [8080]\ncommands: [echo hello > /tmp/page, httpd -f -p 8080 -h /tmp]\n", "-d")
	id := jobOf(t, c, "page")
	host := func() (port int32) {
		c.Eventually("its port is told", func() (bool, string) {
			j := c.Job(id)
			if len(j.Ports) == 1 && j.Ports[0].Port == 8080 {
				port = j.Ports[0].Host
			}
			return port != 0, fmt.Sprintf("%+v %s", j.Ports, p.Run("bireme", "why", id))
		})
		return port
	}
	port := host()
	wants(t, "why", p.Run("bireme", "why", id), fmt.Sprintf("port 8080 is port %d of ", port))
	c.Eventually("it answers", func() (bool, string) {
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/page", port))
		if err != nil {
			return false, err.Error()
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return string(b) == "hello\n", string(b)
	})
	c.Kill("the agent", func() int { return c.Agent(c.Nodes()[0]) })
	if again := host(); again != port {
		t.Errorf("it was port %d and is %d", port, again)
	}
	p.Run("bireme", "stop", "-y", "-x", "page")
	c.WaitEnd(id)
}
