# up is where the server's socket is made, by whoever logged in.
mkdir -p "$dir/up" "$base/bin" || exit 1
chmod 700 "$dir/up" && chown "${SUDO_UID:-$(id -u)}" "$dir/up" || exit 1
rm -f "$dir/up/server.sock"
# What an upload left that was cut off: the shell that it is named for is gone, or is something else by now, for none takes so long.
for d in "$base"/bin/.*.*; do
	case ${d##*.} in
	'' | *[!0-9]*) ;;
	*) if [ ! -d "/proc/${d##*.}" ] || [ -n "$(find "$d" -maxdepth 0 -mmin +15)" ]; then rm -rf "$d"; fi ;;
	esac
done
echo "os $(uname -s)"
echo "arch $(uname -m)"
echo "base $base"
echo "free $(df -Pk "$base" | awk 'NR==2 {print $4}')"
if [ -e "$base/bin/$sum/whole" ]; then echo "programs yes"; fi
for f in node.crt ca.pem command env; do
	if [ -e "$dir/$f" ]; then echo "$f $(sha256sum <"$dir/$f" | cut -d' ' -f1)"; fi
done
# Its own addresses, without a program that a small system may not have.
awk '/32 host LOCAL/ {print "addr " last} {last = $2}' /proc/net/fib_trie 2>/dev/null | sort -u
awk '{print "addr6 " $1}' /proc/net/if_inet6 2>/dev/null
if [ -n "$systemd" ]; then
	echo "systemd yes"
	if systemctl is-active --quiet "$unit"; then echo "running yes"; fi
elif loop; then echo "running yes"; fi
exit 0
