package conf

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/mpi"
)

const forever = config.TimeLimit(core.Forever)

// known are the keys with a meaning to us, in lower case.
var known = map[string]set{
	"clustername": func(v *converter, s Setting) error { v.cfg.Cluster = strings.ToLower(s.Value); return nil },
	"slurmuser": func(v *converter, s Setting) error {
		name, _, _ := strings.Cut(s.Value, "(")
		if name != "root" { // who is one anyway
			v.cfg.Admins = append(v.cfg.Admins, name)
			v.cfg.Server.UserTriggers = false // as Slurm, unless its user is root
		}
		return nil
	},
	"selecttypeparameters": selectParameters,
	"maxjobcount":          toInt64(func(c *config.Config) *int64 { return &c.Jobs.MaxJobs }, 1<<31),
	"maxtaskspernode":      toInt64(func(c *config.Config) *int64 { return &c.Jobs.MaxTasks }, 65533),
	"maxarraysize":         toInt64(func(c *config.Config) *int64 { return &c.Jobs.MaxArray }, 4_000_001),
	"maxstepcount":         toInt64(func(c *config.Config) *int64 { return &c.Limits.StepsPerJob }, 1<<31-1),
	"maxmempernode": func(v *converter, s Setting) (err error) {
		v.maxMemPerNode, err = mebibytes(s.Value)
		return err
	},
	"maxmempercpu": func(v *converter, s Setting) (err error) {
		v.maxMemPerCPU, err = mebibytes(s.Value)
		return err
	},
	"jobacctgatherfrequency": sampleEvery,
	"defmempercpu":           toSize(func(c *config.Config) *config.Size { return &c.Jobs.DefMemPerCPU }),
	"killwait":               toSeconds(func(c *config.Config) *config.Duration { return &c.Timers.KillWait }),
	"maxbatchrequeue":        maxRequeues,
	"requeueexit":            exitCodes(func(c *config.Config) *string { return &c.Jobs.RequeueExit }),
	"requeueexithold":        exitCodes(func(c *config.Config) *string { return &c.Jobs.RequeueExitHold }),
	"minjobage":              toSeconds(func(c *config.Config) *config.Duration { return &c.Jobs.MinAge }),
	"waittime":               toSeconds(func(c *config.Config) *config.Duration { return &c.Jobs.WaitTime }),
	"jobrequeue":             toFlag(func(c *config.Config) *bool { return &c.Jobs.MayRequeue }),
	"jobfileappend":          toFlag(func(c *config.Config) *bool { return &c.Jobs.AppendOutput }),
	"killonbadexit":          toFlag(func(c *config.Config) *bool { return &c.Jobs.KillOnBadExit }),
	"dependencyparameters":   dependencyParameters,
	"prologflags":            prologFlags,
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
	"authaltparameters":             authParameters,
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
	"jobsubmitplugins": submitPlugins, "jobcomptype": completions, "jobcomploc": completions,
	"overtimelimit": func(v *converter, s Setting) (err error) {
		v.all.OverTime, err = overTime(s.Value)
		return err
	},
	"disablerootjobs": func(v *converter, s Setting) (err error) {
		v.all.NoRoot, err = yes(s.Value)
		return err
	},
	"defmempernode": func(v *converter, s Setting) (err error) {
		v.all.DefMemPerNode, err = mebibytes(s.Value)
		return err
	},
	"defcpupergpu": func(v *converter, s Setting) error {
		n, err := integer(s.Value, 1<<20)
		v.all.DefCPUsPerGPU = int32(n)
		return err
	},
	"defmempergpu": func(v *converter, s Setting) (err error) {
		v.all.DefMemPerGPU, err = mebibytes(s.Value)
		return err
	},
	"jobdefaults": func(v *converter, s Setting) error {
		return JobDefaults(s.Value, &v.all.DefCPUsPerGPU, &v.all.DefMemPerGPU)
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
		switch kind := strings.ToLower(s.Value); {
		case kind == "none" || kind == "pmi2":
			v.cfg.Step.MPI = kind
		case mpi.IsPMIx(kind):
			v.cfg.Step.MPI = "pmix"
		default:
			v.cfg.Step.MPI = "none"
			v.note(s.Where, s.Key, s.Value, notYet)
		}
		return nil
	},
	"proctracktype": processKeys, "taskplugin": processKeys, // read together with cgroup.conf, see cgroup
}

func processKeys(*converter, Setting) error { return nil }

// sampleEvery reads JobAcctGatherFrequency: seconds, or task=SECONDS among those of other sources.
func sampleEvery(v *converter, s Setting) error {
	for word := range strings.SplitSeq(s.Value, ",") {
		name, value, named := strings.Cut(strings.ToLower(word), "=")
		if !named {
			name, value = "task", name
		}
		d, err := seconds(value)
		switch {
		case err != nil:
			return err
		case name == "task":
			v.cfg.GPU.Sample = d
		case name != "energy" && name != "network" && name != "filesystem":
			return fmt.Errorf("%q: expected task, energy, network or filesystem", name)
		}
	}
	return nil
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
		default:
			v.other("cgroup.conf", s.Where, Pair{s.Key, s.Value})
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

// authParameters says which JWTs are taken: jwt_key=FILE, jwks=FILE, userclaimfield=NAME, disable_token_creation.
func authParameters(v *converter, s Setting) error {
	set := &v.cfg.Tokens
	for word := range strings.SplitSeq(s.Value, ",") {
		switch key, value, _ := strings.Cut(strings.TrimSpace(word), "="); strings.ToLower(key) {
		case "jwt_key":
			set.JWTKey = value
		case "jwks":
			set.JWKS = value
		case "userclaimfield":
			set.JWTUserClaim = value
		case "disable_token_creation":
			set.JWTAdminsOnly = true
		case "":
		default:
			return fmt.Errorf("%q: expected jwt_key=, jwks=, userclaimfield= or disable_token_creation", word)
		}
	}
	return nil
}
