package ssh

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bireme.dev/bireme/internal/core"
)

// HostKeys says which host keys are taken.
type HostKeys struct {
	Any  bool   // whatever is shown
	File string // only those of this file, in the form of known_hosts; empty: the first one that is shown is kept
}

// judge computes the kinds of key to ask a host for, and what to say to the one it shows.
func (p HostKeys) judge(at, known string) (algorithms []string, check func(ssh.PublicKey) error, err error) {
	switch {
	case p.Any:
		return nil, func(ssh.PublicKey) error { return nil }, nil
	case p.File == "":
		if known == "" {
			return nil, func(ssh.PublicKey) error { return nil }, nil
		}
		return algorithmsOf(known), func(key ssh.PublicKey) error {
			if KeyLine(key) == known {
				return nil
			}
			return &core.Error{Code: core.Denied, Reason: "host_key_changed", Message: fmt.Sprintf(
				"the host key of %s changed: it was %s and is %s; if the host was made anew, say so with `bireme fleet trust`",
				at, fingerprintOf(known), Fingerprint(key))}
		}, nil
	}
	lines, err := p.known(at)
	if err != nil {
		return nil, nil, err
	}
	if len(lines) == 0 {
		return nil, nil, &core.Error{Code: core.Denied, Reason: "host_key_unknown", Message: fmt.Sprintf(
			"the host key of %s is not known: %s has none, and fleets.host_keys is strict", at, p.File)}
	}
	for _, l := range lines {
		algorithms = append(algorithms, algorithmsOf(l)...)
	}
	return algorithms, func(key ssh.PublicKey) error {
		if slices.Contains(lines, KeyLine(key)) {
			return nil
		}
		return &core.Error{Code: core.Denied, Reason: "host_key_changed", Message: fmt.Sprintf(
			"the host key of %s is %s, and %s has another", at, Fingerprint(key), p.File)}
	}, nil
}

// known returns the keys that the file has for a host.
func (p HostKeys) known(at string) ([]string, error) {
	check, err := knownhosts.New(p.File)
	if err != nil {
		return nil, core.Errorf(core.Unavailable, "fleets.known_hosts: %v", err)
	}
	// A key that nobody has makes it tell which ones there are.
	var want *knownhosts.KeyError
	if err := check(at, &net.TCPAddr{IP: net.IPv4zero, Port: 22}, noKey{}); !errors.As(err, &want) {
		return nil, core.Errorf(core.Unavailable, "%s: %v", at, err)
	}
	var lines []string
	for _, k := range want.Want {
		lines = append(lines, KeyLine(k.Key))
	}
	return lines, nil
}

// noKey is a public key that is none.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

// KeyLine writes a public key as authorized_keys and, after a name, known_hosts have it.
func KeyLine(k ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))) }

func fingerprintOf(line string) string {
	k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return "another"
	}
	return Fingerprint(k)
}

// algorithmsOf asks a host for the kind of key that is known of it: it may have several.
func algorithmsOf(known string) []string {
	kind, _, _ := strings.Cut(known, " ")
	if kind == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{kind}
}
