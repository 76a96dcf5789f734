package scontrol

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// changePartition makes or changes a partition.
func (s *session) changePartition(ctx context.Context, name string, pairs []pair, made bool) int {
	u := &client.PartitionChange{New: made}
	for i := range pairs {
		p := &pairs[i]
		set, known := partitionKeys()[p.key]
		var lines []string
		switch {
		case p.sign != 0 || !known:
			lines = []string{"Update of this parameter is not supported: " + p.text + "\n", "Request aborted"}
		default:
			lines = set(u, p)
		}
		if len(lines) == 0 {
			continue
		}
		if lines[0] == badJobDefaults { // the server's word, in Slurm
			fmt.Fprintf(s.w.Err, "slurm_update error: %s\n", badJobDefaults)
			return slurm.ExitError
		}
		for _, l := range lines {
			s.w.Errorf("%s", l)
		}
		if !made && !strings.HasPrefix(lines[0], "Invalid numeric value") {
			fmt.Fprintln(s.w.Err, "slurm_update error: No error")
		}
		return slurm.ExitError
	}
	c, err := s.client()
	if err == nil {
		err = c.ChangePartition(ctx, core.PartitionName(name), u)
	}
	switch {
	case err == nil:
		return 0
	case made:
		fmt.Fprintf(s.w.Err, "Error creating the partition: %s\n", slurm.ErrorTexts(err))
	default:
		fmt.Fprintf(s.w.Err, "slurm_update error: %s\n", slurm.ErrorTexts(err))
	}
	return slurm.ExitError
}

// partitionKey puts a value into a change; it returns what is wrong with it, a line each.
type partitionKey func(u *client.PartitionChange, p *pair) []string

// partitionKeys are the keys of a partition, in small letters.
var partitionKeys = sync.OnceValue(func() map[string]partitionKey {
	type change = client.PartitionChange
	keys := map[string]partitionKey{
		"allocnodes":         allOr(func(u *change) **string { return &u.AllocNodes }),
		"allowaccounts":      nameList(func(u *change) **[]string { return &u.AllowAccounts }),
		"allowgroups":        nameList(func(u *change) **[]string { return &u.AllowGroups }),
		"allowqos":           nameList(func(u *change) **[]string { return &u.AllowQOS }),
		"denyaccounts":       nameList(func(u *change) **[]string { return &u.DenyAccounts }),
		"denyqos":            nameList(func(u *change) **[]string { return &u.DenyQOS }),
		"alternate":          word(func(u *change) **string { return &u.Alternate }),
		"qos":                word(func(u *change) **string { return &u.QOS }),
		"nodes":              nodesKey,
		"cpubind":            bindKey,
		"defmempercpu":       megabytes("DefMemPerCPU", func(u *change) **core.Bytes { return &u.DefMemPerCPU }),
		"defmempernode":      megabytes("DefMemPerNode", func(u *change) **core.Bytes { return &u.DefMemPerNode }),
		"maxmempercpu":       megabytes("MaxMemPerCPU", func(u *change) **core.Bytes { return &u.MaxMemPerCPU }),
		"maxmempernode":      megabytes("MaxMemPerNode", func(u *change) **core.Bytes { return &u.MaxMemPerNode }),
		"default":            yesNo("Default", func(u *change) **bool { return &u.Default }),
		"disablerootjobs":    yesNo("DisableRootJobs", func(u *change) **bool { return &u.NoRoot }),
		"exclusiveuser":      yesNo("ExclusiveUser", func(u *change) **bool { return &u.ExclusiveUser }),
		"hidden":             yesNo("Hidden", func(u *change) **bool { return &u.Hidden }),
		"lln":                yesNo("LLN", func(u *change) **bool { return &u.LLN }),
		"reqresv":            yesNo("ReqResv", func(u *change) **bool { return &u.ReqResv }),
		"rootonly":           yesNo("RootOnly", func(u *change) **bool { return &u.RootOnly }),
		"defaulttime":        limitKey(func(u *change) **core.Seconds { return &u.DefaultTime }),
		"maxtime":            limitKey(func(u *change) **core.Seconds { return &u.MaxTime }),
		"gracetime":          secondsKey("GraceTime", 1, func(u *change) **core.Seconds { return &u.Grace }),
		"overtimelimit":      secondsKey("OverTimeLimit", 60, func(u *change) **core.Seconds { return &u.OverTime }),
		"jobdefaults":        jobDefaultsKey,
		"maxcpuspernode":     numberKey("MaxCPUsPerNode", func(u *change) **int32 { return &u.MaxCPUsPerNode }),
		"maxnodes":           numberKey("MaxNodes", func(u *change) **int32 { return &u.MaxNodes }),
		"minnodes":           numberKey("MinNodes", func(u *change) **int32 { return &u.MinNodes }),
		"oversubscribe":      shareKey,
		"preemptmode":        preemptKey,
		"state":              stateKey,
		"priorityjobfactor":  valueKey("PriorityJobFactor", func(u *change) **int32 { return &u.PriorityFactor }),
		"prioritytier":       valueKey("PriorityTier", func(u *change) **int32 { return &u.PriorityTier }),
		"tresbillingweights": word(func(u *change) **string { return &u.BillingWeights }),
	}
	keys["allowaccount"], keys["denyaccount"] = keys["allowaccounts"], keys["denyaccounts"]
	keys["shared"] = keys["oversubscribe"]
	keys["priority"] = func(u *change, p *pair) []string {
		if bad := keys["prioritytier"](u, p); bad != nil {
			return bad
		}
		return keys["priorityjobfactor"](u, p)
	}
	return keys
})

func word(at func(*client.PartitionChange) **string) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		*at(u) = &p.value
		return nil
	}
}

// allOr takes ALL as no restriction.
func allOr(at func(*client.PartitionChange) **string) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		value := p.value
		if strings.EqualFold(value, "ALL") {
			value = ""
		}
		*at(u) = &value
		return nil
	}
}

func nameList(at func(*client.PartitionChange) **[]string) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		list := []string{}
		if !strings.EqualFold(p.value, "ALL") {
			list = append(list, cmd.SplitList(p.value)...)
		}
		*at(u) = &list
		return nil
	}
}

func nodesKey(u *client.PartitionChange, p *pair) []string {
	nodes := p.value
	if nodes == "" {
		nodes = core.NoNodes
	}
	u.Nodes = &nodes
	return nil
}

// yesNo reads YES or NO.
func yesNo(name string, at func(*client.PartitionChange) **bool) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		yes := strings.EqualFold(p.value, "YES")
		if !yes && !strings.EqualFold(p.value, "NO") {
			return []string{"Invalid input: " + p.text, "Acceptable " + name + " values are YES and NO"}
		}
		*at(u) = &yes
		return nil
	}
}

func limitKey(at func(*client.PartitionChange) **core.Seconds) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		t, ok := timeLimit(p.value)
		if strings.EqualFold(p.value, "NONE") && p.key == "defaulttime" {
			t, ok = 0, true
		}
		if !ok {
			return []string{"Invalid input " + p.text}
		}
		*at(u) = &t
		return nil
	}
}

// secondsKey reads a number of units of so many seconds, or UNLIMITED.
func secondsKey(name string, unit int64, at func(*client.PartitionChange) **core.Seconds) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		t := core.Forever
		if !strings.EqualFold(p.value, "UNLIMITED") && !strings.EqualFold(p.value, "INFINITE") {
			n, err := strconv.ParseUint(p.value, 10, 31)
			if err != nil {
				return []string{"Invalid " + name + " value: " + p.value}
			}
			t = core.Seconds(int64(n) * unit)
		}
		*at(u) = &t
		return nil
	}
}

// numberKey reads a count, or UNLIMITED for none.
func numberKey(name string, at func(*client.PartitionChange) **int32) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		n := uint64(0)
		if !strings.EqualFold(p.value, "UNLIMITED") && !strings.EqualFold(p.value, "INFINITE") {
			var err error
			if n, err = strconv.ParseUint(p.value, 10, 31); err != nil {
				return []string{fmt.Sprintf("Invalid numeric value %q for %s.", p.value, name)}
			}
		}
		x := int32(n)
		*at(u) = &x
		return nil
	}
}

// valueKey reads a number.
func valueKey(name string, at func(*client.PartitionChange) **int32) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		n, err := strconv.ParseUint(p.value, 10, 31)
		if err != nil {
			return []string{"Invalid " + name + " value: " + p.value}
		}
		x := int32(n)
		*at(u) = &x
		return nil
	}
}

// megabytes reads MiB; 0 and UNLIMITED are none.
func megabytes(name string, at func(*client.PartitionChange) **core.Bytes) partitionKey {
	return func(u *client.PartitionChange, p *pair) []string {
		var b core.Bytes
		if !strings.EqualFold(p.value, "UNLIMITED") {
			n, err := strconv.ParseUint(p.value, 10, 40)
			if err != nil {
				return []string{"Invalid " + name + " value: " + p.value}
			}
			b = core.Bytes(n) * core.MiB
		}
		*at(u) = &b
		return nil
	}
}

func bindKey(u *client.PartitionChange, p *pair) []string {
	switch bind := strings.TrimSuffix(strings.ToLower(p.value), "s"); bind {
	case "none", "socket", "ldom", "core", "thread":
		u.CPUBind = &bind
	case "off", "":
		bind = ""
		u.CPUBind = &bind
	default:
		return []string{"Invalid input " + p.text}
	}
	return nil
}

func stateKey(u *client.PartitionChange, p *pair) []string {
	switch state := strings.ToUpper(p.value); state {
	case "UP", "DOWN", "DRAIN", "INACTIVE":
		u.State = &state
		return nil
	}
	return []string{"Invalid input: " + p.text, "Acceptable State values are UP, DOWN, DRAIN and INACTIVE"}
}

func shareKey(u *client.PartitionChange, p *pair) []string {
	mode := strings.ToUpper(p.value)
	if _, _, _, ok := grammar.ParseSharing(mode); !ok || mode == "" {
		return []string{"Invalid input: " + p.text, "Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#"}
	}
	if mode == "YES" || mode == "FORCE" {
		mode += ":4" // Slurm's own number
	}
	u.OverSubscribe = &mode
	return nil
}

func preemptKey(u *client.PartitionChange, p *pair) []string {
	mode := strings.ToLower(p.value)
	if !core.PreemptMode(mode).Valid() || mode == "" {
		return []string{"Invalid input: " + p.text}
	}
	u.PreemptMode = &mode
	return nil
}

const badJobDefaults = "Invalid JobDefaults specification"

// jobDefaultsKey reads DefCpuPerGPU=N,DefMemPerGPU=MEGABYTES; nothing takes them away.
func jobDefaultsKey(u *client.PartitionChange, p *pair) []string {
	cpus, mem := int32(0), core.Bytes(0)
	for _, word := range cmd.SplitList(p.value) {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseUint(value, 10, 31)
		switch {
		case err == nil && strings.EqualFold(key, "DefCpuPerGPU"):
			cpus = int32(n)
		case err == nil && strings.EqualFold(key, "DefMemPerGPU"):
			mem = core.Bytes(n) * core.MiB
		default:
			return []string{badJobDefaults}
		}
	}
	u.DefCPUsPerGPU, u.DefMemPerGPU = &cpus, &mem
	return nil
}
