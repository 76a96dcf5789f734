package sacctmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// row is one line of any listing: what it is about may be there or not.
type row struct {
	p     *core.Project
	m     *core.Member
	u     *core.User
	q     *core.QOS
	s     *lister
	assoc bool // it is an association
	depth int  // in the tree of accounts
	text  map[string]string
}

// column is a field of a listing. A negative width is filled on the right.
type column struct {
	name  string // in format=, any case; it may be cut short
	title string
	width int
	value func(r *row) string
}

func limitsOf(r *row) *core.Limits {
	switch {
	case r.q != nil:
		return &r.q.Limits
	case r.m != nil:
		return &r.m.Assoc.Limits
	case r.p != nil:
		return &r.p.Assoc.Limits
	}
	return &core.Limits{}
}

func assocOf(r *row) *core.Association {
	switch {
	case r.m != nil:
		return &r.m.Assoc
	case r.p != nil:
		return &r.p.Assoc
	}
	return &core.Association{}
}

// runMinsOf is the limit on minutes of running jobs, of a user with a QOS or of an association.
func runMinsOf(r *row) core.TRES {
	if r.q != nil {
		return r.q.MaxRunMinsPerUser
	}
	return limitsOf(r).MaxTRESRunMins
}

// qosText lists the QOS of an association by name or, raw, by id.
func qosText(r *row, raw bool) string {
	if r.p == nil && r.m == nil {
		return ""
	}
	list := r.s.mayUse(r.p, r.m)
	if !raw {
		return joined(list)
	}
	ids := make([]string, 0, len(list))
	for _, name := range list {
		if q := r.s.qos(string(name)); q != nil {
			ids = append(ids, strconv.FormatInt(r.s.qosID(q), 10))
		}
	}
	return strings.Join(ids, ",")
}

func num(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func wall(n *int64) string {
	if n == nil {
		return ""
	}
	return grammar.FormatClockLimit(*n)
}

// amounts writes resources by name.
func amounts(t core.TRES) string {
	out := slices.Clone(t)
	slices.SortStableFunc(out, func(a, b core.Amount) int { return strings.Compare(a.Name, b.Name) })
	parts := make([]string, len(out))
	for i, a := range out {
		unit := ""
		if a.Name == "mem" {
			unit = "M"
		}
		parts[i] = fmt.Sprintf("%s=%d%s", a.Name, a.Count, unit)
	}
	return strings.Join(parts, ",")
}

func of(t core.TRES, name string) string {
	if n, ok := t.Get(name); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

func joined[T ~string](list []T) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = string(v)
	}
	return strings.Join(parts, ",")
}

func seconds(n core.Seconds) string { return grammar.FormatClock(int64(n)) }

// flagOrder is how Slurm lists the flags of a QOS; those it does not have come after them.
var flagOrder = []core.QOSFlag{
	core.DenyOnLimit, core.EnforceUsageThreshold, core.NoReserve, core.PartitionMaxNodes, core.PartitionMinNodes,
	core.OverPartQOS, core.PartitionTimeLimit, core.RequiresReservation, core.NoDecay, core.UsageFactorSafe,
}

func flagsText(f core.QOSFlag) string {
	var words []string
	for _, one := range flagOrder {
		if f&one != 0 {
			words, f = append(words, one.Words()...), f&^one
		}
	}
	return strings.Join(append(words, f.Words()...), ",")
}

// The record of a kind that a row is about, or an empty one: any field may be asked of any listing.
func (r *row) project() *core.Project {
	if r.p == nil {
		return &core.Project{}
	}
	return r.p
}

func (r *row) user() *core.User {
	if r.u == nil {
		return &core.User{}
	}
	return r.u
}

func (r *row) qos() *core.QOS {
	if r.q == nil {
		return &core.QOS{}
	}
	return r.q
}

// at is a text of a row that is about none of the records.
func (r *row) at(key string) string { return r.text[key] }

func accountDescription(p *core.Project) string {
	if p.Name == "root" && p.Description == "" {
		return "default root account"
	}
	return p.Description
}

func accountOrganization(p *core.Project) string {
	if p.Name == "root" && p.Organization == "" {
		return "root"
	}
	return p.Organization
}

// columns are all fields there are.
var columns = []column{
	{"Cluster", "Cluster", 10, func(r *row) string { return r.s.name }},
	{"Account", "Account", 10, func(r *row) string {
		if r.p == nil {
			return r.at("account")
		}
		return strings.Repeat(" ", r.depth) + string(r.p.Name)
	}},
	{"Acct", "Account", 10, func(r *row) string { return find("Account").value(r) }},
	{"User", "User", 10, func(r *row) string {
		switch {
		case r.m != nil:
			return string(r.m.User)
		case r.u != nil:
			return string(r.u.Name)
		}
		return r.at("user")
	}},
	{"Partition", "Partition", 10, func(*row) string { return "" }},
	{"Share", "Share", 9, func(r *row) string {
		n := int32(0)
		if r.m != nil {
			n = r.m.Shares
		} else if r.p != nil {
			n = r.p.Shares
		}
		if n == core.SharesParent {
			return "parent"
		}
		return strconv.Itoa(int(max(1, n)))
	}},
	{"Fairshare", "Share", 9, func(r *row) string { return find("Share").value(r) }},
	{"Priority", "Priority", 10, func(r *row) string {
		if r.q != nil {
			return strconv.Itoa(int(r.q.Priority))
		}
		if p := assocOf(r).Priority; p > 0 {
			return strconv.Itoa(int(p))
		}
		return ""
	}},
	{"GrpJobs", "GrpJobs", 7, func(r *row) string { return num(limitsOf(r).GrpJobs) }},
	{"GrpTRES", "GrpTRES", 13, func(r *row) string { return amounts(limitsOf(r).GrpTRES) }},
	{"GrpNodes", "GrpNodes", 8, func(r *row) string { return of(limitsOf(r).GrpTRES, "node") }},
	{"GrpCPUs", "GrpCPUs", 8, func(r *row) string { return of(limitsOf(r).GrpTRES, "cpu") }},
	{"GrpMemory", "GrpMem", 7, func(r *row) string { return of(limitsOf(r).GrpTRES, "mem") }},
	{"GrpJobsAccrue", "GrpJobsAccrue", 13, func(r *row) string { return num(limitsOf(r).GrpJobsAccrue) }},
	{"MaxJobsAccrue", "MaxJobsAccrue", 13, func(r *row) string { return num(limitsOf(r).MaxJobsAccrue) }},
	{"MinPrioThreshold", "MinPrioThres", 12, func(r *row) string { return num(limitsOf(r).MinPrioThreshold) }},
	{"GrpSubmit", "GrpSubmit", 9, func(r *row) string { return num(limitsOf(r).GrpSubmit) }},
	{"GrpWall", "GrpWall", 11, func(r *row) string { return wall(limitsOf(r).GrpWall) }},
	{"GrpTRESMins", "GrpTRESMins", 13, func(r *row) string { return amounts(limitsOf(r).GrpTRESMins) }},
	{"GrpCPUMins", "GrpCPUMins", 11, func(r *row) string { return of(limitsOf(r).GrpTRESMins, "cpu") }},
	{"GrpTRESRunMins", "GrpTRESRunMins", 13, func(r *row) string { return amounts(limitsOf(r).GrpTRESRunMins) }},
	{"GrpCPURunMins", "GrpCPURunMins", 13, func(r *row) string { return of(limitsOf(r).GrpTRESRunMins, "cpu") }},
	{"MaxTRESRunMins", "MaxTRESRunMinsPU", 15, func(r *row) string { return amounts(runMinsOf(r)) }},
	{"MaxTRESRunMinsPU", "MaxTRESRunMinsPU", 15, func(r *row) string { return amounts(runMinsOf(r)) }},
	{"MaxTRESRunMinsPA", "MaxTRESRunMinsPA", 15, func(r *row) string { return amounts(r.qos().MaxRunMinsPerAcct) }},
	{"MaxCPURunMins", "MaxCPURunMinsPU", 15, func(r *row) string { return of(runMinsOf(r), "cpu") }},
	{"MaxJobs", "MaxJobs", 7, func(r *row) string { return num(limitsOf(r).MaxJobs) }},
	{"MaxTRES", "MaxTRES", 13, func(r *row) string { return amounts(limitsOf(r).MaxTRESPerJob) }},
	{"MaxNodes", "MaxNodes", 8, func(r *row) string { return of(limitsOf(r).MaxTRESPerJob, "node") }},
	{"MaxCPUs", "MaxCPUs", 8, func(r *row) string { return of(limitsOf(r).MaxTRESPerJob, "cpu") }},
	{"MaxTRESPerNode", "MaxTRESPerNode", 14, func(r *row) string { return amounts(limitsOf(r).MaxTRESPerNode) }},
	{"MaxSubmit", "MaxSubmit", 9, func(r *row) string { return num(limitsOf(r).MaxSubmit) }},
	{"MaxWall", "MaxWall", 11, func(r *row) string { return wall(limitsOf(r).MaxWall) }},
	{"MaxTRESMins", "MaxTRESMins", 13, func(r *row) string { return amounts(limitsOf(r).MaxTRESMinsPerJob) }},
	{"MaxCPUMins", "MaxCPUMins", 11, func(r *row) string { return of(limitsOf(r).MaxTRESMinsPerJob, "cpu") }},
	{"QOS", "QOS", 20, func(r *row) string { return qosText(r, r.s.rawQOS) }},
	{"QOSLevel", "QOS", 20, func(r *row) string { return qosText(r, r.s.rawQOS) }},
	{"QOSRAWLevel", "QOS_RAW", 10, func(r *row) string { return qosText(r, true) }},
	{"QOS_RAW", "QOS_RAW", 10, func(r *row) string { return qosText(r, true) }},
	{"DefaultQOS", "Def QOS", 9, func(r *row) string { return string(assocOf(r).DefaultQOS) }},
	{"ParentName", "ParentName", 10, func(r *row) string {
		if r.m != nil || r.p == nil || r.p.Name == "root" {
			return ""
		}
		return orName(string(r.p.Parent), "root")
	}},
	{"Descr", "Descr", 20, func(r *row) string {
		if r.q != nil {
			return r.q.Description
		}
		return accountDescription(r.project())
	}},
	{"Description", "Descr", 20, func(r *row) string { return find("Descr").value(r) }},
	{"Organization", "Org", 20, func(r *row) string { return accountOrganization(r.project()) }},
	{"DefaultAccount", "Def Acct", 10, func(r *row) string { return string(r.user().Default) }},
	{"DefaultWCKey", "Def WCKey", 10, func(r *row) string { return r.user().DefaultWCKey }},
	{"AdminLevel", "Admin", 9, func(r *row) string {
		if r.user().Role == core.RoleAdmin {
			return "Administrator"
		}
		return "None"
	}},
	{"Coordinators", "Coord Accounts", 20, func(r *row) string {
		var list []string
		for i := range r.s.policy.Projects {
			p := &r.s.policy.Projects[i]
			if r.u != nil {
				if m := member(p, string(r.u.Name)); m != nil && m.Role.Rank() >= core.RoleManager.Rank() {
					list = append(list, string(p.Name))
				}
			} else if r.p == p {
				for _, m := range p.Members {
					if m.Role == core.RoleManager {
						list = append(list, string(m.User))
					}
				}
			}
		}
		return strings.Join(list, ",")
	}},

	{"Name", "Name", 10, func(r *row) string {
		if r.q != nil {
			return string(r.q.Name)
		}
		return r.at("name")
	}},
	{"GraceTime", "GraceTime", 10, func(r *row) string { return seconds(r.qos().Grace) }},
	{"Preempt", "Preempt", 10, func(r *row) string { return joined(r.qos().Preempt) }},
	{"PreemptExemptTime", "PreemptExemptTime", 19, func(r *row) string {
		if r.qos().PreemptExempt == 0 {
			return ""
		}
		return seconds(r.qos().PreemptExempt)
	}},
	{"PreemptMode", "PreemptMode", 11, func(r *row) string { return orName(string(r.qos().PreemptMode), "cluster") }},
	{"Flags", "Flags", 20, func(r *row) string { return flagsText(r.qos().Flags) }},
	{"UsageThreshold", "UsageThres", 10, func(r *row) string {
		if r.qos().UsageThreshold == 0 {
			return ""
		}
		return fmt.Sprintf("%.6f", r.qos().UsageThreshold)
	}},
	{"UsageFactor", "UsageFactor", 11, func(r *row) string {
		return fmt.Sprintf("%.6f", r.qos().Factor())
	}},
	{"LimitFactor", "LimitFactor", 11, func(r *row) string {
		if r.qos().LimitFactor == 0 {
			return ""
		}
		return fmt.Sprintf("%.6f", r.qos().LimitFactor)
	}},
	{"MaxTRESPU", "MaxTRESPU", 13, func(r *row) string { return amounts(r.qos().MaxTRESPerUser) }},
	{"MaxTRESPerUser", "MaxTRESPU", 13, func(r *row) string { return amounts(r.qos().MaxTRESPerUser) }},
	{"MaxJobsPU", "MaxJobsPU", 9, func(r *row) string { return num(r.qos().Limits.MaxJobs) }},
	{"MaxJobsPerUser", "MaxJobsPU", 9, func(r *row) string { return num(r.qos().Limits.MaxJobs) }},
	{"MaxSubmitPU", "MaxSubmitPU", 11, func(r *row) string { return num(r.qos().Limits.MaxSubmit) }},
	{"MaxSubmitJobsPerUser", "MaxSubmitPU", 11, func(r *row) string { return num(r.qos().Limits.MaxSubmit) }},
	{"MaxTRESPA", "MaxTRESPA", 13, func(r *row) string { return amounts(r.qos().MaxTRESPerProject) }},
	{"MaxJobsPA", "MaxJobsPA", 9, func(r *row) string { return num(r.qos().MaxJobsPerProject) }},
	{"MaxJobsAccruePU", "MaxJobsAccruePU", 15, func(r *row) string { return num(r.qos().Limits.MaxJobsAccrue) }},
	{"MaxJobsAccruePA", "MaxJobsAccruePA", 15, func(r *row) string { return num(r.qos().MaxAccruePerProject) }},
	{"MaxSubmitPA", "MaxSubmitPA", 11, func(r *row) string { return num(r.qos().MaxSubmitPerProject) }},
	{"MinTRES", "MinTRES", 13, func(r *row) string { return amounts(r.qos().MinTRESPerJob) }},

	{"MaxCPUsPU", "MaxCPUsPU", 9, func(r *row) string { return of(r.qos().MaxTRESPerUser, "cpu") }},
	{"MaxCPUsPerUser", "MaxCPUsPU", 9, func(r *row) string { return of(r.qos().MaxTRESPerUser, "cpu") }},
	{"MaxNodesPU", "MaxNodesPU", 10, func(r *row) string { return of(r.qos().MaxTRESPerUser, "node") }},
	{"MaxNodesPerUser", "MaxNodesPU", 10, func(r *row) string { return of(r.qos().MaxTRESPerUser, "node") }},
	{"MinCPUs", "MinCPUs", 8, func(r *row) string { return of(r.qos().MinTRESPerJob, "cpu") }},

	{"ControlHost", "ControlHost", 15, func(r *row) string { return r.at("controlhost") }},
	{"ControlPort", "ControlPort", 12, func(r *row) string { return r.at("controlport") }},
	{"RPC", "RPC", 5, func(r *row) string { return r.at("rpc") }},
	{"NodeCount", "NodeCount", 9, func(r *row) string { return r.at("nodecount") }},
	{"ClusterNodes", "Cluster Nodes", 20, func(r *row) string { return r.at("clusternodes") }},
	{"TRES", "TRES", 20, func(r *row) string { return r.at("tres") }},
	{"Classification", "Class", 9, func(*row) string { return "" }},
	{"Type", "Type", 8, func(r *row) string { return r.at("type") }},
	{"ID", "ID", 6, func(r *row) string {
		switch {
		case r.q != nil:
			return strconv.FormatInt(r.s.qosID(r.q), 10)
		case r.assoc:
			return strconv.FormatInt(r.s.assocID(r.p, r.m), 10)
		case r.text != nil:
			return r.at("id")
		}
		return "0"
	}},
	{"LFT", "LFT", 6, func(r *row) string { return place(r, 0) }},
	{"RGT", "RGT", 6, func(r *row) string { return place(r, 1) }},
	{"ParentID", "ParentID", 8, func(r *row) string {
		switch {
		case !r.assoc:
			return ""
		case r.m != nil:
			return strconv.FormatInt(r.s.assocID(r.p, nil), 10)
		case r.p.Name == "root":
			return "0"
		}
		up := r.s.account(orName(string(r.p.Parent), "root"))
		if up == nil {
			return ""
		}
		return strconv.FormatInt(r.s.assocID(up, nil), 10)
	}},
	{"WCKey", "WCKey", 10, func(r *row) string { return r.at("wckey") }},
	{"Problem", "Problem", 40, func(r *row) string { return r.at("problem") }},
	{"NodeName", "NodeName", 15, func(r *row) string { return r.at("nodename") }},
	{"TimeStart", "TimeStart", 19, func(r *row) string { return r.at("start") }},
	{"TimeEnd", "TimeEnd", 19, func(r *row) string { return r.at("end") }},
	{"State", "State", 6, func(r *row) string { return r.at("state") }},
	{"Reason", "Reason", 30, func(r *row) string { return r.at("reason") }},
	{"UnusedWall", "UnusedWall", 10, func(r *row) string { return r.at("unused") }},
	{"Federation", "Federation", 10, func(*row) string { return "" }},
	{"Features", "Features", 10, func(*row) string { return "" }},
	{"FedState", "FedState", 12, func(*row) string { return "" }},
	{"Server", "Server", 10, func(*row) string { return "" }},
	{"Count", "Count", 6, func(*row) string { return "" }},
	{"Allocated", "% Allocated", 11, func(*row) string { return "" }},
	{"ServerType", "ServerType", 10, func(*row) string { return "" }},
	{"Time", "Time", 19, func(r *row) string { return r.at("time") }},
	{"Action", "Action", 20, func(r *row) string { return r.at("action") }},
	{"ActionRaw", "ActionRaw", 10, func(r *row) string { return r.at("action") }},
	{"Actor", "Actor", 10, func(r *row) string { return r.at("user") }},
	{"Where", "Where", 20, func(r *row) string { return r.at("where") }},
	{"Info", "Info", 20, func(r *row) string { return r.at("info") }},
}

// defaults are the columns of each listing, where nobody says.
var defaults = map[string]string{
	"accounts": "Account,Descr,Organization",
	"associations": "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins," +
		"MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins",
	"users": "User,DefaultAccount,AdminLevel",
	"qos": "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,UsageFactor," +
		"GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall," +
		"MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES",
	"clusters": "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit," +
		"MaxWall,QOS,DefaultQOS",
	"tres":         "Type,Name%15,ID",
	"wckeys":       "WCKey,Cluster,User",
	"problems":     "Cluster,Account,User,Problem",
	"events":       "Cluster,NodeName%-15,TimeStart,TimeEnd,State%6,Reason%30,User",
	"reservations": "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall",
	"federations":  "Federation,Cluster,ID%2,Features%20,FedState%12",
	"resources":    "Name,Server,Type,Count,Allocated,ServerType",
	"transactions": "Time,Action,Actor,Where,Info",
}

const (
	accountAssoc = ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMemory,GrpSubmit,GrpWall," +
		"GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
	userAssoc = ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall," +
		"MaxCPUMins,QOS,DefaultQOS"
)

func init() { find = findColumn } // a column's value may be another's

var find func(name string) *column

// findColumn finds a column by its name, which may be cut short.
func findColumn(name string) *column {
	var short *column
	for i := range columns {
		c := &columns[i]
		if strings.EqualFold(c.name, name) {
			return c
		}
		if short == nil && len(name) >= 2 && len(name) < len(c.name) && strings.EqualFold(c.name[:len(name)], name) {
			short = c
		}
	}
	return short
}
