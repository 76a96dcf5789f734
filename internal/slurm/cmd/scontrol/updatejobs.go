package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// updateByName changes all live jobs of a name, those of one user if the command says which.
func (s jobVerbs) updateByName(ctx context.Context, pairs []pair) int {
	name, uid, rest := pairs[0].value, "", []pair{}
	for _, p := range pairs[1:] {
		if jobKey(p.key) != "userid" {
			rest = append(rest, p)
			continue
		}
		id, ok := userID(p.value)
		if !ok || p.sign != 0 {
			fmt.Fprintf(s.w.Err, "Invalid UserID: %s\nRequest aborted\n", p.value)
			return slurm.ExitError
		}
		uid = strconv.FormatUint(uint64(id), 10)
	}
	if name == "" { // no job has this name; to the server it is no condition
		s.w.Errorf("No jobs with name ''")
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Jobs(ctx, client.JobsQuery{Names: []string{name}})
	if err != nil {
		return s.w.LoadFailed("slurm_load_jobs error", err)
	}
	var ids []string
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if uid == "" || strconv.FormatUint(uint64(j.Spec.UID), 10) == uid {
			ids = append(ids, strconv.FormatInt(int64(j.ID), 10))
		}
	}
	switch {
	case len(ids) > 0:
		return s.updateJobs(ctx, strings.Join(ids, ","), rest)
	case uid != "":
		s.w.Errorf("No jobs with user ID %s and name '%s'", uid, name)
	default:
		s.w.Errorf("No jobs with name '%s'", name)
	}
	return slurm.ExitError
}

// userID reads the number of a user, or a name.
func userID(text string) (uint32, bool) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return uint32(n), true
	}
	u, err := account.ByName(text)
	if err != nil {
		return 0, false
	}
	return u.UID, true
}

// jobKeys are the keys of an update of jobs, each with the fewest letters that stand for it: the first that matches.
var jobKeys = []struct {
	name  string
	least int
}{
	{"JobId", 3},
	{"AdminComment", 3},
	{"ArrayTaskThrottle", 10},
	{"Comment", 3},
	{"Clusters", 8},
	{"ClusterFeatures", 8},
	{"DelayBoot", 5},
	{"TimeLimit", 5},
	{"TimeMin", 5},
	{"Priority", 2},
	{"SiteFactor", 5},
	{"Nice", 2},
	{"CPUsPerTask", 9},
	{"NumCPUs", 6},
	{"ReqProcs", 4},
	{"NumTasks", 8},
	{"Requeue", 4},
	{"NumNodes", 8},
	{"ReqNodes", 8},
	{"ReqSockets", 4},
	{"ReqCores", 4},
	{"TasksPerNode", 2},
	{"ReqThreads", 4},
	{"MinCPUsNode", 4},
	{"MinMemoryNode", 10},
	{"MinMemoryCPU", 10},
	{"MinTmpDiskNode", 5},
	{"Partition", 2},
	{"QOS", 2},
	{"ReservationName", 3},
	{"Name", 2},
	{"JobName", 4},
	{"WCKey", 1},
	{"StdOut", 6},
	{"Switches", 5},
	{"Wait-for-switch", 5},
	{"OverSubscribe", 2},
	{"Shared", 2},
	{"Contiguous", 3},
	{"CoreSpec", 4},
	{"ThreadSpec", 4},
	{"ExcNodeList", 3},
	{"NodeList", 8},
	{"ReqNodeList", 8},
	{"Features", 1},
	{"Gres", 2},
	{"TresPerJob", 8},
	{"TresPerNode", 8},
	{"Prefer", 3},
	{"Account", 1},
	{"BurstBuffer", 1},
	{"Dependency", 1},
	{"Licenses", 1},
	{"EligibleTime", 2},
	{"StartTime", 2},
	{"EndTime", 2},
	{"Reboot", 3},
	{"UserID", 3},
	{"Deadline", 3},
	{"MailType", 5},
	{"MailUser", 5},
	{"WorkDir", 2},
	{"ResetAccrueTime", 5},
}

// sameKeys are keys that mean another.
var sameKeys = map[string]string{
	"jobname": "name", "reqnodes": "numnodes", "reqprocs": "numcpus", "shared": "oversubscribe",
	"eligibletime": "starttime",
}

// jobKey is a key's whole name, in lower case.
func jobKey(word string) string {
	name := strings.ToLower(jobKeyName(word))
	return cmp.Or(sameKeys[name], name)
}

// jobKeyName is a key's whole name as Slurm writes it; one that is unknown stays as it is.
func jobKeyName(word string) string {
	for _, exact := range []bool{true, false} {
		for _, k := range jobKeys {
			if strings.EqualFold(k.name, word) || !exact && len(word) >= k.least && len(word) <= len(k.name) &&
				strings.EqualFold(k.name[:len(word)], word) {
				return k.name
			}
		}
	}
	return word
}

func (s jobVerbs) updateJobs(ctx context.Context, ids string, pairs []pair) int {
	u := &client.Update{}
	var relative *pair
	changes := false
	for i := range pairs {
		p := &pairs[i]
		given := p.key
		if p.key = jobKey(p.key); p.key == "userid" {
			continue
		}
		if p.key == "timelimit" && p.sign == 0 && len(p.value) > 1 && p.value != "-1" &&
			strings.ContainsRune("+-", rune(p.value[0])) { // as += and -= are
			p.sign, p.value = p.value[0], p.value[1:]
		}
		if p.sign != 0 && p.key != "timelimit" {
			s.w.Errorf("Option %s does not accept [+|-]= syntax", p.text)
			return slurm.ExitError
		}
		changes = true
		if p.key == "endtime" || p.sign != 0 {
			relative = p
			continue
		}
		if p.key == "wait-for-switch" {
			if code := s.waitForSwitch(ctx, ids, p, u); code != 0 {
				return code
			}
			continue
		}
		known, ok := s.setJobKey(p, u)
		switch {
		case ok:
		case strings.HasPrefix(known, "Invalid MailType: "):
			fmt.Fprintln(s.w.Err, known)
			return slurm.ExitError
		case strings.HasPrefix(known, "Invalid time specification"):
			fmt.Fprintf(s.w.Err, "%s\nNo changes specified\n", known)
			return slurm.ExitError
		case known != "":
			s.w.Errorf("%s", known)
			return slurm.ExitError
		case refusedKeys[p.key] != "":
			fmt.Fprintf(s.w.Err, "%s for job %s\n", refusedKeys[p.key], ids)
			return slurm.ExitError
		default:
			p.key = given
			return s.unknownKey(*p)
		}
	}
	if !changes {
		fmt.Fprintln(s.w.Err, "No changes specified")
		return slurm.ExitError
	}
	if relative != nil {
		if code := s.addTime(ctx, ids, relative, u); code != 0 {
			return code
		}
	}
	code := s.each(ctx, []string{ids}, "", u)
	if code == 0 && (u.Nodes != nil || u.NodeList != nil) {
		s.writeResized(ctx, ids)
	}
	return code
}

// isHeld reports whether somebody holds a job: only its release gives it a priority.
func isHeld(ctx context.Context, c *client.Client, id string) bool {
	list, err := c.Job(ctx, id)
	return err == nil && slices.ContainsFunc(list.Jobs, func(j client.Job) bool {
		return j.State == core.Pending && j.Flags.Any(core.HeldUser|core.HeldAdmin)
	})
}

// refusedKeys are keys of which Slurm 22.05 says why they do not change.
var refusedKeys = map[string]string{
	"burstbuffer":     "Requested operation not supported on this system",
	"clusters":        "Unspecified error",
	"clusterfeatures": "Unspecified error",
	"corespec":        "Access/permission denied",
	"threadspec":      "Access/permission denied",
}

// setJobKey puts the value of a key into an update. Without ok it says what is wrong with the value of a key that it
// knows.
func (s jobVerbs) setJobKey(p *pair, u *client.Update) (wrong string, ok bool) {
	when := func(to **core.Time) (string, bool) {
		t, err := grammar.ParseMoment(p.value, s.w.Now(), grammar.Upcoming)
		if err != nil {
			return cmd.BadMoment(p.value, err), false
		}
		at := core.At(t)
		*to = &at
		return "", true
	}
	limit := func(to **core.Seconds) bool {
		least, valid := timeLimit(p.value)
		*to = &least
		return valid
	}
	switch p.key {
	case "mailuser":
		return "", text(&u.MailUser, p.value)
	case "mailtype":
		list, valid := slurm.MailTypes(p.value)
		u.MailTypes = &list
		return "Invalid MailType: " + p.value, valid
	case "timelimit":
		return "Invalid TimeLimit value", limit(&u.TimeLimit)
	case "timemin":
		return "Invalid TimeMin value", limit(&u.TimeMin)
	case "nice":
		if p.value == "" {
			p.value = "100"
		}
		return "Invalid Nice value: " + p.value, number(&u.Nice, p.value)
	case "priority":
		return "Invalid Priority value: " + p.value, priority(p.value, u)
	case "name":
		return "", text(&u.Name, p.value)
	case "partition":
		part := core.ParsePartitions(p.value)
		u.Partition = &part
		return "", true
	case "qos":
		return "", text(&u.QOS, p.value)
	case "sitefactor":
		valid := number(&u.Site, p.value) && *u.Site >= -maxSite && *u.Site <= maxSite
		return fmt.Sprintf("SiteFactor value out of range (+/- %d). Value ignored", maxSite), valid
	case "comment":
		return "", text(&u.Comment, p.value)
	case "dependency":
		parse(&u.Dependency, p.value)
		return "", true
	case "reservationname":
		return "", text(&u.Reservation, p.value)
	case "licenses":
		parse(&u.Licenses, p.value)
		return "", true
	case "deadline":
		return when(&u.Deadline)
	case "starttime":
		return when(&u.Begin)
	case "resetaccruetime":
		u.ResetAge = true
		return "", true
	}
	known, ok := ask(p, u)
	if known && !ok {
		name, _, _ := strings.Cut(p.text, "=")
		wrong = fmt.Sprintf("Invalid %s value", jobKeyName(name))
		if p.key != "delayboot" {
			wrong += ": " + p.value
		}
		if _, err := strconv.ParseFloat(p.value, 64); err != nil && p.key == "numcpus" {
			s.w.Errorf("Invalid numeric value %q for NumCPUs.", p.value)
		}
		return wrong, false
	}
	return "", ok
}

// maxSite is the largest site factor, either way.
const maxSite = 2147483645

func number(to **int32, text string) bool {
	n, err := strconv.ParseInt(text, 10, 32)
	n32 := int32(n)
	*to = &n32
	return err == nil
}

// priority reads a priority; as in Slurm 0 is a hold.
func priority(text string, u *client.Update) bool {
	n, err := strconv.ParseUint(text, 10, 32)
	prio := uint32(n)
	if err == nil && prio == 0 {
		hold := true
		u.Hold = &hold
		return true
	}
	u.Priority = &prio
	return err == nil
}

// waitForSwitch changes how long a job waits for its switches, if it asks for any.
func (s jobVerbs) waitForSwitch(ctx context.Context, id string, p *pair, u *client.Update) int {
	n, err := strconv.ParseUint(p.value, 10, 31)
	if err != nil {
		s.w.Errorf("Invalid wait-for-switch value: %s", p.value)
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Job(ctx, id)
	if err != nil || len(list.Jobs) == 0 {
		fmt.Fprintf(s.w.Err, "Invalid job id specified for job %s\n", id)
		return slurm.ExitError
	}
	given := list.Jobs[0].Spec.More().Switches
	if !given.IsZero() { // else there is nothing to wait for
		parse(&u.Switches, fmt.Sprintf("%d@%s", given.Count(), grammar.FormatClock(int64(n))))
	}
	return 0
}

func (s *session) badValue(p pair) int {
	fmt.Fprintf(s.w.Err, "Invalid value for %s: %s\nRequest aborted\n", p.key, p.value)
	return slurm.ExitError
}

func timeLimit(text string) (core.Seconds, bool) {
	m, err := grammar.ParseTimeLimit(text)
	switch {
	case err != nil:
		return 0, false
	case m == grammar.Unlimited:
		return core.Forever, true
	}
	return core.Seconds(m * 60), true
}

// addTime turns TimeLimit+= and -=, and EndTime of a job that runs, into a limit, from what the job has.
func (s jobVerbs) addTime(ctx context.Context, id string, p *pair, u *client.Update) int {
	delta, ok := core.Seconds(0), true
	var end time.Time
	if p.key == "endtime" {
		var err error
		end, err = grammar.ParseMoment(p.value, s.w.Now(), grammar.Upcoming)
		ok = err == nil
	} else {
		delta, ok = timeLimit(p.value)
		ok = ok && delta < core.Forever
	}
	if !ok {
		return s.badValue(*p)
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Job(ctx, id)
	if err != nil || len(list.Jobs) == 0 {
		fmt.Fprintf(s.w.Err, "Invalid job id specified for job %s\n", id)
		return slurm.ExitError
	}
	j := &list.Jobs[0]
	limit := j.Spec.TimeLimit
	switch {
	case !end.IsZero() && j.State == core.Pending:
		fmt.Fprintf(s.w.Err, "Job is not running for job %s\n", id)
		return slurm.ExitError
	case !end.IsZero(): // in minutes, rounded up, as all limits are
		limit = max(60, core.Seconds((end.Sub(j.Start.Go())+time.Minute-1)/time.Minute*60))
	case limit < core.Forever && p.sign == '-':
		limit = max(60, limit-delta)
	case limit < core.Forever:
		limit = max(60, limit+delta)
	}
	u.TimeLimit = &limit
	return 0
}

// writeResized prints how the environment of a job that gave nodes back is set again, and writes the files that do it.
func (s jobVerbs) writeResized(ctx context.Context, id string) {
	c, err := s.client()
	if err != nil {
		return
	}
	list, err := c.Job(ctx, id)
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].State != core.Running || list.Jobs[0].Alloc == nil {
		return
	}
	j := &list.Jobs[0]
	nodes, count := client.AllocList(j.Alloc), strconv.Itoa(len(j.Alloc.Nodes))
	sets := [][2]string{
		{"SLURM_NODELIST", nodes},
		{"SLURM_JOB_NODELIST", nodes},
		{"SLURM_NNODES", count},
		{"SLURM_JOB_NUM_NODES", count},
		{"SLURM_JOB_CPUS_PER_NODE", slurm.CPUsPerNode(j.Alloc)},
	}
	drop := []string{"SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"}
	var sh, csh strings.Builder
	for _, v := range sets {
		fmt.Fprintf(&sh, "export %s=\"%s\"\n", v[0], v[1])
		fmt.Fprintf(&csh, "setenv %s \"%s\"\n", v[0], v[1])
	}
	for _, name := range drop {
		fmt.Fprintf(&sh, "unset %s\n", name)
		fmt.Fprintf(&csh, "unsetenv %s\n", name)
	}
	name := "slurm_job_" + id + "_resize"
	for file, text := range map[string]string{name + ".sh": sh.String(), name + ".csh": csh.String()} {
		if err := os.WriteFile(s.w.Dir+"/"+file, []byte(text), 0o700); err != nil {
			fmt.Fprintf(s.w.Err, "Could not create file %s: %s\n", file, cmd.ErrnoText(err))
			return
		}
	}
	fmt.Fprintf(s.w.Out, "To reset Slurm environment variables, execute\n  For bash or sh shells:  . ./%s.sh\n"+
		"  For csh shells:         source ./%s.csh\n", name, name)
}
