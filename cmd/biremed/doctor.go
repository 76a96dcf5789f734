package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/disk"
	"bireme.dev/bireme/internal/doctor"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/store/open"
)

func newDoctorCommand() *cobra.Command {
	var f configFlags
	var asJSON, thorough bool
	agentDir := installed.agentDir
	c := &cobra.Command{
		Use: "doctor [--thorough] [--json]", Short: "check the server, its data and its nodes, and say what to do",
		Args: noOperands,
		Long: `Look at this host's server, running or stopped: settings, database, sealing keys, certificates, disk, clocks,
and at the nodes it knows; on a node, at its agent. Every finding that is not well says what to do.
--thorough reads every page of an SQLite database. It changes nothing.

Exit status: 0 all is well or will do for now, 1 a part does not work, 2 the settings have faults.`,
		RunE: func(c *cobra.Command, _ []string) error {
			e := &examination{now: time.Now(), thorough: thorough}
			_, serverErr := os.Stat(f.path())
			onServer := serverErr == nil || f.dir != "" || len(f.set) > 0
			if onServer {
				cfg, err := f.load()
				if err != nil {
					return err
				}
				e.Fine("settings", "no fault in %s", cmp.Or(f.path(), "the defaults and the options"))
				e.server(c.Context(), cfg)
			}
			if _, err := os.Stat(agentDir); err == nil {
				e.agent(c.Context(), agentDir)
			} else if !onServer {
				return core.Errorf(core.NotFound, "this host has neither a server's settings (%s) nor an agent's folder (%s): "+
					"name them with --config, --dir or --agent-dir", defaultConfig, agentDir)
			}
			if err := e.Write(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if e.Worst() == doctor.Fail {
				return core.Errorf(core.Unavailable, "something does not work: see above")
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&thorough, "thorough", false, "read every page of the database")
	c.Flags().StringVar(&agentDir, "agent-dir", agentDir, "`folder` of this host's agent")
	return c
}

// examination gathers facts for a report.
type examination struct {
	doctor.Report
	now      time.Time
	thorough bool
}

func (e *examination) server(ctx context.Context, cfg *config.Config) {
	e.store(ctx, cfg)
	e.authority(cfg)
	if free, ok := disk.Free(cfg.Dir); ok {
		e.Disk(cfg.Dir, free, int64(cfg.Limits.MinFreeDisk))
	}
	if !listening(cfg.Socket()) {
		e.Error("server", fmt.Errorf("nobody listens on %s", cfg.Socket()),
			"start it: systemctl start biremed-server; its log: journalctl -u biremed-server")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c, err := client.New(client.Settings{Servers: []string{"unix:" + cfg.Socket()}})
	if err != nil {
		e.Error("server", err, "")
		return
	}
	about, err := c.Cluster(ctx)
	if err != nil {
		e.Error("server", err, "its log: journalctl -u biremed-server")
		return
	}
	e.Server(about, version)
	nodes, err := c.Nodes(ctx)
	if err != nil {
		e.Error("nodes", err, "")
		return
	}
	e.Nodes(nodes.Nodes, about.Version, e.now)
}

func (e *examination) store(ctx context.Context, cfg *config.Config) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour) // a thorough look at a large file
	defer cancel()
	facts, faults, err := open.Inspect(ctx, cfg.Store(), e.thorough)
	if errors.Is(err, os.ErrNotExist) {
		e.Error("store", err, "has a server run with these settings? If the file was lost: biremed restore")
		return
	}
	if err != nil {
		e.Error("store", err, "is the database running, and is server.store right?")
		return
	}
	s := doctor.Store{
		Name: "PostgreSQL", Schema: facts.Schema, Known: facts.Known, Oldest: facts.Oldest,
		Seq: facts.Seq, NextJob: facts.NextJob,
		Holder: facts.Holder, Left: time.Duration(facts.Left) * time.Microsecond, Clock: time.UnixMicro(facts.Now),
		Read: time.Now(), Faults: faults,
	}
	if file, ok := open.File(cfg.Store()); ok {
		s.Name = file
	} else {
		s.Shared = true
	}
	e.Store(s)
	e.sealing(cfg, facts.CA)
}

// sealing finds out whether the keys open what lies sealed.
func (e *examination) sealing(cfg *config.Config, sealed []byte) {
	const lost = "put the file of keys back from where copies are kept; without it the secrets and the " +
		"certificate authority cannot be read (docs/backup.md)"
	ring, err := seal.Open(cfg.SealKey(), false)
	switch {
	case err != nil && len(sealed) == 0 && errors.Is(err, os.ErrNotExist):
		return // nothing is sealed yet
	case err != nil:
		e.Error("sealing", err, lost)
		return
	}
	if len(sealed) > 0 {
		if _, err := ring.Unseal(ca.SealedName, sealed); err != nil {
			e.Error("sealing", fmt.Errorf("the keys in %s do not open what the database holds: %w", ring.Path(), err), lost)
			return
		}
	}
	e.Fine("sealing", "%s", ring)
}

func (e *examination) authority(cfg *config.Config) {
	until, err := goodUntil(filepath.Join(cfg.Dir, "ca.pem"))
	switch {
	case errors.Is(err, os.ErrNotExist): // the server writes it when it starts
	case err != nil:
		e.Error("certificate", err, "start the server: it writes the file again")
	default:
		e.Certificate("the cluster's certificate authority", until, e.now, false, "biremed ca rotate")
	}
}

func (e *examination) agent(ctx context.Context, dir string) {
	until, err := goodUntil(filepath.Join(dir, "node.crt"))
	if err != nil {
		e.Error("agent", err, "has this node joined? `bireme token join` on the server's host makes a token for it")
	} else {
		e.Certificate("this node's certificate", until, e.now, true, "start its agent: it renews the certificate")
	}
	if free, ok := disk.Free(dir); ok {
		e.Disk(dir, free, 1<<30)
	}
	socket := filepath.Join(dir, "bireme.sock")
	if dir == installed.agentDir {
		socket = installed.agentSocket
	}
	if _, err := os.Stat(socket); err != nil && dir != installed.agentDir {
		return // an agent offers a socket to its node's users only where it is told to
	}
	if !listening(socket) {
		e.Error("agent", fmt.Errorf("nobody listens on %s", socket), "systemctl start biremed-agent")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := client.New(client.Settings{Servers: []string{"unix:" + socket}})
	if err == nil {
		_, err = c.Cluster(ctx)
	}
	if err != nil {
		e.Error("agent", fmt.Errorf("it runs, and does not reach a server: %w", err), "journalctl -u biremed-agent")
		return
	}
	e.Fine("agent", "runs, and reaches a server")
}

// goodUntil is the end of the first certificate of a PEM file.
func goodUntil(file string) (time.Time, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, fmt.Errorf("%s holds no certificate", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", file, err)
	}
	return cert.NotAfter, nil
}
