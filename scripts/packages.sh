#!/usr/bin/env bash
# packages.sh: builds into dist/ what a site installs: deb and rpm for amd64 and arm64, and an OCI image of both, all
# without root and without Docker. VERSION names it; SOURCE_DATE_EPOCH (default: the commit's time) dates every file, so
# that the same commit gives the same bytes. BIREME_ARCHES and BIREME_DIST choose fewer architectures, another folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${VERSION:?}" "${LDFLAGS:?}"
GO=${GO:-go}
export CGO_ENABLED=0
dist=${BIREME_DIST:-dist}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
MTIME=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
MAINTAINER=${MAINTAINER:-Bireme maintainers <maintainers@bireme.dev>}
say() { echo "packages: $*"; }

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$dist"
mapfile -t programs < <(printf './%s\n' cmd/*/)
for arch in ${BIREME_ARCHES:-amd64 arm64}; do
	say "programs for $arch"
	mkdir -p "$stage/$arch/bin"
	GOARCH=$arch "$GO" build -buildvcs=false -trimpath -ldflags "$LDFLAGS" -o "$stage/$arch/bin/" "${programs[@]}"
done

# Pages and completions do not differ by architecture: programs of this machine's write them.
say "manual pages and completions"
native=$stage/$("$GO" env GOARCH)
if [ ! -d "$native" ]; then
	mkdir -p "$native/bin"
	"$GO" build -buildvcs=false -trimpath -ldflags "$LDFLAGS" -o "$native/bin/" ./cmd/bireme ./cmd/biremed ./cmd/bireme-slurm
fi
text=$stage/text
mkdir -p "$text/man" "$text/completion" "$text/links" "$text/slurm-man"
"$native/bin/bireme" man | gzip -9n >"$text/man/bireme.1.gz"
"$native/bin/biremed" man | gzip -9n >"$text/man/biremed.8.gz"
"$native/bin/bireme" completion bash >"$text/completion/bireme.bash"
"$native/bin/biremed" completion bash >"$text/completion/biremed.bash"
"$native/bin/bireme" completion zsh >"$text/completion/_bireme"
"$native/bin/bireme" completion fish >"$text/completion/bireme.fish"
"$native/bin/bireme" links "$text/links" --man "$text/slurm-man" >/dev/null 2>&1
rm "$text/links/dstack" # another product's name; `bireme links` makes it where it is wanted
for link in "$text"/links/*; do ln -sfn bireme-slurm "$link"; done
gzip -9n "$text"/slurm-man/*

nfpm() { "$GO" tool -modfile=tools/nfpm/go.mod nfpm "$@"; }
images=()
for arch in ${BIREME_ARCHES:-amd64 arm64}; do
	cp -r "$text/." "$stage/$arch/"
	for format in deb rpm; do
		for package in bireme bireme-slurm-commands; do
			sed -e "s|\${ARCH}|$arch|; s|\${STAGE}|$stage/$arch|; s|\${VERSION}|${VERSION#v}|; s|\${MTIME}|$MTIME|" \
				-e "s|\${MAINTAINER}|$MAINTAINER|" "packaging/$package.yaml" >"$stage/nfpm.yaml"
			nfpm package --config "$stage/nfpm.yaml" --packager "$format" --target "$dist/" >"$stage/log" || { cat "$stage/log"; exit 1; }
		done
	done
	images+=("$arch=$stage/$arch/bin")
done
say "OCI image"
"$GO" run -C tools ./image -version "$VERSION" -created "$MTIME" -license "$PWD/LICENSE" \
	-o "$(cd "$dist" && pwd)/bireme-image.tar" "${images[@]}"
(cd "$dist" && sha256sum -- *.deb *.rpm *.tar >SHA256SUMS)
say "in $dist:"
ls -l "$dist"
