package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

// head is the line before a listing with -v.
func (o listing) head(now time.Time, records int) {
	if o.on {
		fmt.Fprintf(o.w, "last_update_time=%s, records=%d\n", now.Format("2006-01-02T15:04:05"), records)
	}
}

// listing is where a listing goes, and whether it has a head.
type listing struct {
	w  io.Writer
	on bool
}

// siteConfig is the part of scontrol that shows, saves and rereads the settings.
type siteConfig struct{ *session }

// config makes a verb of a method of siteConfig.
func config(run func(s siteConfig, ctx context.Context, args []string) int) verb {
	return func(s *session, ctx context.Context, args []string) int { return run(siteConfig{s}, ctx, args) }
}

// settings are the server's settings by Slurm's names.
func (s siteConfig) settings(ctx context.Context) (map[string]string, *client.Cluster, error) {
	c, err := s.client()
	if err != nil {
		return nil, nil, err
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	set := map[string]string{
		"ClusterName": info.Name, "SLURM_VERSION": cmp.Or(info.SlurmVersion, cmd.Version),
		"BOOT_TIME":        report.TimeText(info.Started, "Unknown"),
		"SlurmctldHost[0]": info.Server,
	}
	for k, v := range info.Settings {
		set[k] = v
	}
	return set, info, nil
}

// showConfig prints the server's settings in Slurm's layout.
func (s siteConfig) showConfig(ctx context.Context, _ []string) int {
	set, info, err := s.settings(ctx)
	if err != nil {
		return s.w.LoadFailed("slurm_load_ctl_conf error", err)
	}
	fmt.Fprintf(s.w.Out, "Configuration data as of %s\n%s", s.w.Now().Format("2006-01-02T15:04:05"),
		report.ShowConfig(set))
	fmt.Fprintf(s.w.Out, "\nSlurmctld(primary) at %s is UP\n", info.Server)
	return 0
}

// reconfigure has the server read its files again.
func (s siteConfig) reconfigure(ctx context.Context, _ []string) int {
	c, err := s.client()
	var out *client.Reconfigured
	if err == nil {
		out, err = c.Reconfigure(ctx, &client.Reconfigure{})
	}
	if err == nil {
		for i := range out.Restart {
			r := &out.Restart[i]
			s.w.Hint(fmt.Sprintf("%s: %v is in force until the server is restarted; the file says %v", r.Name, r.Was, r.Is))
		}
		return 0
	}
	faults := core.FaultsOf(err)
	ofSite := func(f core.Fault) bool { return strings.Contains(f.Path, ".conf:") } // FILE:LINE of a site's files
	if !slices.ContainsFunc(faults, ofSite) {
		fmt.Fprintf(s.w.Err, "slurm_reconfigure error: %s\n", slurm.ErrorTexts(err))
		return slurm.ExitError
	}
	for _, f := range faults {
		text := f.Message
		if key, ok := strings.CutPrefix(text, "unrecognized key: "); ok {
			text = "_parse_next_key: Parsing error at unrecognized key: " + key
		}
		s.w.Errorf("%s", text)
		file, line, _ := strings.Cut(f.Path, ":")
		s.w.Errorf("Parse error in file %s line %s", file, line)
	}
	fmt.Fprintln(s.w.Err, "scontrol: fatal: Unable to process configuration file")
	return slurm.ExitError
}

// configGroups are the banners of a written file with their keys; all other keys are under OTHER.
var configGroups = []struct{ name, keys string }{
	{"CONTROL", "ClusterName SlurmUser SlurmctldHost[0] SlurmctldPort SlurmdPort SlurmdUser"},
	{"LOGGING & OTHER PATHS", "SlurmctldLogFile SlurmdLogFile SlurmdPidFile SlurmdSpoolDir SlurmSchedLogFile " +
		"SlurmctldPidFile StateSaveLocation"},
	{"ACCOUNTING", "AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost AccountingStoragePort " +
		"AccountingStorageType AccountingStorageUser AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType " +
		"AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType ExtSensorsType ExtSensorsFreq " +
		"JobAcctGatherFrequency JobAcctGatherType"},
	{"SCHEDULING & ALLOCATION", "PreemptMode PreemptType PreemptExemptTime PriorityType SchedulerParameters " +
		"SchedulerTimeSlice SchedulerType SelectType SelectTypeParameters SlurmSchedLogLevel"},
	{"TOPOLOGY", "TopologyPlugin"},
	{"TIMERS", "BatchStartTimeout CompleteWait EpilogMsgTime GetEnvTimeout InactiveLimit KillWait MinJobAge " +
		"SlurmctldTimeout SlurmdTimeout WaitTime"},
	{"POWER", "ResumeProgram ResumeRate ResumeTimeout SuspendExcNodes SuspendExcParts SuspendProgram SuspendRate " +
		"SuspendTime SuspendTimeout"},
	{"DEBUG", "DebugFlags SlurmctldDebug SlurmdDebug"},
	{"EPILOG & PROLOG", "Epilog Prolog SrunEpilog SrunProlog TaskEpilog TaskProlog"},
	{"PROCESS TRACKING", "ProctrackType"},
	{"RESOURCE CONFINEMENT", "TaskPlugin TaskPluginParam"},
	{"OTHER", ""},
}

// notWritten are lines of show config that are no settings.
var notWritten = []string{"BOOT_TIME", "HASH_VAL", "MULTIPLE_SLURMD", "NEXT_JOB_ID", "SLURM_CONF", "SLURM_VERSION"}

// writeConfig saves the settings as a slurm.conf, with the nodes and partitions as they are now.
func (s siteConfig) writeConfig(ctx context.Context, args []string) int {
	if len(args) > 1 {
		fmt.Fprintln(s.w.Err, "too many arguments for keyword:write")
		return slurm.ExitError
	}
	set, info, err := s.settings(ctx)
	if err != nil {
		return s.w.LoadFailed("slurm_load_ctl_conf error", err)
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return s.w.LoadFailed("slurm_load_node error", err)
	}
	name := set["SLURM_CONF"]
	if len(args) > 0 {
		name = args[0]
	}
	if name == "" {
		s.w.Errorf("the server was started without a slurm.conf; name a file: scontrol write config FILE")
		return slurm.ExitError
	}
	if !strings.HasPrefix(name, "/") {
		name = s.w.Dir + "/" + name
	}
	now := s.w.Now().Format("2006-01-02T15:04:05")
	name += "." + now
	if err := os.WriteFile(name, []byte(configText(now, set, nodes, info.Partitions)), 0o644); err != nil {
		s.w.Errorf("Could not open %s: %v", name, err)
		return slurm.ExitError
	}
	fmt.Fprintf(s.w.Out, "Slurm config saved to %s\n", name)
	return 0
}

// configText is a slurm.conf.
func configText(now string, set map[string]string, nodes []client.Node, parts []core.Partition) string {
	var b strings.Builder
	head := strings.Repeat("#", 56)
	fmt.Fprintf(&b, "%s\n#  Configuration file for Slurm - %s  #\n%s\n#\n#\n#\n", head, now, head)
	banner := func(name string) {
		line := strings.Repeat("#", 48)
		left := (46 - len(name)) / 2
		fmt.Fprintf(&b, "%s\n#%*s%s%*s#\n%s\n", line, left, "", name, 46-left-len(name), "", line)
	}
	values := report.ConfigValues(set)
	var grouped []string
	for _, g := range configGroups {
		grouped = append(grouped, strings.Fields(g.keys)...)
	}
	for _, g := range configGroups {
		banner(g.name)
		mine := strings.Fields(g.keys)
		for i := range values {
			key := values[i].Key.Name
			switch {
			case slices.Contains(notWritten, key):
			case slices.Contains(mine, key) || g.name == "OTHER" && !slices.Contains(grouped, key):
				writePair(&b, &values[i])
			}
		}
		b.WriteString("#\n")
	}
	banner("NODES")
	for i := range nodes {
		b.WriteString(nodeLine(&nodes[i]))
	}
	b.WriteString("#\n")
	banner("PARTITIONS")
	for i := range parts {
		b.WriteString(partitionLine(&parts[i]))
	}
	return b.String()
}

// writePair writes KEY=VALUE, and a key without a value as a comment.
func writePair(b *strings.Builder, v *report.ConfigValue) {
	key, value := v.Key.Name, v.Key.Bare(v.Text)
	if name, ok := strings.CutPrefix(key, "SlurmctldHost["); ok && name != "" {
		key = "SlurmctldHost"
	}
	switch {
	case value == "":
		fmt.Fprintf(b, "#%s=\n", key)
		return
	case key == "SlurmUser" || key == "SlurmdUser":
		value, _, _ = strings.Cut(value, "(")
	case strings.ContainsAny(value, " #"):
		value = strconv.Quote(value)
	}
	fmt.Fprintf(b, "%s=%s\n", key, value)
}

func nodeLine(n *client.Node) string {
	h := &n.Hardware
	out := fmt.Sprintf("NodeName=%s", n.Name)
	if n.Host.Hostname != "" {
		out += " NodeHostName=" + n.Host.Hostname
	}
	if n.Host.Addr != "" {
		out += " NodeAddr=" + n.Host.Addr
	}
	out += fmt.Sprintf(" Sockets=%d CoresPerSocket=%d ThreadsPerCore=%d", max(1, h.Sockets), max(1, h.Cores),
		max(1, h.Threads))
	if g := report.GresText(h.Gres); g != "" {
		out += " Gres=" + g
	}
	out += fmt.Sprintf(" RealMemory=%d", slurm.InMiB(h.Memory))
	if len(n.Features) > 0 {
		out += " Feature=" + strings.Join(n.Features, ",")
	}
	if n.Weight > 1 {
		out += fmt.Sprintf(" Weight=%d", n.Weight)
	}
	if n.Cloud {
		out += " State=CLOUD"
	}
	return out + "\n"
}

// partitionLine is a partition with all that is not the default.
func partitionLine(p *core.Partition) string {
	out := "PartitionName=" + string(p.Name)
	for _, w := range report.PartitionPairs(p) {
		out += " " + w
	}
	return out + "\n"
}

// write saves the settings or a job's script.
func (s siteConfig) write(ctx context.Context, args []string) int {
	word := ""
	if len(args) > 0 {
		word = strings.ToLower(args[0])
	}
	switch {
	case word == "":
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:write")
		return slurm.ExitError
	case strings.HasPrefix("config", word):
		return s.writeConfig(ctx, args[1:])
	case strings.HasPrefix("batch_script", word):
		return jobVerbs(s).writeScript(ctx, args[1:])
	}
	fmt.Fprintf(s.w.Err, "invalid write argument:%s\n", args[0])
	return slurm.ExitError
}
