package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/nice"
	"bireme.dev/bireme/internal/server"
	"bireme.dev/bireme/internal/slurm/conf"
)

// defaultConfig is where the settings are looked for when no file is named.
const defaultConfig = "/etc/bireme/config.yml"

// configFlags name the settings.
type configFlags struct {
	file string
	dir  string
	set  []string
	site string // a slurm.conf
	// notes is where keys of the slurm.conf that have no effect are told; nil: nowhere
	notes io.Writer
}

func (f *configFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "config", "c", "", "config `file` (default "+defaultConfig+", if it is there)")
	c.Flags().StringVar(&f.site, "slurm-conf", "", "a site's slurm.conf `file`: what it says lies under the config "+
		"file; bireme reconfigure and scontrol reconfigure read it again")
	c.Flags().StringVar(&f.dir, "dir", "", "`folder` of what the server keeps")
	c.Flags().StringArrayVar(&f.set, "set", nil, "override a setting: `KEY=VALUE`, e.g. timers.fence=5m")
}

// path is the settings file that is read; empty: none.
func (f *configFlags) path() string {
	if f.file != "" {
		return f.file
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return defaultConfig
	}
	return ""
}

func (f *configFlags) load() (*config.Config, error) {
	file := f.path()
	set := f.set
	if f.dir != "" {
		set = append([]string{"dir=" + f.dir}, set...)
	}
	if f.site == "" {
		return config.Load(file, set...)
	}
	base, err := f.siteSettings()
	if err != nil {
		return nil, err
	}
	var text []byte
	if file != "" {
		if text, err = os.ReadFile(file); err != nil {
			return nil, core.Errorf(core.NotFound, "cannot read the settings: %v", err)
		}
	}
	return config.ParseOver(base, file, text, set...)
}

// siteSettings are the settings that a slurm.conf makes of the defaults; the config file is laid over them.
func (f *configFlags) siteSettings() (*config.Config, error) {
	site, err := conf.Read(f.site)
	if err != nil {
		return nil, core.Errorf(core.NotFound, "--slurm-conf: %v", err)
	}
	base := config.Default()
	notes, err := site.Apply(base)
	for _, n := range notes {
		if f.notes != nil {
			fmt.Fprintln(f.notes, "note:", n)
		}
	}
	return base, err
}

func newServerCommand() *cobra.Command {
	var f configFlags
	var listen, agents, level, record string
	c := &cobra.Command{
		Use:   "server [--config FILE] [--set KEY=VALUE]...",
		Short: "run the control plane",
		Args:  noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("listen") {
				f.set = append(f.set, "server.listen="+listen)
			}
			if c.Flags().Changed("agent-listen") {
				f.set = append(f.set, "server.agent_listen="+agents)
			}
			cfg, err := f.load()
			if err != nil {
				return err
			}
			var lv slog.Level
			if err := lv.UnmarshalText([]byte(level)); err != nil {
				return core.Errorf(core.Invalid, "--log-level %q: expected debug, info, warn or error", level)
			}
			log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: lv}))
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			o := server.Options{
				Config: cfg, Version: version, Log: log, Reload: f.load, Hangup: hangup,
				Ready: func(i server.Info) {
					log.Info("ready", "version", version, "api", i.API, "agents", i.Agents, "socket", i.Socket, "ca", i.CAFile)
				},
			}
			if record != "" { // it holds what the database holds: for the administrator only
				rec, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				if err != nil {
					return fmt.Errorf("--record: %w", err)
				}
				defer rec.Close()
				o.Record = rec
			}
			dir, err := holdDir(cfg.Dir)
			if err != nil {
				return err
			}
			database, err := holdStore(cfg)
			if err != nil {
				return errors.Join(err, release(dir))
			}
			raise(cfg, log)
			return errors.Join(server.Run(ctx, o), release(database, dir))
		},
	}
	f.add(c)
	c.Flags().StringVar(&listen, "listen", "", "`HOST:PORT` of the HTTP API, with TLS by the cluster's CA")
	c.Flags().StringVar(&agents, "agent-listen", "", "`HOST:PORT` agents dial, with TLS")
	c.Flags().StringVar(&record, "record", "", "append every input with its time to `FILE`, for bireme simulate --replay")
	c.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	c.AddCommand(newStepDownCommand())
	return c
}

func newStepDownCommand() *cobra.Command {
	var f configFlags
	c := &cobra.Command{
		Use: "stepdown [--config FILE]", Short: "have the server that leads let another one lead", Args: noOperands,
		Long: `Ask the server of the settings, and by it the one that leads, to give the lead to another server of the
cluster: before it is stopped for an upgrade, say. Jobs go on; commands that come meanwhile wait a moment.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := f.client()
			if err != nil {
				return err
			}
			return cl.StepDown(c.Context())
		},
	}
	f.add(c)
	return c
}

// raise sets the nice value of the server. One that may not continues without.
func raise(cfg *config.Config, log *slog.Logger) {
	err := nice.Raise(cfg.Server.Nice)
	switch {
	case errors.Is(err, os.ErrPermission):
		log.Debug("server.nice needs root or CAP_SYS_NICE", "err", err)
	case err != nil:
		log.Warn("server.nice", "err", err)
	}
}

func newConfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "check and show the settings", Args: noSuchCommand, RunE: showHelp,
	}
	var check, show configFlags
	checkCmd := &cobra.Command{
		Use: "check", Short: "check the settings and list every error with its line", Args: noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			check.notes = c.ErrOrStderr()
			cfg, err := check.load()
			if err != nil {
				return err
			}
			if err := judge(c.Context(), cfg, c.ErrOrStderr()); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "ok")
			return nil
		},
	}
	showCmd := &cobra.Command{
		Use: "show", Short: "show the effective settings and where each came from", Args: noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := show.load()
			if err != nil {
				return err
			}
			return cfg.Show(c.OutOrStdout())
		},
	}
	check.add(checkCmd)
	show.add(showCmd)
	c.AddCommand(checkCmd, showCmd)
	return c
}

// judge holds settings against what their cluster holds, if its server answers; where none does, that is told.
func judge(ctx context.Context, cfg *config.Config, notes io.Writer) error {
	faults, told := cfg.Judge(ask(ctx, cfg))
	for _, n := range told {
		fmt.Fprintln(notes, "note:", n)
	}
	if len(faults) == 0 {
		return nil
	}
	e := core.Errorf(core.Invalid, "the settings conflict with the state of the server on %s", cfg.Socket())
	e.Faults = faults
	return e
}

// ask finds out from the server of some settings what is there.
func ask(ctx context.Context, cfg *config.Config) (k config.Known) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := client.New(client.Settings{Servers: []string{"unix:" + cfg.Socket()}})
	if err != nil {
		return k
	}
	qos, err := c.QOS(ctx)
	if err != nil {
		return k
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return k
	}
	k.QOS = func(name core.QOSName) bool {
		return slices.ContainsFunc(qos.QOS, func(q core.QOS) bool { return q.Name == name })
	}
	k.Node = func(name core.NodeName) bool {
		return slices.ContainsFunc(nodes.Nodes, func(n client.Node) bool { return n.Name == name })
	}
	return k
}
