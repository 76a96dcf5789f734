package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
)

// maxSaid bounds what is kept of a host's words.
const maxSaid = 64 << 10

// run has the host execute a script, as root where it can be, with in as its input.
func (h *Host) run(ctx context.Context, script string, in io.Reader) (string, error) {
	s, err := h.client.NewSession()
	if err != nil {
		return "", core.Errorf(core.Unavailable, "%s: %v", h.at, err)
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	var out, said limited
	s.Stdin, s.Stdout, s.Stderr = in, &out, &said
	err = s.Run(asRoot(script))
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w", h.at, context.Cause(ctx))
	case errors.As(err, &exit):
		why := lastLine(said.String())
		if why == "" {
			why = lastLine(out.String())
		}
		if why == "" {
			why = fmt.Sprintf("exit status %d", exit.ExitStatus())
		}
		return "", &core.Error{Code: core.Unavailable, Reason: "host_failed", Message: h.at + ": " + why}
	}
	return "", core.Errorf(core.Unavailable, "%s: %v", h.at, err)
}

// asRoot wraps a script in a command line that any login shell passes on unharmed.
func asRoot(script string) string {
	return `exec sh -c 'if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then exec sudo -n sh -c "$0"; fi; exec ` +
		`sh -c "$0"' ` + quote(script)
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// maxLine bounds what is told of a host's words: it is in the state, and shown.
const maxLine = 300

// lastLine is the last that a host said, fit to be shown: what would steer a terminal is not.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(lines[len(lines)-1], "?"))
	if line = strings.TrimSpace(line); len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return line
}

// vars writes assignments for the beginning of a script.
func vars(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(k + "=" + quote(m[k]) + "\n")
	}
	return b.String()
}

// limited keeps the first of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxSaid - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
