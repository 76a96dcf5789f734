package replica

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// uidOf is the effective uid of a process.
func uidOf(pid int) (uint32, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Uid:"); ok {
			if fields := strings.Fields(rest); len(fields) > 1 {
				uid, err := strconv.ParseUint(fields[1], 10, 32)
				return uint32(uid), err
			}
		}
	}
	return 0, fmt.Errorf("process %d has no uid: %w", pid, os.ErrNotExist)
}

// listens refuses a port of this node that nobody listens on, or anybody but a user.
func listens(port int32, uid uint32) error {
	found := false
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		owners, err := listeners(table, port)
		if err != nil && !os.IsNotExist(err) { // there may be no IPv6
			return core.Errorf(core.Unavailable, "who listens on port %d of the node is not known: %v", port, err)
		}
		for _, owner := range owners {
			if owner != uid {
				return core.Errorf(core.Unavailable, "port %d of the node is somebody else's: replicas that are processes "+
					"share the ports of their node; containers have their own", port)
			}
			found = true
		}
	}
	if !found {
		return core.Errorf(core.Unavailable, "nothing listens on port %d of the replica", port)
	}
	return nil
}

// listening is the state of a listener in the kernel's tables.
const listening = "0A"

// listeners are the uids of those who listen on a port, by one of the kernel's tables.
func listeners(table string, port int32) (uids []uint32, err error) {
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	want := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[3] != listening || !strings.HasSuffix(fields[1], want) {
			continue
		}
		uid, err := strconv.ParseUint(fields[7], 10, 32)
		if err != nil {
			return nil, err
		}
		uids = append(uids, uint32(uid))
	}
	return uids, lines.Err()
}
