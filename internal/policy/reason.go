package policy

import "bireme.dev/bireme/internal/core"

// scope is whose limit it is; the words of reasons begin with it.
type scope string

const (
	ofAssoc scope = "Assoc"
	ofQOS   scope = "QOS"
)

// Which limit of TRES a reason is about.
type form uint8

const (
	grp form = iota
	grpMins
	grpRunMins
	perJob
	perNode
	minsPerJob
	perUser
	perProject
	runMinsPerUser
	runMinsPerProject
	minPerJob
)

// reasonOf is Slurm's word for a limit on a resource. The words are irregular: clients match on them as they are.
func reasonOf(s scope, f form, name string) core.Reason {
	k := kindOf(name)
	word := [...]string{
		kindUnknown: "Unknown", kindCPU: "Cpu", kindMem: "Mem", kindNode: "Node", kindGRES: "GRES",
		kindLicense: "License", kindEnergy: "Energy", kindBB: "BB", kindBilling: "Billing",
	}[k]
	long := word
	if k == kindMem {
		long = "Memory"
	}
	if s == ofQOS && f != grp {
		word = long
	}
	limit := "" // some words end in Limit
	if k == kindCPU || k == kindNode || k == kindMem && f == grp {
		limit = "Limit"
	}
	cpuLimit := ""
	if k == kindCPU {
		cpuLimit = "Limit"
	}
	upper := word
	if k == kindCPU {
		upper = "CPU"
	}
	p := string(s)
	switch f {
	case grp:
		p += "Grp" + word + limit
	case grpMins:
		p += "Grp" + upper + "Minutes" + cpuLimit
	case grpRunMins:
		p += "Grp" + upper + "RunMinutes" + cpuLimit
	case perJob:
		p += "Max" + word + "PerJob" + limit
	case perNode:
		p += "Max" + word + "PerNode"
	case minsPerJob:
		p += "Max" + word + "MinutesPerJob" + cpuLimit
	case perUser:
		p += "Max" + word + "PerUser" + limit
	case perProject:
		p = "Max" + long + "PerAccount"
	case runMinsPerUser:
		p = "Max" + long + "RunMinsPerUser"
	case runMinsPerProject:
		p = "Max" + long + "RunMinsPerAccount"
	case minPerJob:
		p += "Min" + word
		if k == kindCPU {
			p += "NotSatisfied"
		}
	}
	return core.Reason(p)
}

// ReasonUsageThreshold says that the job's fair-share is below what its QOS asks for.
const ReasonUsageThreshold core.Reason = "QOSUsageThreshold"
