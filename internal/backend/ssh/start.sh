# The input is a tar of what the agent needs: its certificate, its command, and how it is kept going.
if [ -z "$systemd" ]; then end_loop; fi
rm -f "$dir/env"
tar -xf - -C "$dir" || exit 1
rm -f "$dir/stop"
if [ -n "$systemd" ]; then
	cp "$dir/unit" "/etc/systemd/system/$unit" && systemctl daemon-reload && systemctl enable --quiet "$unit" && systemctl restart "$unit"
else
	cd / && setsid sh "$dir/run" </dev/null >/dev/null 2>&1 &
fi
# Programs that neither a node nor a process has any use for.
for d in "$base"/bin/*; do
	if [ "$d" != "$base/bin/$sum" ] && ! grep -qF "$d/" "$base"/*/command 2>/dev/null &&
		! readlink /proc/[0-9]*/exe 2>/dev/null | grep -qF "$d/"; then rm -rf "$d"; fi
done
exit 0
