//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestVolumes: network volumes of all drivers are made, mounted by processes of ordinary users, kept and removed; one
// that allows one writer is never mounted twice, not even when its keeper is killed.
func TestVolumes(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("losetup", "-f").CombinedOutput(); err != nil {
		t.Skipf("no loop devices here: %v: %s", err, out)
	}
	base := t.TempDir()
	disk := filepath.Join(base, "disk.img") // what driver mount mounts: a file system that every kernel here has
	for _, dir := range []string{"shared", "images"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 16<<20); err != nil {
		t.Fatal(err)
	}
	settings := write(t, filepath.Join(base, "config.yml"), fmt.Sprintf(`volumes:
  - {class: fast, driver: shared, path: %[1]s/shared, default: true}
  - {class: disk, driver: image, path: %[1]s/images, max_size: 64MiB}
  - {class: server, driver: mount, type: ext4, source: %[2]s, options: loop, single: true}
`, base, disk))
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "1G", Args: []string{"--config", settings}})
	root := c.Root()
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", disk).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	for _, v := range []string{"data fast 1GB", "img disk 16MB", "far server 1GB"} {
		f := strings.Fields(v)
		file := write(t, filepath.Join(c.Work, f[0]+".yml"),
			fmt.Sprintf("type: volume\nname: %s\nclass: %s\nsize: %s\n", f[0], f[1], f[2]))
		wants(t, "apply", root.Run("bireme", "apply", "-y", "-f", file), "active")
	}
	p := c.As(alice)
	task := func(name string, body ...string) string {
		return write(t, filepath.Join(c.Work, name+".yml"), "type: task\nname: "+name+"\nruntime: process\n"+
			strings.Join(body, "\n")+"\n")
	}
	file := task("writes", `volumes: ["data:/mnt/data", "img:/mnt/img", {name: [absent, far], path: /mnt/far}]`,
		"commands:", "  - for v in data img far; do echo $v >/mnt/$v/x; cat /mnt/$v/x; done",
		"  - grep -c nosuid,nodev /proc/self/mountinfo", "  - 'ls "+base+"/shared/default 2>&1 || true'")
	out := p.Run("bireme", "apply", "-y", "-f", file)
	wants(t, "a job with volumes", out, "data\nimg\nfar\n", "Permission denied")
	if st, err := os.Stat(filepath.Join(base, "shared", "default", "data", "x")); err != nil || st.Size() != 5 {
		t.Errorf("what a job wrote: %v %v", st, err)
	}
	refused(t, p.Try("bireme", "apply", "-y", "-f", task("etc", `volumes: ["data:/proc/x"]`, "commands: [':']")), 2,
		"must not be /")
	refused(t, p.Try("bireme", "apply", "-y", "-f", task("none", `volumes: ["absent:/mnt/x"]`, "commands: [':']")), 2,
		"there is no volume absent")
	oneWriter(t, c, p, task)
	refused(t, p.Try("bireme", "volume", "delete", "-y", "data"), 4, "is root's")
	root.Run("bireme", "volume", "delete", "-y", "data")
	c.Eventually("the volume is removed", func() (bool, string) {
		_, err := os.Stat(filepath.Join(base, "shared", "default", "data"))
		list := root.Run("bireme", "volume")
		return os.IsNotExist(err) && !strings.Contains(list, "data"), list
	})
	if err := os.Remove(filepath.Join(base, "images", "default", "img.img")); err != nil {
		t.Fatal(err)
	}
	lost := p.Try("bireme", "apply", "-y", "-f", task("lost", `volumes: ["img:/mnt/img"]`, "commands: [':']"))
	if wants(t, "a lost volume", lost.Err, "is lost"); lost.Code == 0 {
		t.Error("a job with a lost volume ran")
	}
	c.WaitClean()
}

// oneWriter has two jobs want an image, and kills the keeper of the first.
func oneWriter(t *testing.T, c *cluster.Cluster, p *cluster.Person, task func(string, ...string) string) {
	start := func(name string) string {
		out := p.Run("bireme", "apply", "-y", "-d", "-f", task(name, `volumes: ["img:/mnt/img"]`,
			"commands: ['echo "+name+" >>/mnt/img/log', 'sleep 6000']"))
		_, id, ok := strings.Cut(strings.TrimSpace(out), ", job ")
		if !ok {
			t.Fatalf("apply -d said %q", out)
		}
		return id
	}
	first := start("first")
	c.WaitState(first, core.Running)
	second := start("second")
	c.Eventually("the second waits for the volume", func() (bool, string) {
		why := p.Run("bireme", "why", second)
		return strings.Contains(why, "waits for volume default/img"), why
	})
	refused(t, c.Root().Try("bireme", "volume", "delete", "-y", "img"), 6, "is in use")
	node := strings.TrimSpace(c.Root().Run("squeue", "-h", "-j", first, "-o", "%N"))
	c.Kill("the keeper of "+node, func() int { return c.Keeper(node) })
	c.WaitState(second, core.Running)
	c.WaitEnd(first)
	p.Run("bireme", "stop", "-y", "second")
	c.WaitEnd(second)
}
