package jobsubmit

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"bireme.dev/bireme/internal/core"
)

// fields are those of job_desc, by Slurm's names. Initialized in init: some refer to others.
var fields map[string]field

func init() {
	fields = map[string]field{
		"name":      plain(func(d *desc) *string { return &d.Spec.Name }),
		"work_dir":  plain(func(d *desc) *string { return &d.Spec.IO.WorkDir }),
		"std_in":    plain(func(d *desc) *string { return &d.Spec.IO.Stdin }),
		"std_out":   plain(func(d *desc) *string { return &d.Spec.IO.Stdout }),
		"std_err":   plain(func(d *desc) *string { return &d.Spec.IO.Stderr }),
		"comment":   extraText(func(x *core.Extra) *string { return &x.Comment }),
		"mail_user": extraText(func(x *core.Extra) *string { return &x.MailUser }),
		"req_nodes": extraText(func(x *core.Extra) *string { return &x.NodeList }),
		"exc_nodes": extraText(func(x *core.Extra) *string { return &x.Exclude }),
		"wckey":     extraText(func(x *core.Extra) *string { return &x.WCKey }),

		"reservation":   extraText(func(x *core.Extra) *string { return &x.Reservation }),
		"admin_comment": kept("admin-comment"), "network": kept("network"), "mcs_label": kept("mcs-label"),
		"burst_buffer": kept("bb"), "acctg_freq": kept("acctg-freq"), "extra": kept("extra"),
		"clusters": kept("clusters"), "tres_bind": kept("gpu-bind"), "tres_freq": kept("gpu-freq"),
		"batch_features": kept("batch"),
		"account": textField(func(d *desc) string { return string(d.Spec.Project) },
			func(d *desc, s string) bool { d.Spec.Project = core.ProjectName(s); return true }),
		"qos": textField(func(d *desc) string { return string(d.Spec.QOS) },
			func(d *desc, s string) bool { d.Spec.QOS = core.QOSName(s); return true }),
		"partition": textField(func(d *desc) string { return d.Spec.Partition.String() },
			func(d *desc, s string) bool { d.Spec.Partition = core.ParsePartitions(s); return true }),
		"features": textField(func(d *desc) string { return d.Spec.More().Constraint.String() },
			func(d *desc, s string) (ok bool) {
				c, err := core.ParseConstraint(s)
				if d.extra().Constraint = c; s == "" {
					d.extra().Constraint = core.Constraint{}
				}
				return err == nil || s == ""
			}),
		"prefer": textField(func(d *desc) string { return d.Spec.More().Prefer.String() },
			func(d *desc, s string) (ok bool) {
				c, err := core.ParseConstraint(s)
				if d.extra().Prefer = c; s == "" {
					d.extra().Prefer = core.Constraint{}
				}
				return err == nil || s == ""
			}),
		"licenses": textField(func(d *desc) string { return d.Spec.More().Licenses.String() },
			func(d *desc, s string) (ok bool) {
				l, err := core.ParseLicenses(s)
				if d.extra().Licenses = l; s == "" {
					d.extra().Licenses = core.Licenses{}
				}
				return err == nil || s == ""
			}),
		"dependency": textField(func(d *desc) string { return d.Spec.More().Dependency.String() },
			func(d *desc, s string) (ok bool) {
				dep, err := core.ParseDependency(s)
				if d.extra().Dependency = dep; s == "" {
					d.extra().Dependency = core.Dependency{}
				}
				return err == nil || s == ""
			}),
		"array_inx": textField(arrayText, setArray),
		"script": textField(func(d *desc) string { return string(d.Script) },
			func(d *desc, s string) bool { d.Script = []byte(s); return s != "" }),
		"user_name":   textField(func(d *desc) string { return d.User }, nil),
		"alloc_node":  textField(func(d *desc) string { return d.Spec.From.Host }, nil),
		"submit_line": textField(func(d *desc) string { return d.Spec.From.Line }, nil),
		"container": textField(func(d *desc) string {
			if box := d.Spec.More().Container; box != nil {
				return box.Image
			}
			return ""
		}, nil),
		"default_account": textField(func(d *desc) string { return d.Account }, nil),
		"default_qos":     textField(func(*desc) string { return "" }, nil),
		"user_id":         number(noVal, func(d *desc) (int64, bool) { return int64(d.Spec.UID), true }, nil),
		"group_id":        number(noVal, func(d *desc) (int64, bool) { return int64(d.Spec.GID), true }, nil),
		"argc": number(0, func(d *desc) (int64, bool) {
			return int64(len(d.Spec.Args)), len(d.Spec.Args) > 0
		}, nil),
		"immediate": fixed(0), "power_flags": fixed(0), "cpu_freq_min": fixed(noVal), "cpu_freq_max": fixed(noVal),
		"cpu_freq_gov": fixed(noVal), "delay_boot": fixed(noVal), "boards_per_node": fixed(0), "max_cpus": fixed(noVal),
		"sockets_per_board": fixed(0), "reboot": fixed(noVal16),
	}
	for name, f := range shapeFields() {
		fields[name] = f
	}
	for name, f := range timeFields() {
		fields[name] = f
	}
	fields["gres"] = fields["tres_per_node"]
}

func arrayText(d *desc) string {
	if d.Spec.Array != "" && d.Spec.Throttle > 0 {
		return d.Spec.Array + "%" + strconv.Itoa(int(d.Spec.Throttle))
	}
	return d.Spec.Array
}

func setArray(d *desc, s string) bool {
	list, limit, ok := strings.Cut(s, "%")
	d.Spec.Array, d.Spec.Throttle = list, 0
	if ok {
		n, err := strconv.ParseInt(limit, 10, 32)
		if d.Spec.Throttle = int32(n); err != nil {
			return false
		}
	}
	return true
}

// timeFields are those of times, mail and the order of jobs.
func timeFields() map[string]field {
	return map[string]field{
		"time_limit": minutes(func(d *desc) *core.Seconds { return &d.Spec.TimeLimit }, func(d *desc, on bool) {
			d.give(core.GivenTimeLimit, on)
		}),
		"time_min": number(noVal, func(d *desc) (int64, bool) {
			t := d.Spec.More().TimeMin
			return (int64(t) + 59) / 60, t != 0
		}, func(d *desc, n int64, given bool) {
			if d.extra().TimeMin = 0; given {
				d.extra().TimeMin = core.Seconds(min(n, 1<<30) * 60)
			}
		}),
		"begin_time": epoch(func(d *desc) core.Time { return d.Spec.Begin },
			func(d *desc, t core.Time) { d.Spec.Begin = t }),
		"deadline": epoch(func(d *desc) core.Time { return d.Spec.More().Deadline },
			func(d *desc, t core.Time) { d.extra().Deadline = t }),
		"end_time": epoch(func(*desc) core.Time { return 0 }, func(*desc, core.Time) {}),
		"priority": number(noVal, func(d *desc) (int64, bool) {
			if p := d.Spec.More().Priority; p != nil && !d.Spec.Hold {
				return int64(*p), true
			}
			return 0, d.Spec.Hold
		}, func(d *desc, n int64, given bool) {
			d.extra().Priority, d.Spec.Hold = nil, given && n == 0
			if given && n > 0 {
				p := uint32(min(n, infinite-2))
				d.extra().Priority = &p
			}
		}),
		"nice": number(noVal, func(d *desc) (int64, bool) {
			return niceOffset + int64(d.Spec.Nice), d.Spec.Nice != 0
		}, func(d *desc, n int64, given bool) {
			if d.Spec.Nice = 0; given {
				d.Spec.Nice = int32(min(max(n-niceOffset, -niceOffset+3), niceOffset-3))
			}
		}),
		"site_factor": number(noVal, func(d *desc) (int64, bool) {
			return niceOffset + int64(d.Spec.More().Site), d.Spec.More().Site != 0
		}, func(d *desc, n int64, given bool) {
			if d.extra().Site = 0; given {
				d.extra().Site = int32(min(max(n-niceOffset, -niceOffset+3), niceOffset-3))
			}
		}),
		"requeue": number(noVal16, func(d *desc) (int64, bool) { return 0, !d.Spec.Requeue },
			func(d *desc, n int64, given bool) { d.Spec.Requeue = !given || n != 0 }),
		"contiguous": number(0, func(d *desc) (int64, bool) { return 1, d.Spec.More().Contiguous },
			func(d *desc, n int64, given bool) { d.extra().Contiguous = given && n != 0 }),
		"req_switch": number(noVal, func(d *desc) (int64, bool) {
			n := d.Spec.More().Switches.Count()
			return int64(n), n != 0
		}, func(d *desc, n int64, given bool) { d.switches(n, given, int64(d.Spec.More().Switches.Wait())) }),
		"wait4switch": number(noVal, func(d *desc) (int64, bool) {
			n := d.Spec.More().Switches.Wait()
			return int64(n), n != 0 && n != core.Forever
		}, func(d *desc, n int64, given bool) {
			d.switches(int64(d.Spec.More().Switches.Count()), given || n == 0, n)
		}),
		"mail_type": number(0, func(d *desc) (int64, bool) { n := mailNumber(d.Spec.More().MailTypes); return n, n != 0 },
			func(d *desc, n int64, given bool) { d.extra().MailTypes = mailWords(n, given) }),
	}
}

// switches sets how few leaf switches the job wants, and how long it waits for them.
func (d *desc) switches(n int64, given bool, wait int64) {
	d.extra().Switches = core.SwitchLimit{}
	if !given || n <= 0 {
		return
	}
	text := strconv.FormatInt(n, 10)
	if wait > 0 && wait < 1<<31 {
		text += "@" + strconv.FormatInt(wait/60, 10)
	}
	d.extra().Switches, _ = core.ParseSwitchLimit(text)
}

func mailNumber(words string) (n int64) {
	for w := range strings.SplitSeq(words, ",") {
		if w == "ALL" {
			n |= 1 | 2 | 4 | 8 | 256 | 1024
		}
		for _, b := range mailBits {
			if b.word == w {
				n |= int64(b.bit)
			}
		}
	}
	return n
}

func mailWords(n int64, given bool) string {
	var out []string
	for _, b := range mailBits {
		if given && n&int64(b.bit) != 0 {
			out = append(out, b.word)
		}
	}
	return strings.Join(out, ",")
}

// minutes is a limit of time in minutes; no limit is INFINITE.
func minutes(at func(*desc) *core.Seconds, mark func(*desc, bool)) field {
	return field{
		get: func(d *desc) lua.LValue {
			switch t := *at(d); t {
			case 0:
				return lua.LNumber(noVal)
			case core.Forever:
				return lua.LNumber(infinite)
			default:
				return lua.LNumber((int64(t) + 59) / 60)
			}
		},
		set: func(d *desc, v lua.LValue) bool {
			n := lua.LVAsNumber(v)
			switch {
			case v == lua.LNil, n == noVal:
				*at(d) = 0
			case n == infinite:
				*at(d) = core.Forever
			case !lua.LVCanConvToString(v) || n < 0:
				return false
			default:
				*at(d) = core.Seconds(min(clamp(float64(n)), 1<<30) * 60)
			}
			mark(d, *at(d) != 0)
			return true
		},
	}
}

// epoch is a moment in seconds since 1970; 0: none.
func epoch(get func(*desc) core.Time, set func(*desc, core.Time)) field {
	return number(0, func(d *desc) (int64, bool) { t := get(d); return t.Unix(), t != 0 },
		func(d *desc, n int64, given bool) {
			if given && n > 0 {
				set(d, core.Time(min(n, 1<<40)*1e6))
				return
			}
			set(d, 0)
		})
}
