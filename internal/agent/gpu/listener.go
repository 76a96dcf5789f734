package gpu

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ErrListener says that somebody else listens where an exporter should.
var ErrListener = errors.New("gpu.dcgm_exporter is not asked")

// dialOwn opens a connection. On a port of this machine only root and the agent's own user may listen: any user can
// take the port of an exporter that is not there, and would tell what they like of everybody's GPUs.
func dialOwn(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: exporterTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(c.RemoteAddr().String())
	from, err2 := netip.ParseAddrPort(c.LocalAddr().String())
	if err = errors.Join(err, err2); err == nil && (to.Addr().IsLoopback() || to.Addr() == from.Addr()) {
		err = checkPort(to, uint32(os.Geteuid()))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// checkPort asks the kernel who listens where a connection to this machine goes.
func checkPort(to netip.AddrPort, self uint32) error {
	found := false
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if errors.Is(err, os.ErrNotExist) { // without IPv6
			continue
		}
		if err != nil {
			return err
		}
		uids, err := listeners(f, to)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		found = found || len(uids) > 0
		if i := slices.IndexFunc(uids, func(uid uint32) bool { return uid != 0 && uid != self }); i >= 0 {
			return fmt.Errorf("user %d listens on %s, who is neither root nor the agent's user: %w", uids[i], to, ErrListener)
		}
	}
	if !found {
		return fmt.Errorf("whoever listens on %s is not to be found in /proc/net/tcp: %w", to, ErrListener)
	}
	return nil
}

// listeners returns the users who listen on an address, or on all addresses with its port.
func listeners(table io.Reader, to netip.AddrPort) (uids []uint32, err error) {
	const local, state, uid, listening = 1, 3, 7, "0A"
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) <= uid || f[state] != listening {
			continue
		}
		at, err := kernelAddr(f[local])
		if err != nil {
			return nil, err
		}
		if at.Port() != to.Port() || at.Addr() != to.Addr().Unmap() && !at.Addr().IsUnspecified() {
			continue
		}
		n, err := strconv.ParseUint(f[uid], 10, 32)
		if err != nil {
			return nil, err
		}
		uids = append(uids, uint32(n))
	}
	return uids, lines.Err()
}

// kernelAddr reads an address as the kernel writes it: words of four bytes in the order of the machine, little endian
// on all that we build for.
func kernelAddr(text string) (at netip.AddrPort, err error) {
	addr, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(addr)
	if err != nil || len(b)%4 != 0 {
		return at, fmt.Errorf("address %q cannot be read", text)
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	ip, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return at, fmt.Errorf("address %q cannot be read", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}
