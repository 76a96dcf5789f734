package sacctmgr

import (
	"slices"
	"strings"
)

// keyword is a word of Slurm's: it may be cut to its first letters, as long as least of them stay.
type keyword struct {
	name  string
	least int
	key   string // what it stands for; empty: its name in lower case
}

// match finds the first keyword of a table that a typed word stands for.
func match(table []keyword, typed string) (key string, ok bool) {
	typed = strings.ToLower(typed)
	for _, k := range table {
		name := strings.ToLower(k.name)
		if typed == name || len(typed) >= k.least && strings.HasPrefix(name, typed) {
			if k.key != "" {
				return k.key, true
			}
			return name, true
		}
	}
	return "", false
}

// associationKeys are what can be set of an association, in the order in which Slurm looks for them.
var associationKeys = []keyword{
	{"FairShare", 1, "fairshare"},
	{"Shares", 1, "fairshare"},
	{"RawShares", 5, "fairshare"},
	{"GrpCPUMins", 7, "grpcpumins"},
	{"GrpCPURunMins", 7, "grpcpurunmins"},
	{"GrpCPUs", 7, "grpcpus"},
	{"GrpJobs", 4, "grpjobs"},
	{"GrpJobsAccrue", 8, "grpjobsaccrue"},
	{"GrpMemory", 4, "grpmemory"},
	{"GrpNodes", 4, "grpnodes"},
	{"GrpSubmitJobs", 4, "grpsubmitjobs"},
	{"GrpTRES", 7, "grptres"},
	{"GrpTRESMins", 8, "grptresmins"},
	{"GrpTRESRunMins", 8, "grptresrunmins"},
	{"GrpWall", 4, "grpwall"},
	{"MaxCPUMinsPerJob", 7, "maxcpumins"},
	{"MaxCPURunMins", 7, "maxcpurunmins"},
	{"MaxCPUsPerJob", 7, "maxcpus"},
	{"MaxJobs", 4, "maxjobs"},
	{"MaxJobsAccrue", 8, "maxjobsaccrue"},
	{"MaxNodesPerJob", 4, "maxnodes"},
	{"MinPrioThreshold", 4, "minpriothreshold"},
	{"MaxSubmitJobs", 4, "maxsubmitjobs"},
	{"MaxTRESPerJob", 7, "maxtres"},
	{"MaxTRESPJ", 9, "maxtres"},
	{"MaxTRESPerNode", 11, "maxtrespernode"},
	{"MaxTRESPN", 9, "maxtrespernode"},
	{"MaxTRESMinsPerJob", 8, "maxtresmins"},
	{"MaxTRESMinsPJ", 13, "maxtresmins"},
	{"MaxTRESRunMins", 8, "maxtresrunmins"},
	{"MaxWallDurationPerJob", 4, "maxwall"},
	{"MaxWallPerJob", 8, "maxwall"},
	{"MaxWallPJ", 9, "maxwall"},
	{"Priority", 2, "priority"},
	{"QosLevel", 1, "qos"},
	{"DefaultQOS", 8, "defaultqos"},
	{"DefQOS", 6, "defaultqos"},
}

// qosKeys are what can be set of a QOS, in the order in which Slurm looks for them.
var qosKeys = []keyword{
	{"Description", 1, "description"},
	{"Flags", 2, "flags"},
	{"GraceTime", 3, "gracetime"},
	{"GrpCPUMins", 7, "grpcpumins"},
	{"GrpCPURunMins", 7, "grpcpurunmins"},
	{"GrpCPUs", 7, "grpcpus"},
	{"GrpJobs", 4, "grpjobs"},
	{"GrpJobsAccrue", 8, "grpjobsaccrue"},
	{"GrpMemory", 4, "grpmemory"},
	{"GrpNodes", 4, "grpnodes"},
	{"GrpSubmitJobs", 4, "grpsubmitjobs"},
	{"GrpTRES", 7, "grptres"},
	{"GrpTRESMins", 8, "grptresmins"},
	{"GrpTRESRunMins", 8, "grptresrunmins"},
	{"GrpWall", 4, "grpwall"},
	{"LimitFactor", 6, "limitfactor"},
	{"MaxCPUMinsPerJob", 7, "maxcpumins"},
	{"MaxCPURunMinsPerUser", 7, "maxcpurunminsperuser"},
	{"MaxCPUsPerJob", 7, "maxcpus"},
	{"MaxCPUsPerUser", 11, "maxcpusperuser"},
	{"MaxCPUsPU", 9, "maxcpusperuser"},
	{"MaxJobsPerUser", 4, "maxjobs"},
	{"MaxJobsPU", 9, "maxjobs"},
	{"MaxJobsPerAccount", 11, "maxjobsperaccount"},
	{"MaxJobsPA", 9, "maxjobsperaccount"},
	{"MaxJobsAccruePerUser", 17, "maxjobsaccrue"},
	{"MaxJobsAccruePU", 15, "maxjobsaccrue"},
	{"MaxJobsAccruePerAccount", 17, "maxjobsaccrueperaccount"},
	{"MaxJobsAccruePA", 15, "maxjobsaccrueperaccount"},
	{"MaxNodesPerJob", 4, "maxnodes"},
	{"MaxNodesPerUser", 8, "maxnodesperuser"},
	{"MaxNodesPU", 10, "maxnodesperuser"},
	{"MaxSubmitJobsPerUser", 4, "maxsubmitjobs"},
	{"MaxSubmitJobsPU", 15, "maxsubmitjobs"},
	{"MaxSubmitPerUser", 10, "maxsubmitjobs"},
	{"MaxSubmitPU", 11, "maxsubmitjobs"},
	{"MaxSubmitJobsPerAccount", 17, "maxsubmitperaccount"},
	{"MaxSubmitJobsPA", 15, "maxsubmitperaccount"},
	{"MaxSubmitPA", 11, "maxsubmitperaccount"},
	{"MaxTRESPerAccount", 11, "maxtresperaccount"},
	{"MaxTRESPA", 9, "maxtresperaccount"},
	{"MaxTRESPerJob", 7, "maxtres"},
	{"MaxTRESPJ", 9, "maxtres"},
	{"MaxTRESPerNode", 11, "maxtrespernode"},
	{"MaxTRESPN", 9, "maxtrespernode"},
	{"MaxTRESPerUser", 11, "maxtresperuser"},
	{"MaxTRESPU", 9, "maxtresperuser"},
	{"MaxTRESMinsPerJob", 8, "maxtresmins"},
	{"MaxTRESMinsPJ", 13, "maxtresmins"},
	{"MaxTRESRunMinsPerAccount", 18, "maxtresrunminsperaccount"},
	{"MaxTRESRunMinsPA", 16, "maxtresrunminsperaccount"},
	{"MaxTRESRunMinsPerUser", 8, "maxtresrunminsperuser"},
	{"MaxTRESRunMinsPU", 8, "maxtresrunminsperuser"},
	{"MaxWallDurationPerJob", 4, "maxwall"},
	{"MaxWallPerJob", 8, "maxwall"},
	{"MinCPUsPerJob", 7, "mincpus"},
	{"MinPrioThreshold", 4, "minpriothreshold"},
	{"MinTRESPerJob", 7, "mintres"},
	{"PreemptMode", 8, "preemptmode"},
	{"PreemptExemptTime", 8, "preemptexempttime"},
	{"Preempt", 7, "preempt"},
	{"Priority", 3, "priority"},
	{"UsageFactor", 6, "usagefactor"},
	{"UsageThreshold", 6, "usagethreshold"},
}

// The words of what is found or made, by entity. What stands alone is a name.
var (
	accountWords = []keyword{
		{"Names", 1, "names"},
		{"Accounts", 1, "names"},
		{"Acct", 4, "names"},
		{"Users", 1, "users"},
		{"Clusters", 1, "clusters"},
		{"Descriptions", 1, "descriptions"},
		{"Organizations", 1, "organizations"},
		{"Parents", 2, "parents"},
		{"QosLevel", 1, "qos"},
		{"Partitions", 3, "partitions"},
	}
	userWords = []keyword{
		{"Names", 1, "names"},
		{"Users", 1, "names"},
		{"Accounts", 2, "accounts"},
		{"Acct", 4, "accounts"},
		{"AdminLevel", 2, "adminlevels"},
		{"Clusters", 1, "clusters"},
		{"DefaultAccounts", 8, "defaultaccounts"},
		{"DefaultWCKeys", 8, "defaultwckeys"},
		{"Partitions", 3, "partitions"},
		{"QosLevel", 1, "qos"},
		{"WCKeys", 1, "wckeys"},
	}
	associationWords = []keyword{
		{"Ids", 1, "ids"},
		{"Accounts", 2, "accounts"},
		{"Acct", 4, "accounts"},
		{"Clusters", 1, "clusters"},
		{"DefaultQOS", 8, "defaultqos"},
		{"Parents", 4, "parents"},
		{"Partitions", 4, "partitions"},
		{"QosLevel", 1, "qos"},
		{"Users", 1, "users"},
	}
	qosWords = []keyword{
		{"Names", 1, "names"},
		{"QOSLevel", 1, "names"},
		{"Ids", 1, "ids"},
		{"Descriptions", 1, "descriptions"},
	}
	clusterWords = []keyword{{"Names", 1, "names"}, {"Clusters", 1, "names"}}
	tresWords    = []keyword{{"Type", 1, "types"}, {"Names", 1, "names"}, {"Ids", 1, "ids"}}
	wckeyWords   = []keyword{
		{"Names", 1, "names"}, {"WCKeys", 1, "names"}, {"Users", 1, "users"}, {"Clusters", 1, "clusters"},
	}
	coordinatorWords = []keyword{
		{"Names", 1, "names"}, {"Users", 1, "names"}, {"Accounts", 1, "accounts"}, {"Acct", 4, "accounts"},
	}
	// showWords stand alone, and change a listing.
	showWords = []keyword{
		{"WithAssocs", 5, "withassoc"},
		{"All_Time", 5, "all_time"},
		{"WithCoordinators", 5, "withcoordinators"},
		{"WithDeleted", 5, "withdeleted"},
		{"WithRawQOSLevel", 5, "withrawqos"},
		{"WithSubAccounts", 5, "withsubaccounts"},
		{"WOPLimits", 4, "woplimits"},
		{"WOPInfo", 4, "wopinfo"},
		{"WOLimits", 3, "wolimits"},
		{"OnlyDefaults", 2, "onlydefaults"},
		{"Tree", 4, "tree"},
	}
)

// condition is what a command is about: a record must have one of the values of every key.
type condition struct {
	values map[string][]string // by key, in lower case
	flags  map[string]bool     // of showWords
	format string
}

// parseCondition reads the items of a command by the words of its entity. bad is the first that is not understood.
func parseCondition(words []keyword, items []item) (c condition, bad *item) {
	c = condition{values: map[string][]string{}, flags: map[string]bool{}}
	for i := range items {
		it := &items[i]
		if it.key == "" {
			if key, ok := match(showWords, it.value); ok {
				c.flags[key] = true
				continue
			}
			c.add("names", it.value)
			continue
		}
		if key, ok := match([]keyword{{"Format", 1, ""}, {"Fields", 2, "format"}}, it.key); ok && key == "format" &&
			it.op == '=' {
			c.format = it.value
			continue
		}
		key, ok := match(words, it.key)
		if !ok || it.op != '=' {
			return c, it
		}
		c.add(key, it.value)
	}
	return c, nil
}

// add takes the values of a comma list; one that is there already is not taken again.
func (c *condition) add(key, text string) {
	for _, v := range list(strings.ToLower(text)) {
		if !slices.Contains(c.values[key], v) {
			c.values[key] = append(c.values[key], v)
		}
	}
}

// has reports whether a key allows a value: it was not given, or lists the value.
func (c *condition) has(key, value string) bool {
	list, ok := c.values[key]
	return !ok || slices.Contains(list, strings.ToLower(value))
}

// given reports whether a key was given.
func (c *condition) given(key string) bool { return len(c.values[key]) > 0 }

// empty reports whether nothing is asked for.
func (c *condition) empty() bool { return len(c.values) == 0 }
