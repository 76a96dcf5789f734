package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
)

// Version is the Slurm version that the commands answer to where nobody says otherwise.
const Version = "22.05.8"

// versionPatience is how long --version waits for the cluster: whoever asks may have none.
const versionPatience = time.Second

// PrintVersion answers --version: with BIREME_SLURM_VERSION, else with what the cluster imitates.
func (w *World) PrintVersion() int {
	version := w.Getenv("BIREME_SLURM_VERSION")
	if version == "" {
		version = Version
		ctx, stop := context.WithTimeout(context.Background(), versionPatience)
		defer stop()
		if c, err := w.Client(); err == nil {
			if info, err := c.Cluster(ctx); err == nil && info.SlurmVersion != "" {
				version = info.SlurmVersion
			}
		}
	}
	if !strings.Contains(version, " ") { // the packages of Debian and its kin have another name before it
		version = "slurm " + version
	}
	fmt.Fprintln(w.Out, version)
	return 0
}

// Among reports whether the cluster is one of those that --clusters names, and gives its name if so; without --clusters
// it asks nobody and gives none.
func (w *World) Among(ctx context.Context, c *client.Client, r *slurm.Request) (name string, err error) {
	if len(r.Ask.Clusters) == 0 {
		return "", nil
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(r.Ask.Clusters, func(n string) bool { return n == info.Name || strings.EqualFold(n, "all") }) {
		return info.Name, nil
	}
	complaint := r.Fail(slurm.ExitError, "No cluster '%s' known by database.", strings.Join(r.Ask.Clusters, ","))
	complaint.Hint = "this is cluster " + info.Name + ", and it knows no other"
	return "", complaint
}

// readsClusters are the commands that take SLURM_CLUSTERS in the place of -M.
var readsClusters = []string{"squeue", "sinfo", "sprio", "sdiag", "scontrol"}

// OnlyOurs checks the clusters that -M names, or SLURM_CLUSTERS where the command reads it: it complains of one that is
// not ours, and ok is false. name is ours if one was named.
func (w *World) OnlyOurs(ctx context.Context, c *client.Client, names []string) (name string, ok bool) {
	from := "--cluster"
	if len(names) == 0 && slices.Contains(readsClusters, w.Name) {
		names, from = SplitList(w.Getenv("SLURM_CLUSTERS")), "SLURM_CLUSTERS"
	}
	if len(names) == 0 {
		return "", true
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		w.LoadFailed("slurm_load_ctl_conf error", err)
		return "", false
	}
	for _, n := range names {
		if n != info.Name && !strings.EqualFold(n, "all") {
			w.Errorf("No cluster '%s' known by database.", n)
			w.Errorf("'%s' can't be reached now, or it is an invalid entry for %s.  Use 'sacctmgr list clusters' to "+
				"see available clusters.", strings.Join(names, ","), from)
			return "", false
		}
	}
	return info.Name, true
}
