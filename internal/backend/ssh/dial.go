package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
)

// Patience with hosts.
const (
	connectWait = 10 * time.Second // for TCP and each handshake
	aliveEvery  = 10 * time.Second // between questions whether the host is still there
	aliveWait   = 20 * time.Second // for the answer
)

// Target is a host to log into.
type Target struct {
	Login core.SSHLogin
	Key   ssh.Signer
	Known string // the host key it showed first; empty: it has shown none
	Keys  HostKeys
	Via   *Target // the host it is reached through; nil: directly
}

// Host is a host that is logged into.
type Host struct {
	Key    string // the host key it showed
	Peer   string // address it was reached at; empty: through another host
	ViaKey string // of the host it is reached through

	at     string
	client *ssh.Client
	via    *ssh.Client
	gone   chan struct{} // closed when the connection has ended
}

// ParseKey reads a private key as ssh-keygen writes it. A key with a passphrase is refused: nobody is there to type it.
func ParseKey(text []byte) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, core.Errorf(core.Invalid, "the key has a passphrase; the server needs one without: ssh-keygen -p -N ''")
	case err != nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("ssh-")):
		return nil, core.Errorf(core.Invalid, "this is a public key; the private one is needed")
	case err != nil:
		return nil, core.Errorf(core.Invalid,
			"not a private key: RSA, ECDSA and Ed25519 are known, as ssh-keygen writes them")
	}
	switch s.PublicKey().Type() {
	case ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoED25519:
		return s, nil
	}
	return nil, core.Errorf(core.Invalid, "a key of type %s: RSA, ECDSA and Ed25519 are known", s.PublicKey().Type())
}

// Fingerprint names a key as ssh-keygen -l does.
func Fingerprint(k ssh.PublicKey) string { return ssh.FingerprintSHA256(k) }

// Dial logs into a host, through another if need be.
func Dial(ctx context.Context, t *Target) (_ *Host, err error) {
	h := &Host{at: t.Login.At(), gone: make(chan struct{})}
	var c net.Conn
	if t.Via != nil {
		if c, err = dialTCP(ctx, t.Via.Login.At()); err == nil {
			h.via, h.ViaKey, err = login(ctx, t.Via, c)
		}
		if err != nil {
			return nil, fmt.Errorf("jump host: %w", err)
		}
		wait, cancel := context.WithTimeout(ctx, connectWait)
		defer cancel()
		if c, err = h.via.DialContext(wait, "tcp", h.at); err != nil {
			_ = h.via.Close() // the error that stopped us is the one to tell
			return nil, core.Errorf(core.Unavailable, "%s does not answer the jump host %s: %s", h.at, t.Via.Login.At(),
				openError(err))
		}
	} else if c, err = dialTCP(ctx, h.at); err != nil {
		return nil, err
	} else {
		h.Peer = c.RemoteAddr().String()
	}
	if h.client, h.Key, err = login(ctx, t, c); err != nil {
		if h.via != nil {
			_ = h.via.Close()
		}
		return nil, err
	}
	go h.watch()
	return h, nil
}

func dialTCP(ctx context.Context, at string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectWait, KeepAlive: 15 * time.Second}
	c, err := d.DialContext(ctx, "tcp", at)
	if err == nil {
		return c, nil
	}
	var dns *net.DNSError
	why := err.Error()
	switch {
	case errors.As(err, &dns):
		why = "its name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "it refuses connections: no SSH server listens there"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("it does not answer within %s", connectWait)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		why = "there is no way to it"
	}
	return nil, &core.Error{Code: core.Unavailable, Reason: "host_unreachable", Message: at + ": " + why}
}

// openError words why a jump host did not pass us on.
func openError(err error) string {
	var open *ssh.OpenChannelError
	if errors.As(err, &open) {
		return open.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("nothing within %s", connectWait)
	}
	return err.Error()
}

// login does the handshake over c, which it closes if that fails.
func login(ctx context.Context, t *Target, c net.Conn) (*ssh.Client, string, error) {
	at := t.Login.At()
	var shown string
	var changed error
	kinds, judge, err := t.Keys.judge(at, t.Known)
	if err != nil {
		_ = c.Close() // nothing was said yet
		return nil, "", err
	}
	conf := &ssh.ClientConfig{
		User: t.Login.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(t.Key)}, ClientVersion: "SSH-2.0-Bireme",
		HostKeyAlgorithms: kinds,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			shown, changed = KeyLine(key), judge(key)
			return changed
		},
	}
	wait, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	stop := context.AfterFunc(wait, func() { _ = c.Close() })
	conn, chans, reqs, err := ssh.NewClientConn(c, at, conf)
	if !stop() && err == nil {
		err = wait.Err()
	}
	switch {
	case err == nil:
		return ssh.NewClient(conn, chans, reqs), shown, nil
	case changed != nil:
		err = changed
	case strings.Contains(err.Error(), "no common algorithm for host key"):
		err = &core.Error{Code: core.Denied, Reason: "host_key_changed", Message: fmt.Sprintf(
			"the host key of %s changed: it has none of the kind that is known of it (%s); if the host was made "+
				"anew, say so with `bireme fleet trust`",
			at, strings.Join(kinds, ", "))}
	case wait.Err() != nil && ctx.Err() == nil:
		err = core.Errorf(core.Unavailable, "%s: it says nothing of SSH within %s", at, connectWait)
	case strings.Contains(err.Error(), "unable to authenticate"):
		err = &core.Error{Code: core.Denied, Reason: "key_refused", Message: fmt.Sprintf(
			"%s: user %s is not let in with key %s", at, t.Login.User, Fingerprint(t.Key.PublicKey()))}
	default:
		err = &core.Error{Code: core.Unavailable, Reason: "host_unreachable", Message: at + ": " +
			strings.TrimPrefix(err.Error(), "ssh: ")}
	}
	_ = c.Close()
	return nil, "", err
}

// watch closes a connection that has gone dead, and tells of its end.
func (h *Host) watch() {
	ended := make(chan struct{})
	go func() {
		_ = h.client.Wait() // why it ended is seen by those who use it
		close(ended)
	}()
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if h.via != nil {
				_ = h.via.Close()
			}
			close(h.gone)
			return
		case <-tick.C:
			late := time.AfterFunc(aliveWait, func() { _ = h.client.Close() })
			if _, _, err := h.client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
				_ = h.client.Close()
			}
			late.Stop()
		}
	}
}

// At is where it was logged into: HOST:PORT.
func (h *Host) At() string { return h.at }

// Gone is closed when the connection has ended.
func (h *Host) Gone() <-chan struct{} { return h.gone }

// Close ends the connection.
func (h *Host) Close() {
	_ = h.client.Close() // it may have ended already
	<-h.gone
}
