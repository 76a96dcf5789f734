if [ -n "$systemd" ]; then
	systemctl disable --quiet --now "$unit" 2>/dev/null
	rm -f "/etc/systemd/system/$unit"
	systemctl daemon-reload
else
	end_loop
fi
program=$(sed -n 's/^exec \([^ ]*\) .*/\1/p' "$dir/command" 2>/dev/null)
if [ -x "$program" ]; then "$program" agent --dir "$dir" --leave || exit 1; fi
rm -rf "$dir" || exit 1
for d in "$base"/bin/*; do
	if ! grep -qF "$d/" "$base"/*/command 2>/dev/null; then rm -rf "$d"; fi
done
rmdir "$base/bin" "$base" 2>/dev/null
exit 0
