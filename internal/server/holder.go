package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// holder names this server to the lease. A holder takes its own lease over at once, so that a restart after a crash
// need not wait for the lease to expire; two servers must therefore never have one name. It holds a random word that is
// kept in the server's directory, which one process at a time works in.
func holder(cfg *config.Config) (string, error) {
	name := cfg.Server.ID
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		name = host
	}
	path := filepath.Join(cfg.Dir, "instance")
	word, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails
		word = []byte(hex.EncodeToString(raw[:]))
		err = os.WriteFile(path, append(word, '\n'), 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("the name of this server: %w", err)
	}
	return name + ":" + cfg.Dir + ":" + strings.TrimSpace(string(word)), nil
}

// checkFree finds out whether anybody listens where this server is going to, before it takes the lead from anybody.
func checkFree(cfg *config.Config) error {
	if c, err := net.DialTimeout("unix", cfg.Socket(), time.Second); err == nil {
		return errors.Join(core.Errorf(core.Conflict, "a server listens on %s already; it was left alone",
			cfg.Socket()), c.Close())
	}
	for _, a := range [][2]string{{"server.listen", cfg.Server.Listen}, {"server.agent_listen", cfg.Server.AgentListen}} {
		if a[1] == "" {
			continue
		}
		l, err := net.Listen("tcp", a[1])
		if err != nil {
			return core.Errorf(core.Unavailable, "%s: %v", a[0], err)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// bootTime is the clock of leases: the time since the machine started, its suspension included.
func bootTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // fails for no clock that Linux has
	return time.Duration(ts.Nano())
}
