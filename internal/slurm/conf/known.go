package conf

import (
	"fmt"
	"strings"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

const forever = config.TimeLimit(core.Forever)

// known are the keys with a meaning to us, in lower case.
var known = map[string]set{
	"clustername": func(v *converter, s Setting) error { v.cfg.Cluster = strings.ToLower(s.Value); return nil },
	"slurmuser": func(v *converter, s Setting) error {
		name, _, _ := strings.Cut(s.Value, "(")
		if name != "root" { // who is one anyway
			v.cfg.Admins = append(v.cfg.Admins, name)
		}
		return nil
	},
	"selecttypeparameters": selectParameters,
	"maxjobcount":          toInt64(func(c *config.Config) *int64 { return &c.Jobs.MaxJobs }, 1<<31),
	"maxtaskspernode":      toInt64(func(c *config.Config) *int64 { return &c.Jobs.MaxTasks }, 65533),
	"maxarraysize":         toInt64(func(c *config.Config) *int64 { return &c.Jobs.MaxArray }, 4_000_001),
	"defmempercpu":         toSize(func(c *config.Config) *config.Size { return &c.Jobs.DefMemPerCPU }),
	"killwait":             toSeconds(func(c *config.Config) *config.Duration { return &c.Timers.KillWait }),
	"slurmdtimeout":        silentAfter,
	"maxbatchrequeue":      maxRequeues,
	"resvoverrun": func(v *converter, s Setting) error {
		t, err := span(s.Value)
		v.cfg.Jobs.ResvOverrun = config.TimeLimit(t)
		return err
	},
	"unkillablesteptimeout": toSeconds(func(c *config.Config) *config.Duration {
		return &c.Timers.UnkillableAfter
	}),
	"prologepilogtimeout": toSeconds(func(c *config.Config) *config.Duration { return &c.Step.PrologTimeout }),
	"prolog": func(v *converter, s Setting) error {
		v.cfg.Step.Prolog = append(v.cfg.Step.Prolog, s.Value)
		return nil
	},
	"epilog": func(v *converter, s Setting) error {
		v.cfg.Step.Epilog = append(v.cfg.Step.Epilog, s.Value)
		return nil
	},
	"taskprolog": func(v *converter, s Setting) error {
		v.cfg.Step.TaskProlog = append(v.cfg.Step.TaskProlog, s.Value)
		return nil
	},
	"taskepilog": func(v *converter, s Setting) error {
		v.cfg.Step.TaskEpilog = append(v.cfg.Step.TaskEpilog, s.Value)
		return nil
	},
	"propagateresourcelimits":       propagateLimits,
	"propagateresourcelimitsexcept": propagateExcept,
	"srunprolog":                    func(v *converter, s Setting) error { v.cfg.Step.SrunProlog = s.Value; return nil },
	"srunepilog":                    func(v *converter, s Setting) error { v.cfg.Step.SrunEpilog = s.Value; return nil },
	"mailprog":                      func(v *converter, s Setting) error { v.cfg.Mail.Program = s.Value; return nil },
	"maildomain":                    func(v *converter, s Setting) error { v.cfg.Mail.Domain = s.Value; return nil },
	"privatedata": func(v *converter, s Setting) error {
		v.cfg.PrivateData = strings.Split(s.Value, ",")
		_, err := config.ParsePrivate(v.cfg.PrivateData)
		return err
	},
	"healthcheckprogram":   func(v *converter, s Setting) error { v.cfg.Health.Program = s.Value; return nil },
	"healthcheckinterval":  toSeconds(func(c *config.Config) *config.Duration { return &c.Health.Interval }),
	"healthchecknodestate": healthStates,
	"rebootprogram":        func(v *converter, s Setting) error { v.cfg.Reboot.Program = s.Value; return nil },
	"suspendprogram":       func(v *converter, s Setting) error { v.cfg.Power.SuspendProgram = s.Value; return nil },
	"resumeprogram":        func(v *converter, s Setting) error { v.cfg.Power.ResumeProgram = s.Value; return nil },
	"resumefailprogram":    func(v *converter, s Setting) error { v.cfg.Power.ResumeFailProgram = s.Value; return nil },
	"suspendtime":          suspendTime,
	"suspendtimeout":       toSeconds(func(c *config.Config) *config.Duration { return &c.Power.SuspendTimeout }),
	"resumetimeout":        resumeTimeout,
	"suspendexcnodes":      func(v *converter, s Setting) error { v.cfg.Power.ExcludeNodes = s.Value; return nil },
	"suspendexcparts": func(v *converter, s Setting) error {
		v.cfg.Power.ExcludePartitions = strings.Split(s.Value, ",")
		return nil
	},
	"enforcepartlimits": func(v *converter, s Setting) error {
		v.cfg.Jobs.StrictSubmit = strings.EqualFold(s.Value, "ALL") || strings.EqualFold(s.Value, "ANY") ||
			strings.EqualFold(s.Value, "YES")
		return nil
	},

	"prioritytype": func(v *converter, s Setting) error {
		switch kind := strings.TrimPrefix(strings.ToLower(s.Value), "priority/"); kind {
		case "basic", "multifactor":
			v.cfg.Priority.Type = kind
			return nil
		}
		return fmt.Errorf("expected priority/basic or priority/multifactor")
	},
	"priorityweightage":       toInt64(func(c *config.Config) *int64 { return &c.Priority.Weights.Age }, 1<<32-1),
	"priorityweightassoc":     toInt64(func(c *config.Config) *int64 { return &c.Priority.Weights.Assoc }, 1<<32-1),
	"priorityweightfairshare": toInt64(func(c *config.Config) *int64 { return &c.Priority.Weights.FairShare }, 1<<32-1),
	"priorityweightjobsize":   toInt64(func(c *config.Config) *int64 { return &c.Priority.Weights.JobSize }, 1<<32-1),
	"priorityweightpartition": toInt64(func(c *config.Config) *int64 { return &c.Priority.Weights.Partition }, 1<<32-1),
	"priorityweightqos":       toInt64(func(c *config.Config) *int64 { return &c.Priority.Weights.QOS }, 1<<32-1),
	"priorityweighttres":      func(v *converter, s Setting) error { v.cfg.Priority.Weights.TRES = s.Value; return nil },
	"prioritymaxage":          toTime(func(c *config.Config) *config.Duration { return &c.Priority.MaxAge }),
	"prioritydecayhalflife":   toTime(func(c *config.Config) *config.Duration { return &c.Priority.HalfLife }),
	"licenses": func(v *converter, s Setting) error {
		v.cfg.Licenses = append(v.cfg.Licenses, strings.FieldsFunc(s.Value, func(r rune) bool {
			return r == ',' || r == ';'
		})...)
		return nil
	},
	"priorityusageresetperiod": func(v *converter, s Setting) error {
		v.cfg.Priority.Reset = strings.ToLower(s.Value)
		return nil
	},
	"prioritycalcperiod": toTime(func(c *config.Config) *config.Duration { return &c.Priority.CalcPeriod }),
	"fairsharedampeningfactor": toInt64(func(c *config.Config) *int64 {
		return &c.Priority.Dampening
	}, 1<<31),
	"priorityfavorsmall": func(v *converter, s Setting) (err error) {
		v.cfg.Priority.FavorSmall, err = yes(s.Value)
		return err
	},
	"priorityflags": func(v *converter, s Setting) error {
		v.cfg.Priority.Flags = strings.Split(s.Value, ",")
		return nil
	},
	"topologyplugin":      topologyPlugin,
	"schedulertype":       schedulerType,
	"schedulerparameters": schedulerParameters,
	"accountingstoreflags": func(v *converter, s Setting) error {
		v.cfg.Accounting.Store = strings.Split(strings.ToLower(s.Value), ",")
		return nil
	},
	"accountingstorageenforce": func(v *converter, s Setting) error {
		words := []string{"none"} // nothing is enforced that is not named
		for word := range strings.SplitSeq(strings.ToLower(s.Value), ",") {
			switch word {
			case "none", "0":
			case "1":
				words = append(words, "associations")
			case "associations", "limits", "qos", "safe", "all":
				words = append(words, word)
			default:
				v.note(s.Where, s.Key, word, notYet)
			}
		}
		v.cfg.Accounting.Enforce = words
		return nil
	},

	"mpidefault": func(v *converter, s Setting) error {
		switch kind := strings.ToLower(s.Value); kind {
		case "none", "pmi2":
			v.cfg.Step.MPI = kind
		default:
			v.cfg.Step.MPI = "none"
			v.note(s.Where, s.Key, s.Value, notYet)
		}
		return nil
	},
	"proctracktype": processKeys, "taskplugin": processKeys, // read together with cgroup.conf, see cgroup
}

func processKeys(*converter, Setting) error { return nil }

func silentAfter(v *converter, s Setting) error {
	d, err := seconds(s.Value)
	if err == nil && d.D() < 3*time.Second {
		return fmt.Errorf("3 seconds are the least")
	}
	if err == nil { // two missed heartbeats make a node silent long before; this is when its jobs are given up
		v.note(s.Where, s.Key, s.Value, "a silent node keeps its jobs; see timers.fence")
	}
	return err
}

// healthStates reads HealthCheckNodeState. Slurm's program drains by itself; ours also does when it fails.
func healthStates(v *converter, s Setting) error {
	h := &v.cfg.Health
	for word := range strings.SplitSeq(strings.ToLower(s.Value), ",") {
		switch word {
		case "any", "idle", "nondrained_idle", "mixed", "alloc":
			h.States = append(h.States, word)
		case "cycle":
			h.Cycle = true
		case "start_only":
			v.once = true
		default:
			return fmt.Errorf("%q: ANY, ALLOC, CYCLE, IDLE, NONDRAINED_IDLE, MIXED and START_ONLY are known", word)
		}
	}
	return nil
}

func maxRequeues(v *converter, s Setting) error {
	n, err := integer(s.Value, 1<<20)
	v.cfg.Jobs.MaxRequeues = int32(n)
	return err
}

// cgroup takes from ProctrackType, TaskPlugin and cgroup.conf what holds jobs to what they asked for.
func (v *converter) cgroup() {
	task, _ := v.conf.Get("TaskPlugin")
	on := strings.Contains(strings.ToLower(task), "task/cgroup") || strings.EqualFold(task, "cgroup")
	st := &v.cfg.Step
	st.ConstrainCPUs, st.ConstrainMem, st.ConstrainDevices = false, false, false
	for _, s := range v.conf.Cgroup {
		var at *bool
		switch strings.ToLower(s.Key) {
		case "constraincores":
			at = &st.ConstrainCPUs
		case "constrainramspace":
			at = &st.ConstrainMem
		case "constraindevices":
			at = &st.ConstrainDevices
		case "cgroupplugin", "cgroupmountpoint", "cgroupautomount", "ignoresystemd", "ignoresystemdonfailure":
			continue // the kernel's hierarchy is found, whichever it is
		default:
			v.note(s.Where, s.Key, s.Value, notYet)
			continue
		}
		is, err := yes(s.Value)
		if err != nil {
			v.fault(s.Where, "%s=%s: %v", s.Key, s.Value, err)
		}
		if *at = is && on; is && !on {
			v.note(s.Where, s.Key, s.Value, "TaskPlugin has no task/cgroup")
		}
	}
}

const (
	ownWay  = "Bireme's processes find and trust each other in their own way"
	ownPath = "Bireme keeps its files under its own folder"
)

// needless are keys that have nothing to say here, with the reason.
var needless = map[string]string{
	"slurmctldhost": ownWay, "controlmachine": ownWay, "controladdr": ownWay, "slurmctldaddr": ownWay,
	"slurmctldport": ownWay, "slurmdport": ownWay, "slurmduser": "agents run as root",
	"authtype": ownWay, "authinfo": ownWay, "authalttypes": ownWay, "authaltparameters": ownWay, "credtype": ownWay,
	"cryptotype": ownWay, "treewidth": ownWay,
	"communicationparameters": ownWay, "messagetimeout": ownWay, "tcptimeout": ownWay, "tlstype": ownWay,
	"srunportrange":     ownWay,
	"statesavelocation": ownPath, "slurmdspooldir": ownPath, "slurmctldpidfile": ownPath, "slurmdpidfile": ownPath,
	"slurmctldlogfile": ownPath, "slurmdlogfile": ownPath, "plugindir": "there are no plug-ins",
	"plugstackconfig": "there are no plug-ins",
	"slurmctlddebug":  "logs have one level", "slurmddebug": "logs have one level",
	"slurmctldtimeout":      "leadership has its own lease, timers.lease",
	"accountingstoragetype": "the store keeps the accounts", "accountingstoragehost": "the store keeps the accounts",
	"accountingstorageport": "the store keeps the accounts",
	"accountingstoragepass": "the store keeps the accounts", "accountingstorageuser": "the store keeps the accounts",
	"accountingstoragebackuphost": "the store keeps the accounts",
	"accountingstoragetres":       "all resources are accounted", "jobacctgathertype": "usage is always measured",
	"jobacctgatherfrequency": "usage is always measured",
	"jobcomptype":            "the store keeps all jobs", "jobcomploc": "the store keeps all jobs",
	"grestypes": "nodes tell what they have", "switchtype": "there are no switch plug-ins",
	"returntoservice": "a node that answers is used", "slurmdparameters": "emulated nodes are as described",
	"selecttype": "all resources are accounted, as cons_tres",
}
