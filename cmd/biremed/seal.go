package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server"
	"bireme.dev/bireme/internal/server/seal"
)

func newSealCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "seal", Short: "manage the keys that seal secrets in the store", Args: noSuchCommand,
		RunE: showHelp,
	}
	var status, add, rotate configFlags
	statusCmd := &cobra.Command{
		Use: "status [--config FILE]", Short: "show the keys and how far a rotation is", Args: noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := status.load()
			if err != nil {
				return err
			}
			return sealStatus(c.Context(), c.OutOrStdout(), cfg)
		},
	}
	addCmd := &cobra.Command{
		Use: "new-key [--config FILE]", Short: "put a new key into the file, for the next rotation", Args: noOperands,
		Long: `Put a new key into the file of keys. Nothing is sealed with it until 'biremed seal rotate' is run: where
several servers have files of their own, copy this one to all of them in between.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := add.load()
			if err != nil {
				return err
			}
			ring, err := seal.Open(cfg.SealKey(), false)
			if err != nil {
				return err
			}
			id, err := ring.Add()
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "key %d is in %s; copy the file to every server, then run: biremed seal "+
					"rotate\n", id, ring.Path())
			}
			return err
		},
	}
	rotateCmd := &cobra.Command{
		Use: "rotate [--config FILE]", Short: "seal everything in the store with a new key, and drop the old one",
		Args: noOperands,
		Long: `Seal the certificate authority, SSH keys, scripts, environments and files in the store with a new key,
and remove the old key from the file when nothing is sealed with it any more. A server that runs does it
beside its work; without one it is done here. It may be interrupted at any moment: the server goes on
with it, or this command does when it is run again.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := rotate.load()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if !listening(cfg.Socket()) {
				return rotateOffline(ctx, c, cfg)
			}
			return rotateRunning(ctx, c.OutOrStdout(), cfg)
		},
	}
	status.add(statusCmd)
	add.add(addCmd)
	rotate.add(rotateCmd)
	c.AddCommand(statusCmd, addCmd, rotateCmd)
	return c
}

// listening reports whether a server is at its socket.
func listening(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func sealStatus(ctx context.Context, w io.Writer, cfg *config.Config) error {
	if !listening(cfg.Socket()) {
		ring, err := seal.Open(cfg.SealKey(), false)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s (no server listens on %s)\n", ring, cfg.Socket())
		return nil
	}
	c, err := client.New(client.Settings{Servers: []string{"unix:" + cfg.Socket()}, Timeout: client.DefaultTimeout})
	if err != nil {
		return err
	}
	s, err := c.Seals(ctx)
	if err != nil {
		return err
	}
	line := sealLine(s)
	// The server reads the file again when a rotation begins: a key that was added since is in the file only.
	if ring, err := seal.Open(cfg.SealKey(), false); err == nil && s.Done && s.Error == "" {
		if next := slices.Max(ring.IDs()); int64(next) > s.Key {
			line += fmt.Sprintf("; key %d is in the file and is used from the next `biremed seal rotate` on", next)
		}
	}
	fmt.Fprintln(w, line)
	return nil
}

func sealLine(s *client.Seals) string {
	var ids []string
	for _, id := range s.Keys {
		ids = append(ids, fmt.Sprint(id))
	}
	line := fmt.Sprintf("keys %s in %s; new secrets are sealed with key %d", strings.Join(ids, ", "), s.File, s.Key)
	switch {
	case s.Error != "":
		return line + fmt.Sprintf("; the rotation stopped at %d %% and is tried again every minute: %s", s.Percent, s.Error)
	case s.Done:
		return line + ", and so is everything else"
	default:
		return line + fmt.Sprintf("; the rotation is at %d %%", s.Percent)
	}
}

// rotateRunning has the server do it, and follows it.
func rotateRunning(ctx context.Context, w io.Writer, cfg *config.Config) error {
	c, err := client.New(client.Settings{Servers: []string{"unix:" + cfg.Socket()}, Timeout: client.DefaultTimeout})
	if err != nil {
		return err
	}
	s, err := c.RotateSeals(ctx)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for err == nil && !s.Done {
		if line := sealLine(s); line != last {
			fmt.Fprintln(w, line)
			last = line
		}
		if s.Error != "" {
			return core.Errorf(core.Unavailable, "the rotation makes no progress; the server keeps trying: %s", s.Error)
		}
		select {
		case <-ctx.Done():
			return core.Errorf(core.Unavailable, "the server continues the rotation; `biremed seal status` shows its progress")
		case <-tick.C:
		}
		s, err = c.Seals(ctx)
	}
	if err == nil {
		fmt.Fprintln(w, sealLine(s))
	}
	return err
}

func rotateOffline(ctx context.Context, c *cobra.Command, cfg *config.Config) (err error) {
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	if _, err := seal.Open(cfg.SealKey(), false); err != nil {
		return err // before a store is made in a directory that was named by mistake
	}
	lock, err := holdStore(cfg)
	if err != nil {
		return err
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Release()) }()
	}
	file, err := server.RotateSeals(ctx, cfg, log)
	if err != nil {
		return err
	}
	ring, err := seal.Open(file, false)
	if err == nil {
		fmt.Fprintf(c.OutOrStdout(), "everything is sealed with key %d, the only one in %s\n", ring.Current(), file)
	}
	return err
}
