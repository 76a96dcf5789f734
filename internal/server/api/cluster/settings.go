package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// settings are the effective ones under the names the Slurm front end shows them by.
func (a *Cluster) settings(snap *state.Snapshot) map[string]string {
	c := a.Settings()
	seconds := func(d config.Duration) string { return strconv.Itoa(int(d.D() / time.Second)) }
	clock := func(d config.Duration) string { return grammar.FormatClock(int64(d.D() / time.Second)) }
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	yes := func(b bool, yes, no string) string {
		if b {
			return yes
		}
		return no
	}
	w := &c.Priority.Weights
	nodes, gres := 0, []string{}
	for n := range snap.Nodes() {
		nodes++
		for _, g := range n.Hardware.Gres {
			if !slices.Contains(gres, g.Name) {
				gres = append(gres, g.Name)
			}
		}
	}
	slices.Sort(gres)
	tracked := "cpu,mem,energy,node,billing,fs/disk,vmem,pages"
	for _, g := range gres {
		tracked += ",gres/" + g
	}
	mode, kind := strings.ToUpper(c.Preemption.Mode), c.Preemption.Type
	track := "proctrack/" + yes(c.Step.ConstrainCPUs || c.Step.ConstrainMem || c.Step.ConstrainDevices, "cgroup", "pgid")
	out := map[string]string{
		"AccountingStorageEnforce": enforcedText(c), "AccountingStorageTRES": tracked,
		"AccountingStoreFlags": strings.Join(c.Accounting.Store, ","),
		"ClusterName":          c.Cluster, "DefMemPerCPU": strconv.FormatInt(int64(c.Jobs.DefMemPerCPU)>>20, 10),
		"EnforcePartLimits": yes(c.Jobs.StrictSubmit, "ALL", "NO"),
		"Epilog":            strings.Join(c.Step.Epilog, ","), "FairShareDampeningFactor": number(c.Priority.Dampening),
		"GresTypes":           strings.Join(gres, ","),
		"HealthCheckInterval": seconds(c.Health.Interval), "HealthCheckNodeState": yes(c.Health.Cycle, "CYCLE,", "") +
			cmp.Or(strings.ToUpper(strings.Join(c.Health.States, ",")), "ANY"),
		"HealthCheckProgram": c.Health.Program, "RebootProgram": c.Reboot.Program,
		"SuspendProgram": c.Power.SuspendProgram, "ResumeProgram": c.Power.ResumeProgram,
		"ResumeFailProgram": c.Power.ResumeFailProgram,
		"SuspendTime":       yes(c.Power.SuspendTime > 0, seconds(c.Power.SuspendTime), "INFINITE"),
		"SuspendTimeout":    seconds(c.Power.SuspendTimeout),
		"ResumeTimeout":     seconds(c.Power.ResumeTimeout), "SuspendExcNodes": c.Power.ExcludeNodes,
		"SuspendExcParts": strings.Join(c.Power.ExcludePartitions, ","),
		"KillWait":        seconds(c.Timers.KillWait),
		"Licenses":        strings.Join(c.Licenses, ","),
		"MailDomain":      c.Mail.Domain, "MailProg": c.Mail.Program, "MaxArraySize": number(c.Jobs.MaxArray),
		"MaxJobCount": number(c.Jobs.MaxJobs), "MaxTasksPerNode": number(c.Jobs.MaxTasks),
		"MaxStepCount": number(cmp.Or(c.Limits.StepsPerJob, 2147483646)),
		"MaxDBDMsgs":   number(max(20000, 2*c.Jobs.MaxJobs+4*int64(nodes))), // as Slurm works it out
		"MaxNodeCount": strconv.Itoa(nodes), "MaxScriptSize": number(int64(c.Jobs.MaxScript)),
		"MpiDefault":  cmp.Or(c.Step.MPI, "none"),
		"NEXT_JOB_ID": number(int64(snap.NextJob())), "PreemptMode": mode, "PreemptType": "preempt/" + kind,
		"PreemptExemptTime":  clock(c.Preemption.ExemptTime),
		"PriorityCalcPeriod": clock(c.Priority.CalcPeriod), "PriorityDecayHalfLife": clock(c.Priority.HalfLife),
		"PriorityFavorSmall": yes(c.Priority.FavorSmall, "Yes", "No"),
		"PriorityFlags":      strings.Join(c.Priority.Flags, ","), "PriorityMaxAge": clock(c.Priority.MaxAge),
		"PriorityType":             "priority/" + c.Priority.Type,
		"PriorityUsageResetPeriod": strings.ToUpper(c.Priority.Reset), "PriorityWeightAge": number(w.Age),
		"PriorityWeightAssoc":     number(w.Assoc),
		"PriorityWeightFairShare": number(w.FairShare), "PriorityWeightJobSize": number(w.JobSize),
		"PriorityWeightPartition": number(w.Partition),
		"PriorityWeightQOS":       number(w.QOS), "PriorityWeightTRES": w.TRES, "PrivateData": c.Private().String(),
		"PropagateResourceLimits":       yes(slices.Contains(c.Step.KeepLimits, "ALL"), "NONE", "ALL"),
		"PropagateResourceLimitsExcept": strings.Join(keptLimits(c), ","),
		"ProctrackType":                 track, "Prolog": strings.Join(c.Step.Prolog, ","),
		"PrologEpilogTimeout": seconds(c.Step.PrologTimeout), "ResvOverRun": number(int64(c.Jobs.ResvOverrun) / 60),
		"SelectTypeParameters": cmp.Or(c.Scheduling.SelectAs, "CR_"+strings.ToUpper(c.Scheduling.Select)+"_MEMORY"),
		"SlurmUser":            a.owner(), "SlurmctldHost": a.Host,
		"SrunEpilog": c.Step.SrunEpilog, "SrunProlog": c.Step.SrunProlog,
		"StateSaveLocation": c.Dir,
		"TaskEpilog":        strings.Join(c.Step.TaskEpilog, ","), "TaskProlog": strings.Join(c.Step.TaskProlog, ","),
		"TaskPlugin": yes(strings.HasSuffix(track, "cgroup"), "task/cgroup", "task/none"),
		"TmpFS":      cmp.Or(c.Step.TmpDir, "/tmp"), "TopologyPlugin": "topology/" + cmp.Or(c.Topology.Kind, "none"),
		"UnkillableStepTimeout": seconds(c.Timers.UnkillableAfter),

		"strict_submit":    strconv.FormatBool(c.Jobs.StrictSubmit),
		"enforce_accounts": strconv.FormatBool(a.Enforced().Associations),
		"default_project":  c.Accounting.DefaultProject, "fence": c.Timers.Fence.String(),
	}
	maps.Copy(out, c.Slurm.Shown)
	out["SLURM_CONF"] = c.Slurm.File
	return out
}

// keptLimits are the limits that jobs do not get from the submitting shell, where it is not all of them.
func keptLimits(c *config.Config) []string {
	if slices.Contains(c.Step.KeepLimits, "ALL") {
		return nil
	}
	return c.Step.KeepLimits
}

// enforcedText is what is enforced, in Slurm's words and order.
func enforcedText(c *config.Config) string {
	e, _ := c.Accounting.Enforced()
	var words []string
	for _, w := range []struct {
		on   bool
		name string
	}{{e.Associations, "associations"}, {e.Limits, "limits"}, {e.QOS, "qos"}, {e.Safe, "safe"}} {
		if w.on {
			words = append(words, w.name)
		}
	}
	return cmp.Or(strings.Join(words, ","), "none")
}

// owner is the administrator that the settings name first, who is root if there is none.
func (a *Cluster) owner() string {
	for _, name := range a.Settings().Admins {
		if u, err := call.AccountOf(name, nil); err == nil {
			return name + "(" + strconv.FormatUint(uint64(u.UID), 10) + ")"
		}
	}
	return "root(0)"
}
