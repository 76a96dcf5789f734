tail -n 5 "$dir/agent.log" 2>/dev/null || { [ -n "$systemd" ] && journalctl -q -n 5 -o cat -u "$unit"; }
exit 0
