package sacctmgr

import (
	"cmp"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// showConfig prints the settings of accounting, those of the server in the place of Slurm's database daemon.
func (s *run) showConfig() int {
	info, err := s.c.Cluster(s.ctx)
	if err != nil {
		return s.failed(err)
	}
	set := func(name, otherwise string) string { return cmp.Or(info.Settings[name], otherwise) }
	version := cmp.Or(info.SlurmVersion, cmd.Version)
	version = version[strings.LastIndexByte(version, ' ')+1:]
	user := set("SlurmUser", "root(0)")
	out := s.w.Out
	line := func(key, value string) { fmt.Fprintf(out, "%-22s = %s\n", key, value) }
	fmt.Fprintf(out, "Configuration data as of %s\n", moment(info.Now))
	fmt.Fprintf(out, "AccountingStorageBackupHost  = (null)\n")
	line("AccountingStorageHost", set("AccountingStorageHost", info.Server))
	fmt.Fprintf(out, "AccountingStorageParameters = (null)\n")
	line("AccountingStoragePass", "(null)")
	line("AccountingStoragePort", set("AccountingStoragePort", "0"))
	line("AccountingStorageType", set("AccountingStorageType", "accounting_storage/slurmdbd"))
	line("AccountingStorageUser", "N/A")
	line("AuthType", set("AuthType", "auth/munge"))
	line("MessageTimeout", set("MessageTimeout", "10 sec"))
	line("PluginDir", set("PluginDir", "(null)"))
	line("PrivateData", set("PrivateData", "none"))
	line("SlurmUserId", user)
	line("SLURM_CONF", set("SLURM_CONF", "(null)"))
	line("SLURM_VERSION", version)
	line("TCPTimeout", set("TCPTimeout", "2 sec"))
	line("TrackWCKey", set("TrackWCKey", "No"))
	fmt.Fprint(out, "\nSlurmDBD configuration:\n")
	for _, pair := range [][2]string{
		{"AllowNoDefAcct", "No"},
		{"ArchiveDir", "/tmp"},
		{"ArchiveEvents", "No"},
		{"ArchiveJobs", "No"},
		{"ArchiveResvs", "No"},
		{"ArchiveScript", "(null)"},
		{"ArchiveSteps", "No"},
		{"ArchiveSuspend", "No"},
		{"ArchiveTXN", "No"},
		{"ArchiveUsage", "No"},
		{"AuthAltTypes", set("AuthAltTypes", "(null)")},
		{"AuthAltParameters", "(null)"},
		{"AuthInfo", "(null)"},
		{"AuthType", set("AuthType", "auth/munge")},
		{"BOOT_TIME", moment(info.Started)},
		{"CommitDelay", "No"},
		{"CommunicationParameters", "(null)"},
		{"DbdAddr", info.Server},
		{"DbdBackupHost", "(null)"},
		{"DbdHost", info.Server},
		{"DbdPort", set("AccountingStoragePort", "0")},
		{"DebugFlags", "(null)"},
		{"DebugLevel", "info"},
		{"DebugLevelSyslog", "(null)"},
		{"DefaultQOS", "(null)"},
		{"LogFile", set("SlurmctldLogFile", "(null)")},
		{"MaxQueryTimeRange", "UNLIMITED"},
		{"MessageTimeout", "10 secs"},
		{"Parameters", "(null)"},
		{"PidFile", set("SlurmctldPidFile", "(null)")},
		{"PluginDir", set("PluginDir", "(null)")},
		{"PrivateData", set("PrivateData", "none")},
		{"PurgeEventAfter", "NONE"},
		{"PurgeJobAfter", "NONE"},
		{"PurgeResvAfter", "NONE"},
		{"PurgeStepAfter", "NONE"},
		{"PurgeSuspendAfter", "NONE"},
		{"PurgeTXNAfter", "NONE"},
		{"PurgeUsageAfter", "NONE"},
		{"SLURMDBD_CONF", set("SLURM_CONF", "(null)")},
		{"SLURMDBD_VERSION", version},
		{"SlurmUser", user},
		{"StorageBackupHost", "(null)"},
		{"StorageHost", info.Server},
		{"StorageLoc", "bireme"},
		{"StorageParameters", "(null)"},
		{"StoragePort", "0"},
		{"StorageType", "accounting_storage/" + info.Store},
		{"StorageUser", "(null)"},
		{"TCPTimeout", "2 secs"},
		{"TrackWCKey", set("TrackWCKey", "No")},
		{"TrackSlurmctldDown", "No"},
	} {
		line(pair[0], pair[1])
	}
	return 0
}

// showStats prints how many calls the server answered, and what they took. It has no rollup: reports add up when they
// are asked for.
func (s *run) showStats() int {
	d, err := s.c.Diag(s.ctx)
	if err != nil {
		return s.failed(err)
	}
	stamp := func(t core.Time) string {
		return fmt.Sprintf("%s (%d)", t.Go().Format("Mon Jan 02 15:04:05 2006"), t.Unix())
	}
	out, stars := s.w.Out, strings.Repeat("*", 67)
	fmt.Fprintf(out, "%s\nsacctmgr show stats output at %s\nData since                    %s\n"+
		"All statistics are in microseconds\n%s\n", stars, stamp(d.Now), stamp(d.Since), stars)
	fmt.Fprintf(out, "\nInternal DBD rollup last ran %s\n\tLast cycle:   0\n\tMax cycle:    0\n\tTotal time:   0\n"+
		"\tTotal cycles: 0\n\tMean cycle:   0\n", stamp(d.Since))
	fmt.Fprint(out, "\nRemote Procedure Call statistics by message type\n")
	for i := range d.Calls {
		c := &d.Calls[i]
		m, ok := messages[c.Name]
		if !ok {
			m.name = c.Name
		}
		fmt.Fprintf(out, "\t%-25s(%5d) count:%-6d ave_time:%-6d total_time:%d\n", m.name, m.id, c.Count,
			c.Total/max(1, c.Count), c.Total)
	}
	fmt.Fprint(out, "\nRemote Procedure Call statistics by user\n")
	for i := range d.Users {
		u := &d.Users[i]
		fmt.Fprintf(out, "\t%-20s(%10d) count:%-6d ave_time:%-6d total_time:%d\n", u.Name, u.UID, u.Count,
			u.Total/max(1, u.Count), u.Total)
	}
	return 0
}

// messages are the calls of accounting as Slurm names them.
var messages = map[string]struct {
	name string
	id   int
}{
	"GET /policy":                   {"DBD_GET_ASSOCS", 1410},
	"PUT /policy":                   {"DBD_MODIFY_ASSOCS", 1429},
	"GET /users":                    {"DBD_GET_USERS", 1415},
	"POST /users":                   {"DBD_ADD_USERS", 1406},
	"PATCH /users/{name}":           {"DBD_MODIFY_USERS", 1433},
	"DELETE /users/{name}":          {"DBD_REMOVE_USERS", 1440},
	"DELETE /projects/{project}":    {"DBD_REMOVE_ACCOUNTS", 1435},
	"GET /qos":                      {"DBD_GET_QOS", 1448},
	"PUT /qos/{name}":               {"DBD_ADD_QOS", 1447},
	"DELETE /qos/{name}":            {"DBD_REMOVE_QOS", 1450},
	"GET /cluster":                  {"DBD_GET_CLUSTERS", 1412},
	"GET /jobs":                     {"DBD_GET_JOBS_COND", 1444},
	"GET /usage":                    {"DBD_GET_CLUSTER_USAGE", 1413},
	"GET /audit":                    {"DBD_GET_TXN", 1446},
	"GET /diag":                     {"DBD_GET_STATS", 1488},
	"POST /diag/reset":              {"DBD_CLEAR_STATS", 1489},
	"GET /agent/v1/connect":         {"DBD_NODE_STATE", 1432},
	"GET /api/v1/reservations":      {"DBD_GET_RESVS", 1464},
	"GET /api/v1/outages":           {"DBD_GET_EVENTS", 1471},
	"POST /jobs":                    {"DBD_JOB_START", 1425},
	"GET /whoami":                   {"SLURM_PERSIST_INIT", 6500},
	"GET /ping":                     {"DBD_FINI", 1401},
	"PATCH /jobs/{id}":              {"DBD_MODIFY_JOB", 1462},
	"PUT /projects/{p}/members/{u}": {"DBD_ADD_ASSOCS", 1404},
}

// clear sets figures back.
func (s *run) clear(args []string) int {
	if len(args) == 0 || args[0] == "" || !strings.HasPrefix("stats", strings.ToLower(args[0])) {
		fmt.Fprint(s.w.Err, "No valid entity in clear command\nInput line must include \"Stats\"\n")
		return slurm.ExitError
	}
	if err := s.c.ResetDiag(s.ctx); err != nil {
		return s.failed(err)
	}
	return 0
}

// archive is Slurm's way of taking rows out of its database into files of SQL, and back.
func (s *run) archive(args []string) int {
	word := ""
	if len(args) > 0 {
		word = strings.ToLower(args[0])
	}
	switch {
	case word != "" && strings.HasPrefix("dump", word):
		s.w.Errorf("archive dump: records are not archived as SQL; the setting retention says how long they stay")
	case word != "" && strings.HasPrefix("load", word):
		s.w.Errorf("archive load: archives are SQL of Slurm's own database and cannot be loaded here")
	default:
		fmt.Fprint(s.w.Err, "No valid entity in archive command\nInput line must include, \"Dump\", or \"load\"\n")
	}
	return slurm.ExitError
}
