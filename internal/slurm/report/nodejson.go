package report

import (
	"cmp"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
)

// NodeJSON is a node as sinfo --json of Slurm 22.05 (openapi v0.0.38) writes it.
type NodeJSON struct {
	Architecture    string   `json:"architecture"`
	BurstBuffer     string   `json:"burstbuffer_network_address"`
	Boards          int32    `json:"boards"`
	BootTime        int64    `json:"boot_time"`
	Comment         string   `json:"comment"`
	Cores           int32    `json:"cores"`
	CPUBinding      int32    `json:"cpu_binding"`
	CPULoad         int64    `json:"cpu_load"`
	Extra           string   `json:"extra"`
	FreeMemory      int64    `json:"free_memory"`
	CPUs            int32    `json:"cpus"`
	LastBusy        int64    `json:"last_busy"`
	Features        string   `json:"features"`
	ActiveFeatures  string   `json:"active_features"`
	Gres            string   `json:"gres"`
	GresDrained     string   `json:"gres_drained"`
	GresUsed        string   `json:"gres_used"`
	MCSLabel        string   `json:"mcs_label"`
	Name            string   `json:"name"`
	NextState       string   `json:"next_state_after_reboot"`
	Address         string   `json:"address"`
	Hostname        string   `json:"hostname"`
	State           string   `json:"state"`
	StateFlags      []string `json:"state_flags"`
	NextStateFlags  []string `json:"next_state_after_reboot_flags"`
	OperatingSystem string   `json:"operating_system"`
	Owner           *string  `json:"owner"`
	Partitions      []string `json:"partitions"`
	Port            int32    `json:"port"`
	RealMemory      int64    `json:"real_memory"`
	Reason          string   `json:"reason"`
	ReasonChangedAt int64    `json:"reason_changed_at"`
	ReasonSetBy     *string  `json:"reason_set_by_user"`
	AgentStart      int64    `json:"slurmd_start_time"`
	Sockets         int32    `json:"sockets"`
	Threads         int32    `json:"threads"`
	TemporaryDisk   int64    `json:"temporary_disk"`
	Weight          int32    `json:"weight"`
	TRES            string   `json:"tres"`
	Version         string   `json:"slurmd_version"`
	AllocMemory     int64    `json:"alloc_memory"`
	AllocCPUs       int32    `json:"alloc_cpus"`
	IdleCPUs        int32    `json:"idle_cpus"`
	TRESUsed        *string  `json:"tres_used"`
	TRESWeighted    float64  `json:"tres_weighted"`
}

// NodeToJSON converts a node.
func NodeToJSON(n *client.Node) NodeJSON {
	s, c, t := shape(&n.Hardware)
	st := parseNodeState(n.State)
	features := strings.Join(n.Features, ",")
	out := NodeJSON{
		Architecture: n.Host.Arch, Boards: 1, BootTime: n.Host.Boot.Unix(), Cores: c, CPULoad: int64(n.Load*100 + 0.5),
		FreeMemory: slurm.InMiB(n.FreeMem),
		CPUs:       n.Hardware.CPUs, LastBusy: n.LastBusy.Unix(), Features: features, ActiveFeatures: features,
		Gres:        gresText(n.Hardware.Gres),
		GresDrained: "N/A", Name: string(n.Name), NextState: "invalid", Address: cmp.Or(n.Host.Addr, string(n.Name)),
		Hostname: cmp.Or(n.Host.Hostname, string(n.Name)), State: strings.ToLower(st.base),
		StateFlags: sortedKeys(st.flags), NextStateFlags: []string{},
		OperatingSystem: n.Host.OS, Partitions: []string{}, RealMemory: slurm.InMiB(n.Hardware.Memory), Reason: n.Reason,
		ReasonChangedAt: n.ReasonAt.Unix(),
		AgentStart:      n.Host.AgentStart.Unix(), Sockets: s, Threads: t, TemporaryDisk: slurm.InMiB(n.Hardware.TmpDisk),
		Weight: max(1, n.Weight),
		TRES:   hardwareTRES(n.Hardware.CPUs, n.Hardware.Memory, 0, true, n.Hardware.Gres), Version: n.Host.Version,
		AllocMemory: slurm.InMiB(n.AllocMem),
		AllocCPUs:   n.AllocCPUs, IdleCPUs: cpusOf(n).idle,
	}
	if out.StateFlags == nil {
		out.StateFlags = []string{}
	}
	for _, p := range n.Partitions {
		out.Partitions = append(out.Partitions, string(p))
	}
	if len(n.Hardware.Gres) > 0 {
		out.GresUsed = gresUsed(n)
	}
	if n.ReasonBy != "" {
		by := string(n.ReasonBy)
		out.ReasonSetBy = &by
	}
	if n.AllocCPUs > 0 {
		used := hardwareTRES(n.AllocCPUs, n.AllocMem, 0, false, n.AllocGres)
		out.TRESUsed = &used
	}
	return out
}
