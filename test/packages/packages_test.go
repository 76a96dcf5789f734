//go:build e2e

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build makes the packages of one version for this machine's architecture.
func build(t *testing.T, dist, version string) {
	t.Helper()
	cmd := exec.Command("../../scripts/packages.sh")
	cmd.Env = append(os.Environ(), "VERSION="+version, "LDFLAGS=-s -w -X main.version="+version, "BIREME_DIST="+dist,
		"BIREME_ARCHES=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/packages.sh: %v\n%s", err, out)
	}
}

// one is the only file of a pattern.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

func output(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// overlay runs a script as root of a copy-on-write root over this machine's, with processes and a network of its own.
const overlay = `
set -euo pipefail
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
for d in dev sys; do mount --rbind "/$d" "$d"; done
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p srv/packages
mount --bind "$2" srv/packages
ip link set lo up
hostname node1
exec chroot . /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb bash -c "$3"
`

// inside is an administrator's day. Each line that fails ends it.
const inside = `
set -euo pipefail
trap 'echo "line $LINENO failed: $BASH_COMMAND" >&2' ERR
set -E
echo "127.0.0.1 localhost node1" >/etc/hosts
export DEBIAN_FRONTEND=noninteractive
cd /srv/packages
absent() { hash -r; if command -v "$1"; then echo "$1 is there" >&2; exit 1; fi; }
for p in slurm-client slurm-client-emulator; do # where somebody compares with Slurm
	if dpkg -s "$p" >/dev/null 2>&1; then dpkg -P --force-depends "$p" >/dev/null 2>&1; fi
done
install() { dpkg -i "$@" >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log >&2; return 1; }; }

echo "== install"
install old/bireme_*.deb
grep -q "biremed setup" /tmp/dpkg.log
[ "$(biremed --version)" = "biremed 0.1.0" ]
getent passwd bireme | grep -q ":/var/lib/bireme:"
for f in /usr/lib/systemd/system/biremed-{server,agent,backup}.service /usr/share/man/man1/bireme.1.gz \
	/usr/share/man/man8/biremed.8.gz /usr/share/bash-completion/completions/bireme /usr/share/doc/bireme/install.md; do
	[ -f "$f" ] || { echo "$f is missing" >&2; exit 1; }
done
biremed config check -c /usr/share/doc/bireme/examples/config.yml
absent squeue
install old/bireme-slurm-commands_*.deb
[ "$(squeue --version)" = "slurm 22.05.8" ]

echo "== set up"
printf '%s\n' atlas sqlite 127.0.0.1 none yes | biremed setup >/tmp/join 2>/tmp/said ||
	{ cat /tmp/said /var/lib/bireme*/log/* >&2; exit 1; }
grep -q '^BIREME_JOIN_TOKEN=bm_' /tmp/join
[ "$(stat -c '%U:%G %a' /etc/bireme/config.yml)" = "root:bireme 640" ]
[ "$(stat -c '%U %a' /etc/bireme/agent.env)" = "root 600" ]
[ "$(ps -o user= -p "$(cat /var/lib/bireme/server.pid)")" = bireme ]
for i in $(seq 600); do sinfo -h | grep -q idle && break; read -rt 0.1 <> <(:) || :; done
sbatch --wait -o /tmp/out --wrap 'echo ran on $SLURM_CLUSTER_NAME'
grep -qx "ran on atlas" /tmp/out
if biremed setup --yes 2>/tmp/said; then echo "a second setup was taken" >&2; exit 1; fi
grep -q "is there already" /tmp/said
bireme node remove --help >/dev/null

echo "== upgrade, while a job runs"
id=$(sbatch --parsable -o /tmp/out2 --wrap 'while [ ! -e /tmp/go ]; do sleep 0.1; done; echo through')
for i in $(seq 600); do [ "$(squeue -h -j "$id" -o %t)" = R ] && break; read -rt 0.1 <> <(:) || :; done
chmod 644 /etc/bireme/agent.env
install new/bireme_*.deb new/bireme-slurm-commands_*.deb
[ "$(biremed --version)" = "biremed 0.1.1" ]
[ "$(stat -c %a /etc/bireme/agent.env)" = 600 ]
grep -q "cluster: atlas" /etc/bireme/config.yml
touch /tmp/go
for i in $(seq 600); do [ -s /tmp/out2 ] && break; read -rt 0.1 <> <(:) || :; done
grep -qx through /tmp/out2

echo "== remove"
biremed stop --dir /var/lib/bireme
dpkg -r bireme-slurm-commands bireme >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log >&2; exit 1; }
absent squeue
absent bireme
[ -f /etc/bireme/config.yml ] && [ -d /var/lib/bireme/db ]

echo "== purge"
dpkg -P bireme-slurm-commands bireme >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log >&2; exit 1; }
[ ! -e /etc/bireme ] && [ ! -e /var/lib/bireme ] && [ ! -e /var/lib/bireme-agent ]
if getent passwd bireme; then echo "the user is left" >&2; exit 1; fi
echo "== done"
`

// The package of one version is installed on a Debian, set up, upgraded to the next while a job runs, removed and
// purged; what the rpm and the image hold is looked at.
func TestPackages(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("test/packages needs root: it mounts and installs in a root of its own")
	}
	dist := t.TempDir()
	oldDir, newDir := filepath.Join(dist, "old"), filepath.Join(dist, "new")
	build(t, oldDir, "0.1.0")
	build(t, newDir, "0.1.1")

	deb := one(t, oldDir, "bireme-slurm-commands_*.deb")
	if got := output(t, "dpkg-deb", "-f", deb, "Conflicts", "Depends", "Architecture"); !strings.Contains(
		got,
		"slurm-client",
	) ||
		!strings.Contains(got, "Depends: bireme") ||
		!strings.Contains(got, "Architecture: all") {
		t.Errorf("what the links' package says of itself:\n%s", got)
	}
	list := output(t, "rpm", "-qpl", one(t, newDir, "bireme-0.1.1-*.rpm"))
	for _, want := range []string{
		"/usr/bin/biremed", "/usr/lib/systemd/system/biremed-server.service",
		"/usr/bin/bireme-step",
	} {
		if !strings.Contains(list, want+"\n") {
			t.Errorf("the rpm lacks %s:\n%s", want, list)
		}
	}
	got := output(t, "rpm", "-qp", "--conflicts", one(t, newDir, "bireme-slurm-commands-0.1.1-*.rpm"))
	if !strings.Contains(got, "slurm") {
		t.Errorf("the links' rpm conflicts with %q", got)
	}
	names := output(t, "tar", "-tf", one(t, newDir, "bireme-image.tar"))
	for _, want := range []string{"oci-layout", "index.json", "manifest.json", "blobs/sha256/"} {
		if !strings.Contains(names, want) {
			t.Errorf("the image lacks %s:\n%s", want, names)
		}
	}

	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
		"--propagation", "private", "bash", "-c", overlay, "overlay", t.TempDir(), dist, inside)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "== done") {
		t.Fatalf("on a root of its own: %v\n%s", err, out)
	}
}
