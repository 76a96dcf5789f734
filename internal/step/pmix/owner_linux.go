package pmix

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownerOf is the user whose socket is at the other end of a connection within this machine. The kernel knows: a client
// cannot say otherwise.
func ownerOf(c net.Conn) (uint32, error) {
	there, here := addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())
	if !there.Addr().IsLoopback() || !here.Addr().IsLoopback() {
		return 0, errors.New("not a connection within this machine")
	}
	if uid, err := diagOwner(there, here); err == nil || errors.Is(err, errClosed) {
		return uid, err
	}
	return tableOwner(there, here) // a kernel without the module that answers
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// Of the kernel's interface for questions about sockets, linux/inet_diag.h.
const (
	diagByFamily = 20
	diagReqSize  = 56
	diagMsgUID   = 64 // offset of idiag_uid in inet_diag_msg
	diagMsgSize  = 72
	established  = 1
)

// errClosed is a socket that its owner has closed: the kernel then names root as its owner.
var errClosed = errors.New("the other end is closed")

// diagOwner asks for exactly one socket.
func diagOwner(there, here netip.AddrPort) (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	msg := make([]byte, unix.NLMSG_HDRLEN+diagReqSize)
	binary.NativeEndian.PutUint32(msg[0:], uint32(len(msg)))
	binary.NativeEndian.PutUint16(msg[4:], diagByFamily)
	binary.NativeEndian.PutUint16(msg[6:], unix.NLM_F_REQUEST)
	req := msg[unix.NLMSG_HDRLEN:]
	req[0], req[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(req[4:], ^uint32(0)) // in any state
	src, dst := there.Addr().As4(), here.Addr().As4()
	binary.BigEndian.PutUint16(req[8:], there.Port())
	binary.BigEndian.PutUint16(req[10:], here.Port())
	copy(req[12:], src[:])
	copy(req[28:], dst[:])
	binary.NativeEndian.PutUint64(req[48:], ^uint64(0)) // no cookie
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, err
	}
	if n < unix.NLMSG_HDRLEN+diagMsgSize || binary.NativeEndian.Uint16(answer[4:]) != diagByFamily {
		return 0, errors.New("the kernel knows no such socket")
	}
	got := answer[unix.NLMSG_HDRLEN:]
	if binary.BigEndian.Uint16(got[4:]) != there.Port() || binary.BigEndian.Uint16(got[6:]) != here.Port() {
		return 0, errors.New("the kernel tells of another socket")
	}
	if got[1] != established {
		return 0, errClosed
	}
	return binary.NativeEndian.Uint32(got[diagMsgUID:]), nil
}

// tableOwner looks in the list of all sockets.
func tableOwner(there, here netip.AddrPort) (uint32, error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	from, to := tableAddr(there), tableAddr(here)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid
		if w := strings.Fields(lines.Text()); len(w) > 7 && w[1] == from && w[2] == to {
			if w[3] != "01" {
				return 0, errClosed
			}
			uid, err := strconv.ParseUint(w[7], 10, 32)
			return uint32(uid), err
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, errors.New("no such socket")
}

// tableAddr is an address as the list has it.
func tableAddr(a netip.AddrPort) string {
	b := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), a.Port())
}
