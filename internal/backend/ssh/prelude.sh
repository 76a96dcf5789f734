# Where things are, for all scripts. $node names the node.
umask 022
if [ "$(id -u)" = 0 ]; then base=/var/lib/bireme/fleet; else base=$HOME/.bireme/fleet; fi
dir=$base/$node
unit=bireme-agent-$node.service
systemd=
if [ -d /run/systemd/system ] && [ "$(id -u)" = 0 ]; then systemd=yes; fi
# The loop that keeps the agent going, if it runs: a pid alone may be anybody's by now.
loop() {
	pid=$(cat "$dir/loop.pid" 2>/dev/null) || return 1
	tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "sh $dir/run"
}
end_loop() {
	: >"$dir/stop"
	n=0
	while loop && [ $n -lt 100 ]; do
		kill "$pid" 2>/dev/null
		sleep 0.1
		n=$((n + 1))
	done
	if loop; then kill -9 "$pid"; fi
}
