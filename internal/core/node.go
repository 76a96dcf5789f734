package core

import (
	"strings"

	"bireme.dev/bireme/internal/core/nodenotes"
)

// Node is a machine that runs steps. What changes by the second (load, free memory, when it was last heard) is not
// here: the hub knows it and never bothers the engine with it.
type Node struct {
	ID    int64    `json:"id"`
	Name  NodeName `json:"name"`
	Fleet string   `json:"fleet,omitempty"`
	// Project is the one whose jobs alone the node runs: that of its fleet. Empty: it runs those of all.
	Project     ProjectName `json:"project,omitempty"`
	Roles       NodeRole    `json:"roles"`
	TrustRoot   bool        `json:"trust_root,omitempty"` // uid 0 of this node is an administrator
	Hardware    Hardware    `json:"hardware"`
	Host        Host        `json:"host"`
	Flags       NodeFlag    `json:"flags,omitempty"`
	Reason      string      `json:"reason,omitempty"` // of a drain or down
	ReasonBy    UserName    `json:"reason_by,omitempty"`
	ReasonAt    Time        `json:"reason_at,omitempty"`
	Joined      Time        `json:"joined,omitempty"`
	Weight      int32       `json:"weight,omitempty"`
	Features    []string    `json:"features,omitempty"`
	SilentSince Time        `json:"silent_since,omitempty"`
	LastBusy    Time        `json:"last_busy,omitempty"`
	Cloud       bool        `json:"cloud,omitempty"`     // it is made when it is needed, by programs of the site's
	Offer       string      `json:"offer,omitempty"`     // it was made of
	Resume      Seconds     `json:"resume,omitempty"`    // how long it takes to power up
	Ready       Time        `json:"ready,omitempty"`     // while it powers up: when it should be
	Due         Time        `json:"due,omitempty"`       // while it powers up or down, or restarts: when that must be over
	ResumeAt    Time        `json:"resume_at,omitempty"` // it is taken back into service by then
	Blocks      int32       `json:"blocks,omitempty"`    // it is split into, for jobs that take whole ones; 0: it is not
	// Faults are those for which it takes no new jobs.
	Faults  []NodeFault      `json:"faults,omitempty"`
	Restart *Restart         `json:"restart,omitempty"` // with NodeReboot or NodeRebooting
	Pin     *NodePin         `json:"pin,omitempty"`     // nil: it has not joined
	Leaving bool             `json:"leaving,omitempty"` // it is forgotten when its jobs have ended
	Notes   *nodenotes.Notes `json:"notes,omitempty"`   // what an administrator has written of it
}

// NodePin is the key a node is known by. A certificate of ours with any other key is refused, so a key that is replaced
// or revoked is of no use from then on, however long its certificates last.
type NodePin struct {
	Key       string   `json:"key,omitempty"`  // KeySum of its public key
	Next      string   `json:"next,omitempty"` // a key it has changed to: at its first use Key is dropped
	Roles     NodeRole `json:"roles,omitempty"`
	TrustRoot bool     `json:"trust_root,omitempty"`
	Token     string   `json:"token,omitempty"` // id of the token it joined with
	Revoked   bool     `json:"revoked,omitempty"`
	Gone      []string `json:"gone,omitempty"` // keys that were revoked: none of them joins again
	// Before is when the node joined a server that pinned no keys: the certificate that was made then may be used once
	// more, and its key is pinned.
	Before Time   `json:"before,omitempty"`
	Ends   Time   `json:"ends,omitempty"` // of its last certificate
	CA     string `json:"ca,omitempty"`   // the newest authority that it trusts
}

// Takes reports whether a key is the node's.
func (p *NodePin) Takes(key string) bool {
	return p != nil && !p.Revoked && key != "" && (key == p.Key || key == p.Next)
}

// Hardware is what a node has to give.
type Hardware struct {
	CPUs    int32  `json:"cpus"`
	Sockets int32  `json:"sockets,omitempty"`
	Cores   int32  `json:"cores,omitempty"`   // a socket
	Threads int32  `json:"threads,omitempty"` // a core
	Memory  Bytes  `json:"memory"`
	TmpDisk Bytes  `json:"tmp_disk,omitempty"`
	Gres    []Gres `json:"gres,omitempty"`
	Units   []Unit `json:"units,omitempty"` // of Gres, where more is known of them than their number
	// Sick are those of Gres that are not given out.
	Sick []SickUnit `json:"sick,omitempty"`
}

// Host is what an agent tells of the machine under it.
type Host struct {
	Hostname    string `json:"hostname,omitempty"`
	Addr        string `json:"addr,omitempty"`
	OS          string `json:"os,omitempty"`
	Arch        string `json:"arch,omitempty"`
	Version     string `json:"version,omitempty"` // of the agent
	BootID      string `json:"boot_id,omitempty"`
	Boot        Time   `json:"boot,omitempty"`
	AgentStart  Time   `json:"agent_start,omitempty"`
	Containment string `json:"containment,omitempty"` // "cgroup-v1", "cgroup-v2", "pidns", "weak"
	Root        bool   `json:"root,omitempty"`        // the agent may run jobs of any user
	UID         uint32 `json:"uid,omitempty"`         // the agent's own, when it may not
	Emulated    bool   `json:"emulated,omitempty"`
	UserNS      bool   `json:"userns,omitempty"` // root of its engine's containers is another user of the node
}

// KeptTo is the user whose jobs alone the node may run; 0: it runs anybody's, or who is not known yet.
func (h *Host) KeptTo() uint32 {
	if h.Root {
		return 0
	}
	return h.UID
}

// NodeRole says what a node joined for.
type NodeRole uint8

// The roles.
const (
	Compute NodeRole = 1 << iota // runs steps
	Login                        // passes its users' calls on
)

// NodeFlag is a bit of a node's state. A node without any is up.
type NodeFlag uint16

// The flags.
const (
	NodeUnknown  NodeFlag = 1 << iota // configured, never heard of
	NodeDown                          // an administrator said so, or its return is not trusted
	NodeDrain                         // no new jobs
	NodeSilent                        // its agent is not connected; its jobs stay
	NodeFailFlag                      // sick
	NodeMaint
	NodeFuture
	NodePoweredDown  // it sleeps, and can be powered up when somebody needs it
	NodePoweringUp   // it is on its way up
	NodePowerDown    // it goes to sleep when its jobs have ended
	NodeReboot       // it restarts when its jobs have ended
	NodeRebooting    // it was told to restart, and has not come back
	NodePoweringDown // it is on its way to sleep
)

// Asleep are the flags of a node that is not there because nobody needs it, or not yet.
const Asleep = NodePoweredDown | NodePoweringUp | NodePoweringDown

// Restart is what was asked of a node that is to restart.
type Restart struct {
	ASAP bool     `json:"asap,omitempty"` // the drain of a node that is asked to hurry ends with it
	Next NodeVerb `json:"next,omitempty"` // resume or down, when it is back; empty: as it was
}

// NodeFault is something wrong with a node that its agent, or the hub, has found.
type NodeFault struct {
	Check string `json:"check"` // disk, memory, mount, skew, gpu_processes, engine, program
	Text  string `json:"text"`
	Drain bool   `json:"drain,omitempty"` // it takes no new jobs; otherwise they are warned only
}

// FaultText tells what is wrong, in one line.
func FaultText(list []NodeFault) string {
	var out []string
	for _, f := range list {
		out = append(out, f.Text)
	}
	return strings.Join(out, "; ")
}

// Has reports whether all bits of g are set.
func (f NodeFlag) Has(g NodeFlag) bool { return f&g == g }

// Any reports whether some bit of g is set.
func (f NodeFlag) Any(g NodeFlag) bool { return f&g != 0 }

// LoginOnly reports whether the node never runs jobs.
func (n *Node) LoginOnly() bool { return n.Roles == Login }

// Usable reports whether new jobs may start on the node.
func (n *Node) Usable() bool {
	return n.Roles&Compute != 0 && !n.Flags.Any(NodeUnknown|NodeDown|NodeDrain|NodeSilent|NodeFailFlag|NodeFuture|
		NodePoweredDown|NodePoweringUp|NodePowerDown|NodePoweringDown|NodeRebooting)
}

// Wakeable reports whether a node that sleeps could be used once it is up.
func (n *Node) Wakeable() bool {
	// one that is being made has not been heard of
	if n.Flags.Has(NodeUnknown) && !n.Flags.Has(NodePoweringUp) && !n.Cloud {
		return false
	}
	return n.Roles&Compute != 0 && !n.Flags.Any(NodeDown|NodeDrain|NodeFailFlag|NodeFuture)
}

// Partition is a named view of nodes with limits. It comes from the config file.
type Partition struct {
	Name           PartitionName `json:"name"`
	Nodes          string        `json:"nodes"` // hostlist, or ALL
	Default        bool          `json:"default,omitempty"`
	State          string        `json:"state,omitempty"`        // UP (empty), DOWN, DRAIN, INACTIVE
	MaxTime        Seconds       `json:"max_time,omitempty"`     // 0: no limit
	DefaultTime    Seconds       `json:"default_time,omitempty"` // 0: MaxTime
	MaxNodes       int32         `json:"max_nodes,omitempty"`
	MinNodes       int32         `json:"min_nodes,omitempty"`
	DefMemPerCPU   Bytes         `json:"def_mem_per_cpu,omitempty"`
	MaxMemPerCPU   Bytes         `json:"max_mem_per_cpu,omitempty"` // who asks for more gets more CPUs
	MaxMemPerNode  Bytes         `json:"max_mem_per_node,omitempty"`
	PriorityTier   int32         `json:"priority_tier,omitempty"`
	PriorityFactor int32         `json:"priority_factor,omitempty"`
	OverSubscribe  string        `json:"oversubscribe,omitempty"` // NO (empty), YES[:n], FORCE[:n], EXCLUSIVE
	PreemptMode    PreemptMode   `json:"preempt_mode,omitempty"`  // how its jobs are preempted; empty: the cluster's
	Grace          Seconds       `json:"grace,omitempty"`         // for its jobs, when they are
	QOS            QOSName       `json:"qos,omitempty"`           // whose limits all its jobs are under
	AllowQOS       []QOSName     `json:"allow_qos,omitempty"`     // empty: all
	DenyQOS        []QOSName     `json:"deny_qos,omitempty"`
	AllowProjects  []ProjectName `json:"allow_accounts,omitempty"`
	DenyProjects   []ProjectName `json:"deny_accounts,omitempty"`
	AllowGroups    []string      `json:"allow_groups,omitempty"` // unix groups of submitters
	RootOnly       bool          `json:"root_only,omitempty"`
	ReqResv        bool          `json:"req_resv,omitempty"` // its jobs need an advance reservation
	MaxCPUsPerNode int32         `json:"max_cpus_per_node,omitempty"`
	LLN            bool          `json:"lln,omitempty"`            // least loaded nodes first
	ExclusiveUser  bool          `json:"exclusive_user,omitempty"` // a node has the jobs of one user at a time

	PartitionExtra
}

// PartitionExtra is what few partitions have.
type PartitionExtra struct {
	AllocNodes     string        `json:"alloc_nodes,omitempty"`      // hosts from which jobs may be submitted; empty: all
	Alternate      PartitionName `json:"alternate,omitempty"`        // takes the jobs while this one takes none
	CPUBind        string        `json:"cpu_bind,omitempty"`         // of steps that do not say, in Slurm's words
	DefMemPerNode  Bytes         `json:"def_mem_per_node,omitempty"` // in place of DefMemPerCPU
	DefCPUsPerGPU  int32         `json:"def_cpus_per_gpu,omitempty"`
	DefMemPerGPU   Bytes         `json:"def_mem_per_gpu,omitempty"`
	NoRoot         bool          `json:"no_root,omitempty"`         // root submits no jobs
	Hidden         bool          `json:"hidden,omitempty"`          // left out of listings, unless they are of all
	OverTime       Seconds       `json:"over_time,omitempty"`       // that jobs may exceed their limit by
	BillingWeights string        `json:"billing_weights,omitempty"` // what its resources cost, as written
}

// NoNodes is the node list of a partition that has none.
const NoNodes = "(null)"
