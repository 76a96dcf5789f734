package rest

import (
	"encoding"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/schema"
)

// change puts a field of a description into a change of a job.
type change func(u *update, in schema.Input, name string) bool

type update = client.Update

// changes are the fields that can be changed.
var changes = map[string]change{
	"account":               func(u *update, in schema.Input, n string) bool { return setText(&u.Project, in, n) },
	"batch_features":        nothing,
	"begin_time":            func(u *update, in schema.Input, n string) bool { return setTime(&u.Begin, in, n) },
	"comment":               func(u *update, in schema.Input, n string) bool { return setText(&u.Comment, in, n) },
	"constraints":           func(u *update, in schema.Input, n string) bool { return setParsed(&u.Constraint, in, n) },
	"cpus_per_task":         func(u *update, in schema.Input, n string) bool { return setCount(&u.CPUsPerTask, in, n) },
	"deadline":              func(u *update, in schema.Input, n string) bool { return setTime(&u.Deadline, in, n) },
	"dependency":            func(u *update, in schema.Input, n string) bool { return setParsed(&u.Dependency, in, n) },
	"excluded_nodes":        func(u *update, in schema.Input, n string) bool { return setHosts(&u.Exclude, in, n) },
	"hold":                  setHold,
	"job_id":                nothing,
	"licenses":              func(u *update, in schema.Input, n string) bool { return setParsed(&u.Licenses, in, n) },
	"mail_type":             setMail,
	"mail_user":             func(u *update, in schema.Input, n string) bool { return setText(&u.MailUser, in, n) },
	"memory_per_cpu":        func(u *update, in schema.Input, n string) bool { return setMemory(&u.MemPerCPU, in, n) },
	"memory_per_node":       func(u *update, in schema.Input, n string) bool { return setMemory(&u.MemPerNode, in, n) },
	"minimum_cpus":          func(u *update, in schema.Input, n string) bool { return setCount(&u.CPUs, in, n) },
	"minimum_cpus_per_node": func(u *update, in schema.Input, n string) bool { return setCount(&u.MinCPUs, in, n) },
	"name":                  func(u *update, in schema.Input, n string) bool { return setText(&u.Name, in, n) },
	"nice":                  setNice,
	"nodes":                 setNodes,
	"minimum_nodes":         setNodes,
	"maximum_nodes":         setNodes,
	"partition":             setPartition,
	"prefer":                func(u *update, in schema.Input, n string) bool { return setParsed(&u.Prefer, in, n) },
	"priority":              setPriority,
	"qos":                   func(u *update, in schema.Input, n string) bool { return setText(&u.QOS, in, n) },
	"required_nodes":        func(u *update, in schema.Input, n string) bool { return setHosts(&u.NodeList, in, n) },
	"requeue":               setRequeue,
	"reservation":           func(u *update, in schema.Input, n string) bool { return setText(&u.Reservation, in, n) },
	"site_factor":           setSite,
	"standard_error":        func(u *update, in schema.Input, n string) bool { return setText(&u.Stderr, in, n) },
	"standard_input":        func(u *update, in schema.Input, n string) bool { return setText(&u.Stdin, in, n) },
	"standard_output":       func(u *update, in schema.Input, n string) bool { return setText(&u.Stdout, in, n) },
	"tasks":                 func(u *update, in schema.Input, n string) bool { return setCount(&u.Tasks, in, n) },
	"tasks_per_node":        func(u *update, in schema.Input, n string) bool { return setCount(&u.TasksPerNode, in, n) },
	"time_limit":            func(u *update, in schema.Input, n string) bool { return setLimit(&u.TimeLimit, in, n) },
	"time_minimum":          func(u *update, in schema.Input, n string) bool { return setLimit(&u.TimeMin, in, n) },
	"tres_per_node":         setGres,
	"wckey":                 func(u *update, in schema.Input, n string) bool { return setText(&u.WCKey, in, n) },
}

// update reads a change of a job. Fields that cannot be changed are refused, so that nobody thinks they were.
func (c *Call) update(in schema.Input) (*client.Update, error) {
	u := &client.Update{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		put, ok := changes[name]
		switch {
		case !ok && empty(in[name]):
		case !ok:
			return nil, fail(400, 2036, "Requested operation not supported on this system",
				"the field "+name+" of a job cannot be changed here")
		case !put(u, in, name):
			return nil, badField(name, "its value")
		}
	}
	return u, nil
}

func nothing(*client.Update, schema.Input, string) bool { return true }

func setText[T ~string](to **T, in schema.Input, name string) bool {
	t := T(in.Text(name))
	*to = &t
	return true
}

// setParsed keeps what does not parse: the server refuses it in its own words.
func setParsed[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](to **T, in schema.Input, name string) bool {
	*to = new(T)
	_ = P(*to).UnmarshalText([]byte(in.Text(name)))
	return true
}

func setCount(to **int32, in schema.Input, name string) bool {
	n := in.Number(name).Whole()
	v := int32(n)
	*to = &v
	return n >= 0 && n <= math.MaxInt32
}

func setMemory(to **core.Bytes, in schema.Input, name string) bool {
	n := in.Number(name)
	if !n.IsSet() {
		return true
	}
	b := core.Bytes(n.Whole()) * core.MiB
	*to = &b
	return n.Whole() >= 0 && n.Whole() <= math.MaxInt64/int64(core.MiB)
}

func setTime(to **core.Time, in schema.Input, name string) bool {
	if n := in.Number(name); n.IsSet() {
		t := core.At(time.Unix(n.Whole(), 0))
		*to = &t
		return n.Whole() >= 0 && n.Whole() < 1<<33
	}
	return true
}

func setLimit(to **core.Seconds, in schema.Input, name string) bool {
	var limit core.Seconds
	n := in.Number(name)
	switch text := in.Text(name); {
	case text != "":
		m, err := grammar.ParseTimeLimit(text)
		if err != nil {
			return false
		}
		if limit = core.Seconds(m * 60); m == grammar.Unlimited {
			limit = core.Forever
		}
	case n.IsInfinite():
		limit = core.Forever
	case !n.IsSet():
		return true
	case n.Whole() <= 0 || n.Whole() > math.MaxInt32:
		return false
	default:
		limit = core.Seconds(n.Whole() * 60)
	}
	*to = &limit
	return true
}

func setHosts(to **string, in schema.Input, name string) bool {
	list := strings.Join(in.List(name), ",")
	*to = &list
	return true
}

func setHold(u *client.Update, in schema.Input, name string) bool {
	hold := in.Bool(name)
	u.Hold = &hold
	return true
}

func setRequeue(u *client.Update, in schema.Input, name string) bool {
	may := in.Bool(name)
	u.SpecChange.Requeue = &may
	return true
}

func setMail(u *client.Update, in schema.Input, name string) bool {
	text, ok := slurm.MailTypes(strings.Join(in.List(name), ","))
	u.MailTypes = &text
	return ok
}

func setNice(u *client.Update, in schema.Input, name string) bool {
	n := in.Number(name).Whole()
	v := int32(n)
	u.Nice = &v
	return n == int64(v)
}

func setSite(u *client.Update, in schema.Input, name string) bool {
	n := in.Number(name).Whole()
	v := int32(n)
	u.Site = &v
	return n == int64(v)
}

// setPriority: a priority of 0 is a hold, as Slurm's.
func setPriority(u *client.Update, in schema.Input, name string) bool {
	n := in.Number(name)
	if !n.IsSet() || n.IsInfinite() {
		return true
	}
	if n.Whole() == 0 {
		hold := true
		u.Hold = &hold
		return true
	}
	v := uint32(n.Whole())
	u.Priority = &v
	return n.Whole() > 0 && n.Whole() == int64(v)
}

func setPartition(u *client.Update, in schema.Input, name string) bool {
	p := core.ParsePartitions(in.Text(name))
	u.Partition = &p
	return true
}

func setNodes(u *client.Update, in schema.Input, _ string) bool {
	text := in.Text("nodes")
	if text == "" {
		least, most := in.Number("minimum_nodes").Whole(), in.Number("maximum_nodes").Whole()
		if text = strconv.FormatInt(max(1, least), 10); most > 0 {
			text += "-" + strconv.FormatInt(most, 10)
		}
	}
	count, err := grammar.ParseNodeCount(text)
	u.Nodes = &core.NodeCount{Min: int32(count.Min), Max: int32(count.Max)}
	return err == nil && count.Min > 0
}

func setGres(u *client.Update, in schema.Input, name string) bool {
	list, err := grammar.ParseGRES(strings.ReplaceAll(strings.ReplaceAll(in.Text(name), "gres/", ""), "gres:", ""))
	asked := []core.Gres{}
	for _, g := range list {
		if g.Count > 0 {
			asked = append(asked, core.Gres{Name: g.Name, Type: g.Type, Count: g.Count})
		}
	}
	u.Gres = &asked
	return err == nil
}
