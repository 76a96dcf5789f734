package report

import (
	"cmp"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/schema"
)

var nodeObject = schema.Of("node")

// NodeRecord is a node as --json and the REST API show it.
func NodeRecord(n *client.Node, o *RecordOptions) *schema.Record {
	s, c, t := shape(&n.Hardware)
	st := parseNodeState(n.State)
	flags := stateFlags(st)
	partitions := make([]string, 0, len(n.Partitions))
	for _, p := range n.Partitions {
		partitions = append(partitions, string(p))
	}
	notes, available := notesOf(n)
	r := nodeObject.New().Set("comment", notes.Comment).Set("extra", notes.Extra).
		Set("architecture", n.Host.Arch).Set("boards", 1).Set("boot_time", schema.Time(n.Host.Boot)).
		Set("cluster_name", o.Cluster).Set("cores", c).Set("cpu_load", int64(n.Load*100+0.5)).
		Set("free_memory", slurm.InMiB(n.FreeMem)).Set("free_mem", schema.Int(slurm.InMiB(n.FreeMem))).
		Set("cpus", n.Hardware.CPUs).Set("effective_cpus", n.Hardware.CPUs).
		Set("last_busy", schema.Time(n.LastBusy)).Set("features", available).Set("active_features", n.Features).
		Set("gres", gresText(n.Hardware.Gres)).Set("gres_drained", "N/A").Set("name", string(n.Name)).
		Set("address", cmp.Or(n.Host.Addr, string(n.Name))).Set("hostname", cmp.Or(n.Host.Hostname, string(n.Name))).
		Set("state", recorded(strings.ToLower(st.base), append([]string{st.base}, flags...))).
		Set("state_flags", flags).Set("next_state_after_reboot", recorded("invalid", []string{"INVALID"})).
		Set("operating_system", n.Host.OS).Set("partitions", partitions).
		Set("real_memory", slurm.InMiB(n.Hardware.Memory)).Set("reason", n.Reason).
		Set("reason_changed_at", schema.Time(n.ReasonAt)).Set("reason_set_by_user", string(n.ReasonBy)).
		Set("resume_after", schema.Time(n.ResumeAt)).Set("reservation", n.Reservation).
		Set("slurmd_start_time", schema.Time(n.Host.AgentStart)).Set("sockets", s).Set("threads", t).
		Set("temporary_disk", slurm.InMiB(n.Hardware.TmpDisk)).Set("weight", max(1, n.Weight)).
		Set("tres", hardwareTRES(n.Hardware.CPUs, n.Hardware.Memory, 0, true, n.Hardware.Gres)).
		Set("version", n.Host.Version).Set("slurmd_version", n.Host.Version).
		Set("alloc_memory", slurm.InMiB(n.AllocMem)).Set("alloc_cpus", n.AllocCPUs).
		Set("alloc_idle_cpus", cpusOf(n).idle).Set("idle_cpus", cpusOf(n).idle)
	if len(n.Hardware.Gres) > 0 {
		r.Set("gres_used", gresUsed(n))
	}
	if n.AllocCPUs > 0 {
		r.Set("tres_used", hardwareTRES(n.AllocCPUs, n.AllocMem, 0, false, n.AllocGres))
	}
	return r
}

// stateFlags are the words beside a node's base state, by their alphabet.
func stateFlags(s nodeState) []string {
	flags := []string{}
	for _, f := range sortedKeys(s.flags) {
		switch f {
		case "MAINT":
			f = "MAINTENANCE"
		case "REBOOT":
			f = "REBOOT_REQUESTED"
		}
		flags = append(flags, f)
	}
	return flags
}
