# What an upload left that was cut off; none takes so long.
find "$base/bin" -maxdepth 1 -name '.*.*' -mmin +15 -exec rm -rf {} + 2>/dev/null
new=$base/bin/.$sum.$$
trap 'rm -rf "$new"' EXIT
if mkdir -p "$new" && tar -xzf - -C "$new" && (cd "$new" && sha256sum -c sums >/dev/null) && : >"$new/whole"; then :; else exit 1; fi
if [ ! -e "$base/bin/$sum/whole" ]; then
	rm -rf "$base/bin/$sum"
	mv "$new" "$base/bin/$sum"
fi
[ -e "$base/bin/$sum/whole" ]
