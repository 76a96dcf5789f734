package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoPodman says that the machine has none.
var ErrNoPodman = errors.New("there is no podman: scripts/prereqs.sh installs one")

// StartPodman starts a service of Podman, which speaks Docker's API, below a new directory and returns when it answers.
func StartPodman(ctx context.Context) (*Engine, error) {
	program, err := exec.LookPath("podman")
	if err != nil {
		return nil, ErrNoPodman
	}
	e, err := newEngine(program)
	if err != nil {
		return nil, err
	}
	nets := filepath.Join(e.base, "net.d")
	list := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "podman", "plugins": [
	{"type": "bridge", "bridge": %q, "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "dataDir": %q}}]}`,
		e.bridge, e.subnet(0), filepath.Join(e.base, "ipam"))
	// Everything is its own: another Podman of the machine sees nothing of it. Debian 12's speaks to networks by CNI.
	// What it would lift limits to may be more than the machine gives.
	const ulimits = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n"
	conf := ulimits + fmt.Sprintf(
		"[engine]\ncgroup_manager = \"cgroupfs\"\nruntime = \"runc\"\nevents_logger = \"none\"\nstatic_dir = %q\n"+
			"tmp_dir = %q\nvolume_path = %q\n[network]\nnetwork_backend = \"cni\"\nnetwork_config_dir = %q\n",
		filepath.Join(e.base, "static"), filepath.Join(e.base, "tmp"), filepath.Join(e.base, "volumes"), nets)
	// that of the tests
	const registries = "unqualified-search-registries = [\"docker.io\"]\n[[registry]]\nlocation = \"127.0.0.1\"\n" +
		"insecure = true\n"
	if err := errors.Join(
		os.Mkdir(nets, 0o700), os.WriteFile(filepath.Join(nets, "podman.conflist"), []byte(list), 0o600),
		os.WriteFile(filepath.Join(e.base, "containers.conf"), []byte(conf), 0o600),
		os.WriteFile(filepath.Join(e.base, "registries.conf"), []byte(registries), 0o600),
	); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	e.alone, e.env = true, []string{
		"CONTAINERS_CONF=" + filepath.Join(e.base, "containers.conf"),
		"CONTAINERS_REGISTRIES_CONF=" + filepath.Join(e.base, "registries.conf"),
	}
	e.args = []string{
		"--root", filepath.Join(e.base, "root"), "--runroot", filepath.Join(e.base, "run"), "--storage-driver", "overlay",
		"system", "service", "--time", "0", "unix://" + e.Socket,
	}
	return e.begin(ctx)
}
