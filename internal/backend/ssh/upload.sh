new=$base/bin/.$sum.$$
trap 'rm -rf "$new"' EXIT
if mkdir -p "$new" && tar -xzf - -C "$new" && (cd "$new" && sha256sum -c sums >/dev/null) && : >"$new/whole"; then :; else exit 1; fi
if [ ! -e "$base/bin/$sum/whole" ]; then
	rm -rf "$base/bin/$sum"
	mv "$new" "$base/bin/$sum"
fi
[ -e "$base/bin/$sum/whole" ]
