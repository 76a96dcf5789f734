//go:build e2e

package containers

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// ofHost are the machine's own files that an image needs for programs: what they are linked with, too.
func ofHost(t *testing.T, programs ...string) []engine.File {
	t.Helper()
	paths := map[string]bool{}
	for _, p := range programs {
		paths[p] = true
		out, err := exec.Command("ldd", p).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "not a dynamic executable") {
			t.Fatalf("ldd %s: %v: %s", p, err, out)
		}
		for _, lib := range regexp.MustCompile(`/[^ ]+\.so[^ ]*`).FindAllString(string(out), -1) {
			paths[lib] = true
		}
	}
	dirs := map[string]bool{}
	var files []engine.File
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		var above []string
		for d := filepath.Dir(p); d != "/"; d = filepath.Dir(d) {
			above = append(above, d)
		}
		for _, d := range slices.Backward(above) {
			if !dirs[d] && d != "/bin" {
				files = append(files, engine.File{Path: d[1:], Mode: 0o755})
			}
			dirs[d] = true
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, engine.File{Path: p[1:], Mode: 0o755, Data: data})
	}
	return files
}

// installs: root in an ordinary user's container, with the rights it has by default, installs a package of Debian and
// runs OpenSSH's server. The image has the machine's own dpkg and sshd.
func installs(t *testing.T, c *cluster.Cluster) {
	box, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	files := append(box[:len(box):len(box)], ofHost(t, "/usr/bin/dpkg", "/usr/bin/dpkg-deb", "/usr/bin/dpkg-split",
		"/usr/bin/tar", "/usr/sbin/start-stop-daemon", "/usr/sbin/ldconfig", "/usr/sbin/sshd", "/usr/bin/ssh",
		"/usr/bin/ssh-keygen")...)
	for _, dir := range []string{
		"var", "var/lib", "var/lib/dpkg", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/log",
		"run", "run/sshd", "etc/ssh",
	} {
		files = append(files, engine.File{Path: dir, Mode: 0o755})
	}
	for path, text := range map[string]string{
		"var/lib/dpkg/status": "", "var/lib/dpkg/available": "", "etc/ssh/sshd_config": "", "etc/ssh/ssh_config": "",
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\napp:x:1234:1234::/:/bin/sh\n",
	} {
		files = append(files, engine.File{Path: path, Mode: 0o644, Data: []byte(text)})
	}
	last := map[string]int{}
	for i := range files {
		last[files[i].Path] = i
	}
	var once []engine.File
	for i := range files {
		if last[files[i].Path] == i {
			once = append(once, files[i])
		}
	}
	if err := docker.Import("debian:1", once, "ENV PATH=/usr/sbin:/usr/bin:/bin"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.Work, "package")
	control := "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: tool\n"
	for path, text := range map[string]string{
		"DEBIAN/control": control, "DEBIAN/postinst": "#!/bin/sh\nchown app /usr/bin/tool && chmod 4755 /usr/bin/tool\n",
		"usr/bin/tool": "#!/bin/sh\necho installed\n",
	} {
		at := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runTool(t, "dpkg-deb", "--root-owner-group", "-b", dir, filepath.Join(c.Work, "tool.deb"))
	r := apply(t, c.As(alice), c.Work, "installs", `image: debian:1
files: [tool.deb]
commands:
  - dpkg -i tool.deb
  - tool; stat -c '%U %a' /usr/bin/tool
  - ssh-keygen -q -t ed25519 -N '' -f /root/.ssh-key && mkdir -p -m 700 /root/.ssh
  - cp /root/.ssh-key.pub /root/.ssh/authorized_keys && ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
  - /usr/sbin/sshd -p 2222 -o UsePAM=no -o PermitRootLogin=yes -E /tmp/sshd.log || { cat /tmp/sshd.log; exit 1; }
  - export to="-i /root/.ssh-key -p 2222 -o StrictHostKeyChecking=no -o LogLevel=ERROR"
  - ssh $to root@127.0.0.1 'echo in as $(id -u)' || { cat /tmp/sshd.log; exit 1; }
  - ssh -tt $to root@127.0.0.1 'tty' || { cat /tmp/sshd.log; exit 1; }
`)
	if r.Code != 0 {
		t.Errorf("%v", r)
	}
	wants(t, "root inside", r.Out, "installed\napp 4755\n", "in as 0\n", "/dev/pts/")
}
