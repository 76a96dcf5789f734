package rest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/slurm/schema"
)

// description collects the options of sbatch that the fields of a job description stand for, so that a job is read,
// checked and completed as one of sbatch is.
type description struct {
	in   schema.Input
	args []string
	used map[string]bool
	now  time.Time
}

// textOptions are fields whose text is the value of an option.
var textOptions = map[string]string{
	"account": "account", "account_gather_frequency": "acctg-freq", "array": "array", "batch_features": "batch",
	"burst_buffer": "bb", "cluster_constraint": "cluster-constraint", "comment": "comment",
	"constraints": "constraint", "container": "container", "container_id": "container-id", "cpu_frequency": "cpu-freq",
	"dependency": "dependency", "distribution": "distribution", "extra": "extra", "licenses": "licenses",
	"mail_user": "mail-user", "mcs_label": "mcs-label", "memory_binding": "mem-bind", "name": "job-name",
	"network": "network", "partition": "partition", "prefer": "prefer", "qos": "qos", "reservation": "reservation",
	"standard_input": "input", "standard_output": "output", "standard_error": "error", "tres_bind": "tres-bind",
	"tres_per_task": "tres-per-task", "wckey": "wckey", "user_id": "uid", "group_id": "gid",
	"current_working_directory": "chdir",
}

// numberOptions are fields whose number, if it is not 0, is the value of an option.
var numberOptions = map[string]string{
	"tasks": "ntasks", "cpus_per_task": "cpus-per-task", "minimum_cpus_per_node": "mincpus",
	"tasks_per_node": "ntasks-per-node", "tasks_per_socket": "ntasks-per-socket", "tasks_per_core": "ntasks-per-core",
	"sockets_per_node": "sockets-per-node", "threads_per_core": "threads-per-core",
	"cores_per_socket": "cores-per-socket", "core_specification": "core-spec", "thread_specification": "thread-spec",
	"nice": "nice", "segment_size": "segment", "ntasks_per_tres": "ntasks-per-gpu", "delay_boot": "delay-boot",
	"oom_kill_step": "oom-kill-step",
}

// flagOptions are fields that, if true, are an option.
var flagOptions = map[string]string{
	"contiguous": "contiguous", "hold": "hold", "overcommit": "overcommit", "reboot": "reboot",
	"oversubscribe": "oversubscribe",
}

// options are the words of sbatch that a description means.
func (d *description) options() ([]string, error) {
	for _, name := range slices.Sorted(maps.Keys(d.in)) {
		if option, ok := textOptions[name]; ok && d.in.Text(name) != "" {
			d.add(name, option, d.in.Text(name))
		}
		if option, ok := numberOptions[name]; ok {
			if n := d.in.Number(name); n.IsSet() && n.Whole() != 0 {
				d.add(name, option, strconv.FormatInt(n.Whole(), 10))
			}
			d.used[name] = true
		}
		if option, ok := flagOptions[name]; ok {
			if d.in.Bool(name) {
				d.args = append(d.args, "--"+option)
			}
			d.used[name] = true
		}
	}
	for _, name := range []string{"minimum_nodes", "maximum_nodes", "minimum_cpus", "temporary_disk_per_node"} {
		if n := d.in.Number(name); n.IsSet() && !n.IsInfinite() && n.Whole() < 0 {
			return nil, badField(name, strconv.FormatInt(n.Whole(), 10))
		}
	}
	d.sizes()
	d.times()
	d.gres()
	d.lists()
	if err := d.words(); err != nil {
		return nil, err
	}
	return d.args, nil
}

func (d *description) add(field, option, value string) {
	d.args = append(d.args, "--"+option+"="+value)
	d.used[field] = true
}

// sizes are nodes, CPUs and memory.
func (d *description) sizes() {
	in := d.in
	least, most := in.Number("minimum_nodes").Whole(), in.Number("maximum_nodes").Whole()
	switch {
	case in.Text("nodes") != "":
		d.add("nodes", "nodes", in.Text("nodes"))
	case most > 0 && most != max(1, least):
		d.add("nodes", "nodes", fmt.Sprintf("%d-%d", max(1, least), most))
	case least > 0:
		d.add("nodes", "nodes", strconv.FormatInt(least, 10))
	}
	for _, m := range [][2]string{{"memory_per_node", "mem"}, {"memory_per_cpu", "mem-per-cpu"}} {
		if n := in.Number(m[0]); n.IsSet() && !n.IsInfinite() {
			d.add(m[0], m[1], strconv.FormatInt(n.Whole(), 10)+"M")
		}
	}
	if n := in.Number("temporary_disk_per_node").Whole(); n > 0 {
		d.add("temporary_disk_per_node", "tmp", strconv.FormatInt(n, 10)+"M")
	}
	if n := in.Number("minimum_cpus").Whole(); n > 1 && !in.Has("tasks") && !in.Has("cpus_per_task") &&
		!in.Has("tasks_per_node") { // of the whole job
		d.add("minimum_cpus", "cpus-per-task", strconv.FormatInt(n, 10))
	}
	if n := in.Number("priority"); n.IsSet() && !n.IsInfinite() {
		d.add("priority", "priority", strconv.FormatInt(n.Whole(), 10))
	}
	if n := in.Number("required_switches").Whole(); n > 0 {
		text := strconv.FormatInt(n, 10)
		if wait := in.Number("wait_for_switch").Whole(); wait > 0 {
			text += fmt.Sprintf("@00:00:%02d", wait%60)
			if wait >= 60 {
				text = fmt.Sprintf("%d@%d", n, (wait+59)/60)
			}
		}
		d.add("required_switches", "switches", text)
	}
	for _, name := range []string{
		"minimum_nodes", "maximum_nodes", "minimum_cpus", "wait_for_switch", "memory_per_node",
		"memory_per_cpu", "temporary_disk_per_node", "priority", "required_switches", "nodes",
	} {
		d.used[name] = true
	}
}

// minutes is a limit as an option takes it.
func (d *description) minutes(name string) (string, bool) {
	if s := d.in.Text(name); s != "" {
		return s, true
	}
	switch n := d.in.Number(name); {
	case n.IsInfinite():
		return "UNLIMITED", true
	case n.IsSet() && n.Whole() > 0:
		return strconv.FormatInt(n.Whole(), 10), true
	}
	return "", false
}

func (d *description) times() {
	for _, t := range [][2]string{{"time_limit", "time"}, {"time_minimum", "time-min"}} {
		if text, ok := d.minutes(t[0]); ok {
			d.add(t[0], t[1], text)
		}
		d.used[t[0]] = true
	}
	for _, t := range [][2]string{{"begin_time", "begin"}, {"deadline", "deadline"}} {
		if n := d.in.Number(t[0]); n.IsSet() && n.Whole() > 0 {
			d.add(t[0], t[1], time.Unix(n.Whole(), 0).In(d.now.Location()).Format("2006-01-02T15:04:05"))
		}
		d.used[t[0]] = true
	}
}

// gres are resources by job, node, socket, and what goes with each GPU. "gres/gpu:2" and "gres:gpu:2" are the same.
func (d *description) gres() {
	plain := func(name string, gpu bool) string {
		var words []string
		for w := range strings.SplitSeq(d.in.Text(name), ",") {
			w = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(w), "gres/"), "gres:")
			w = strings.Replace(w, "=", ":", 1)
			if gpu {
				w = strings.TrimPrefix(strings.TrimPrefix(w, "gpu"), ":")
			}
			if w != "" {
				words = append(words, w)
			}
		}
		return strings.Join(words, ",")
	}
	for _, g := range []struct {
		field, option string
		gpu           bool
	}{
		{"tres_per_node", "gres", false},
		{"tres_per_job", "gpus", true},
		{"tres_per_socket", "gpus-per-socket", true},
		{"cpus_per_tres", "cpus-per-gpu", true},
		{"memory_per_tres", "mem-per-gpu", true},
	} {
		if text := plain(g.field, g.gpu); text != "" {
			d.add(g.field, g.option, text)
		}
	}
}

func (d *description) lists() {
	for _, l := range [][2]string{
		{"required_nodes", "nodelist"},
		{"excluded_nodes", "exclude"},
		{"profile", "profile"},
	} {
		if list := d.in.List(l[0]); len(list) > 0 {
			d.add(l[0], l[1], strings.Join(list, ","))
		}
		d.used[l[0]] = true
	}
	if list := d.in.List("mail_type"); len(list) > 0 {
		words := make([]string, len(list))
		for i, w := range list {
			words[i] = strings.TrimSuffix(strings.Replace(strings.Replace(w, "TIME=100%", "TIME_LIMIT", 1), "TIME=",
				"TIME_LIMIT_", 1), "%")
			if words[i] == "INVALID_DEPENDENCY" {
				words[i] = "INVALID_DEPEND"
			}
		}
		d.add("mail_type", "mail-type", strings.Join(words, ","))
	}
	if list := d.in.List("open_mode"); len(list) > 0 {
		d.add("open_mode", "open-mode", strings.ToLower(list[0]))
	}
	d.used["open_mode"], d.used["mail_type"] = true, true
}

// words are fields whose words are options of their own.
func (d *description) words() error {
	in := d.in
	for _, w := range append(in.List("shared"), in.List("exclusive")...) {
		switch strings.ToLower(w) {
		case "none", "true":
			d.args = append(d.args, "--exclusive")
		case "user", "mcs", "topo":
			d.args = append(d.args, "--exclusive="+strings.ToLower(w))
		case "oversubscribe", "yes":
			d.args = append(d.args, "--oversubscribe")
		case "false", "":
		default:
			return badField("shared", w)
		}
	}
	for _, w := range in.List("flags") {
		switch strings.ToUpper(w) {
		case "KILL_INVALID_DEPENDENCY":
			d.args = append(d.args, "--kill-on-invalid-dep=yes")
		case "NO_KILL_INVALID_DEPENDENCY":
			d.args = append(d.args, "--kill-on-invalid-dep=no")
		case "SPREAD_JOB":
			d.args = append(d.args, "--spread-job")
		case "PREFER_MINIMUM_NODE_COUNT":
			d.args = append(d.args, "--use-min-nodes")
		case "EXTERNAL_JOB":
		default:
			return badField("flags", w)
		}
	}
	if in.Has("requeue") {
		d.args = append(d.args, map[bool]string{true: "--requeue", false: "--no-requeue"}[in.Bool("requeue")])
	}
	if in.Has("kill_on_node_fail") && !in.Bool("kill_on_node_fail") {
		d.args = append(d.args, "--no-kill")
	}
	if in.Bool("wait_all_nodes") {
		d.args = append(d.args, "--wait-all-nodes=1")
	}
	if sig := in.Text("kill_warning_signal"); sig != "" {
		text := sig
		if slices.Contains(in.List("kill_warning_flags"), "BATCH_JOB") {
			text = "B:" + text
		}
		if n := in.Number("kill_warning_delay"); n.IsSet() {
			text += "@" + strconv.FormatInt(n.Whole(), 10)
		}
		d.args = append(d.args, "--signal="+text)
	}
	for _, name := range []string{
		"shared", "exclusive", "flags", "requeue", "kill_on_node_fail", "wait_all_nodes",
		"kill_warning_signal", "kill_warning_flags", "kill_warning_delay",
	} {
		d.used[name] = true
	}
	return nil
}
